#include "core/shortlist/calibration/sample_margins.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/base/spare_time.h"
#include "core/kernels/kernels.h"
#include "core/shortlist/builds/for_each_part.h"

namespace attendant {
namespace {

// Returns the least number in `ascending` that a share `share` of them does not
// exceed. A single key has no neighbours: any result will do.
float Quantile(std::span<const float> ascending, double share) {
  if (ascending.empty()) return 0;
  const auto count = static_cast<double>(ascending.size());
  const double at = std::clamp(std::ceil(share * count), 1.0, count);
  return ascending[static_cast<std::size_t>(at) - 1];
}

constexpr float kLowest = std::numeric_limits<float>::lowest();
constexpr float kGreatest = std::numeric_limits<float>::max();

bool IsFinite(float number) { return std::isfinite(number); }

}  // namespace

SampleMargins::SampleMargins(const InvertedLists& lists,
                             const SampleQueries& sample, int thread_count,
                             Kinds kinds)
    : lists_(lists),
      moved_(Try(sample, &SampleQueries::Query, &SampleQueries::Neighbours,
                 thread_count,
                 kinds == Kinds::kKeys ? &moved_scores_ : nullptr)),
      unmoved_(Try(sample, &SampleQueries::Key, &SampleQueries::KeyNeighbours,
                   thread_count)) {
  if (kinds == Kinds::kKeys) return;
  pairs_ = Try(sample, &SampleQueries::Blend, &SampleQueries::BlendNeighbours,
               thread_count, nullptr, /*first=*/0, /*step=*/2);
  fives_ = Try(sample, &SampleQueries::Blend, &SampleQueries::BlendNeighbours,
               thread_count, nullptr, /*first=*/1, /*step=*/2);
}

SampleMargins::Kind SampleMargins::Try(const SampleQueries& sample,
                                       QueryAt query_at,
                                       NeighboursAt neighbours_at,
                                       int thread_count, Scores* kept,
                                       std::int64_t first,
                                       std::int64_t step) const {
  const std::int64_t query_count =
      std::max<std::int64_t>(0, (sample.count() - first + step - 1) / step);
  const auto list_count = static_cast<std::size_t>(lists_.list_count());
  const auto wanted = static_cast<std::size_t>(sample.depths().front());
  const auto neighbours_of = [&](std::int64_t q) {
    const auto all = (sample.*neighbours_at)(first + q * step);
    return all.first(std::min(wanted, all.size()));
  };
  Kind kind;
  kind.peaks.resize(static_cast<std::size_t>(query_count));
  if (kept != nullptr) {
    kept->of_lists.resize(kind.peaks.size() * list_count);
    kept->expected.resize(kind.peaks.size());
  }
  std::vector<std::size_t> places;  // of each query's first margin
  std::size_t margin_count = 0;
  for (std::int64_t q = 0; q < query_count; ++q) {
    places.push_back(margin_count);
    margin_count += neighbours_of(q).size();
  }
  kind.margins.resize(margin_count);
  ForEachPart(
      query_count, thread_count, [&](std::int64_t begin, std::int64_t end) {
        std::vector<float> scores;
        for (std::int64_t q = begin; q < end; ++q) {
          MakeWay();
          const auto i = static_cast<std::size_t>(q);
          lists_.means->ScoreLists((sample.*query_at)(first + q * step),
                                   scores);
          // Such a query is far from all keys and all lists.
          const bool overflows = !std::ranges::all_of(scores, IsFinite);
          if (overflows) std::ranges::fill(scores, kLowest);
          const float expected = overflows
                                     ? 0
                                     : lists_.means->ExpectedScore(
                                           scores, static_cast<double>(wanted));
          kind.peaks[i] = *std::ranges::max_element(scores);
          std::size_t place = places[i];
          for (const std::int32_t position : neighbours_of(q)) {
            const float score = scores[lists_.ListAt(position)];
            kind.margins[place++] =
                std::clamp(expected - score, kLowest, kGreatest);
          }
          if (kept == nullptr) continue;
          kept->expected[i] = expected;
          std::ranges::copy(scores,
                            kept->of_lists.begin() +
                                static_cast<std::ptrdiff_t>(i * list_count));
        }
      });
  std::ranges::sort(kind.margins);
  std::ranges::sort(kind.peaks);
  return kind;
}

float SampleMargins::MarginFor(double recall) const {
  return std::max(Quantile(moved_.margins, recall),
                  Quantile(unmoved_.margins, recall));
}

float SampleMargins::BlendMarginFor(double recall) const {
  return std::max({MarginFor(recall), Quantile(pairs_.margins, recall),
                   Quantile(fives_.margins, recall)});
}

float SampleMargins::KeyPeak(double share) const {
  return Quantile(unmoved_.peaks, share);
}

double SampleMargins::RecallAt(float margin) const {
  const std::vector<float>& margins = moved_.margins;
  if (margins.empty()) return 1;
  return static_cast<double>(
             std::upper_bound(margins.begin(), margins.end(), margin) -
             margins.begin()) /
         static_cast<double>(margins.size());
}

SampleMargins::Visits SampleMargins::MeanVisits(float margin) const {
  const std::int64_t list_count = lists_.list_count();
  std::vector<std::int32_t> visited(static_cast<std::size_t>(list_count));
  Visits sum;
  for (std::size_t q = 0; q < moved_scores_.expected.size(); ++q) {
    const std::int64_t count = ActiveKernels().SelectAtLeast(
        moved_scores_.of_lists.data() +
            static_cast<std::int64_t>(q) * list_count,
        list_count, moved_scores_.expected[q] - margin, visited.data());
    sum.list_count += static_cast<double>(std::max<std::int64_t>(1, count));
    for (std::int64_t i = 0; i < count; ++i) {
      const auto l = static_cast<std::size_t>(visited[i]);
      sum.key_count +=
          static_cast<double>(lists_.offsets[l + 1] - lists_.offsets[l]);
    }
  }
  const auto count = static_cast<double>(moved_scores_.expected.size());
  return {sum.list_count / count, sum.key_count / count};
}

}  // namespace attendant
