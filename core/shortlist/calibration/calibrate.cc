#include "core/shortlist/calibration/calibrate.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <span>
#include <vector>

#include "core/base/mutex.h"
#include "core/base/spare_time.h"
#include "core/shortlist/builds/for_each_part.h"
#include "core/shortlist/calibration/sample_margins.h"

namespace attendant {
namespace {

class Calibrator {
 public:
  Calibrator(const InvertedLists& lists, const SampleQueries& sample,
             double target_recall, int thread_count)
      : lists_(lists),
        sample_(sample),
        target_recall_(target_recall),
        thread_count_(thread_count) {}

  Calibration Choose() const {
    // A single key has no neighbours; its list is the only one.
    if (lists_.key_count() == 1) {
      return {
          .probe_count = 1, .recall = 1, .recalls = {1}, .depths = {{1, 1}}};
    }
    const std::vector<std::int64_t>& depths = sample_.depths();
    const PlaceCounts found_at = CountAllPlaces();
    Calibration calibration;
    for (std::size_t d = 0; d < depths.size(); ++d) {
      // Few queries reach the greater depths, and these may be easier than the
      // rest.
      const std::int64_t probe_count =
          std::max(calibration.probe_count, LeastProbes(found_at[d]));
      if (d == 0) {
        calibration.probe_count = probe_count;
        calibration.recalls = Recalls(found_at[d]);
      }
      calibration.depths.push_back({depths[d], probe_count});
    }
    const SampleMargins margins(lists_, sample_, thread_count_,
                                SampleMargins::Kinds::kKeysAndBlends);
    for (std::size_t i = 1; i <= Calibration::kRecallSteps; ++i) {
      const double recall = static_cast<double>(i) /
                            static_cast<double>(Calibration::kRecallSteps);
      calibration.margins.push_back(margins.MarginFor(recall));
      calibration.blend_margins.push_back(margins.BlendMarginFor(recall));
    }
    calibration.far_peak = margins.KeyPeak(.15);
    calibration.near_peak = margins.KeyPeak(.4);
    // The mean recall of scans that use the margin of keys: at least, since
    // some of the moved keys look farther.
    calibration.recall =
        margins.RecallAt(calibration.MarginFor(target_recall_)->near);
    return calibration;
  }

 private:
  // [d][i]: the number of neighbours of depth d in the list that is i-th in its
  // query's order.
  using PlaceCounts = std::vector<std::vector<std::int64_t>>;

  PlaceCounts CountAllPlaces() const {
    const std::vector<std::int32_t> list_at = ListOfEachKey();
    const PlaceCounts none(sample_.depths().size(),
                           std::vector<std::int64_t>(
                               static_cast<std::size_t>(lists_.list_count())));
    PlaceCounts found_at = none;
    Mutex mutex;
    ForEachPart(sample_.count(), thread_count_,
                [&](std::int64_t begin, std::int64_t end) {
                  PlaceCounts of_part = none;
                  for (std::int64_t q = begin; q < end; ++q) {
                    MakeWay();
                    CountPlaces(q, list_at, of_part);
                  }
                  MutexLock lock(&mutex);
                  for (std::size_t d = 0; d < found_at.size(); ++d) {
                    std::transform(of_part[d].begin(), of_part[d].end(),
                                   found_at[d].begin(), found_at[d].begin(),
                                   std::plus<>());
                  }
                });
    return found_at;
  }

  std::vector<std::int32_t> ListOfEachKey() const {
    std::vector<std::int32_t> lists;
    lists.reserve(static_cast<std::size_t>(lists_.key_count()));
    for (std::size_t l = 0; l + 1 < lists_.offsets.size(); ++l) {
      lists.resize(static_cast<std::size_t>(lists_.offsets[l + 1]),
                   static_cast<std::int32_t>(l));
    }
    return lists;
  }

  // Adds the places that a query's neighbours, best first, have in its order of
  // lists.
  void CountPlaces(std::int64_t q, std::span<const std::int32_t> list_at,
                   PlaceCounts& found_at) const {
    std::vector<std::uint64_t> ranks;
    std::vector<std::size_t> place(
        static_cast<std::size_t>(lists_.list_count()));
    std::vector<float> scores;
    lists_.means->ScoreLists(sample_.Query(q), scores);
    ListMeans::RankLists(scores, ranks);
    std::ranges::sort(ranks, std::greater<>());
    for (std::size_t i = 0; i < ranks.size(); ++i) {
      place[ListMeans::ListOf(ranks[i])] = i;
    }
    const std::span<const std::int32_t> neighbours = sample_.Neighbours(q);
    for (std::size_t n = 0; n < neighbours.size(); ++n) {
      const std::int32_t list = list_at[neighbours[n]];
      for (std::size_t d = 0; d < found_at.size(); ++d) {
        if (sample_.Reaches(q, d) &&
            static_cast<std::int64_t>(n) < sample_.depths()[d]) {
          ++found_at[d][place[list]];
        }
      }
    }
  }

  // Returns the least number of lists that reaches the target.
  std::int64_t LeastProbes(const std::vector<std::int64_t>& found_at) const {
    const auto all = static_cast<double>(
        std::accumulate(found_at.begin(), found_at.end(), std::int64_t{0}));
    std::int64_t found = 0;
    std::size_t probe_count = 0;
    double recall = 0;
    while (probe_count < found_at.size() && recall < target_recall_) {
      found += found_at[probe_count++];
      recall = static_cast<double>(found) / all;
    }
    return static_cast<std::int64_t>(probe_count);
  }

  // Returns the mean recall by the number of lists visited, from 1.
  static std::vector<float> Recalls(const std::vector<std::int64_t>& found_at) {
    const auto all = static_cast<double>(
        std::accumulate(found_at.begin(), found_at.end(), std::int64_t{0}));
    std::vector<float> recalls;
    std::int64_t found = 0;
    for (const std::int64_t count : found_at) {
      found += count;
      recalls.push_back(static_cast<float>(static_cast<double>(found) / all));
    }
    return recalls;
  }

  const InvertedLists& lists_;
  const SampleQueries& sample_;
  const double target_recall_;
  const int thread_count_;
};

}  // namespace

std::int64_t Calibration::ProbesForRecall(double wanted) const {
  const auto enough = std::lower_bound(recalls.begin(), recalls.end(),
                                       static_cast<float>(wanted));
  return std::min(enough - recalls.begin() + 1,
                  static_cast<std::ptrdiff_t>(recalls.size()));
}

std::optional<QueryMargin> Calibration::MarginFor(double wanted) const {
  if (margins.empty()) return std::nullopt;
  // A recall within rounding of a step is that step.
  constexpr double kRounding = 1e-6;
  const double step =
      std::ceil(wanted * static_cast<double>(kRecallSteps) - kRounding);
  const auto at = static_cast<std::size_t>(
      std::clamp(step - 1, 0.0, static_cast<double>(kRecallSteps - 1)));
  return QueryMargin{.near = margins[at],
                     .far = blend_margins[at],
                     .far_peak = far_peak,
                     .near_peak = near_peak};
}

double Calibration::ProbesFor(double neighbour_count) const {
  const auto least = static_cast<double>(probe_count);
  if (depths.size() == 1) {
    // Lists grow in proportion to neighbours: that is never too few.
    const double factor =
        neighbour_count / static_cast<double>(depths[0].neighbour_count);
    return least * std::max(1.0, factor);
  }
  std::size_t next = 1;
  while (next + 1 < depths.size() &&
         static_cast<double>(depths[next].neighbour_count) < neighbour_count) {
    ++next;
  }
  const auto log = [](std::int64_t count) {
    return std::log(static_cast<double>(count));
  };
  const ProbeDepth& low = depths[next - 1];
  const ProbeDepth& high = depths[next];
  const double slope = (log(high.probe_count) - log(low.probe_count)) /
                       (log(high.neighbour_count) - log(low.neighbour_count));
  const double distance = std::log(neighbour_count) - log(low.neighbour_count);
  return std::max(least, std::exp(log(low.probe_count) + slope * distance));
}

Calibration Calibrate(const InvertedLists& lists, const SampleQueries& sample,
                      double target_recall, int thread_count) {
  return Calibrator(lists, sample, target_recall, thread_count).Choose();
}

}  // namespace attendant
