#include "core/shortlist/calibrate.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <random>
#include <utility>
#include <vector>

#include "core/attention/top_k.h"
#include "core/kernels/kernels.h"

namespace attendant {
namespace {

constexpr std::int64_t kSampleQueries = 200;
// Of them, those that look for more neighbours: so many that a mean is no
// matter of chance, as each has many neighbours.
constexpr std::int64_t kDeepQueries = 40;
constexpr std::int64_t kDepthFactor = 4;
constexpr int kDepthCount = 4;  // 1, 4, 16 and 64 times the neighbours
constexpr std::int64_t kBlockKeys = 1024;
constexpr float kNoiseShare = 2.0f / 3;  // of the nearest distance

// Ties are broken by position alone.
class NoIds : public IdResolver {
 public:
  absl::string_view IdOf(std::int32_t, RowIndex) const override { return {}; }
};

class Calibrator {
 public:
  Calibrator(const InvertedLists& lists, const CalibrateOptions& options)
      : lists_(lists), options_(options), random_(options.seed) {}

  absl::StatusOr<Calibration> Run() {
    SampleKeys();
    if (!PerturbSamples()) return Cancelled();
    std::vector<TopK> neighbours;
    if (!FindNeighbours(neighbours)) return Cancelled();
    return Choose(neighbours);
  }

 private:
  static absl::Status Cancelled() {
    return absl::CancelledError("the build was cancelled");
  }

  bool IsCosine() const { return options_.score_kind == ScoreKind::kCosine; }

  float* Query(std::int64_t i) { return queries_.data() + i * lists_.dim; }

  // Copies random keys, of norm 1 under COSINE, to queries_.
  void SampleKeys() {
    const std::int64_t n = lists_.key_count();
    std::vector<std::int64_t> positions(static_cast<std::size_t>(n));
    for (std::int64_t p = 0; p < n; ++p) {
      positions[static_cast<std::size_t>(p)] = p;
    }
    query_count_ = std::min(n, kSampleQueries);
    queries_.resize(static_cast<std::size_t>(query_count_ * lists_.dim));
    for (std::int64_t i = 0; i < query_count_; ++i) {
      const auto other = static_cast<std::size_t>(
          i + static_cast<std::int64_t>(random_() %
                                        static_cast<std::uint64_t>(n - i)));
      std::swap(positions[static_cast<std::size_t>(i)], positions[other]);
      const std::int64_t p = positions[static_cast<std::size_t>(i)];
      sampled_.push_back(p);
      const float factor =
          IsCosine() ? lists_.inverse_norms[static_cast<std::size_t>(p)] : 1;
      std::transform(lists_.keys.data() + p * lists_.dim,
                     lists_.keys.data() + (p + 1) * lists_.dim, Query(i),
                     [factor](float component) { return component * factor; });
    }
  }

  // Calls visit(query, first key, similarities, count) for blocks of keys, in
  // order. False if cancelled.
  template <typename Visit>
  bool ForEachBlock(Visit visit) {
    std::vector<float> dots(
        static_cast<std::size_t>(query_count_ * kBlockKeys));
    for (std::int64_t begin = 0; begin < lists_.key_count();
         begin += kBlockKeys) {
      if (options_.cancelled != nullptr &&
          options_.cancelled->load(std::memory_order_relaxed)) {
        return false;
      }
      const std::int64_t count =
          std::min(kBlockKeys, lists_.key_count() - begin);
      ActiveKernels().DotRowsMulti(queries_.data(), query_count_,
                                   lists_.keys.data() + begin * lists_.dim,
                                   count, lists_.dim, dots.data());
      for (std::int64_t q = 0; q < query_count_; ++q) {
        float* similarities = dots.data() + q * count;
        if (IsCosine()) {
          const float* inverse_norms = lists_.inverse_norms.data() + begin;
          for (std::int64_t i = 0; i < count; ++i) {
            similarities[i] *= inverse_norms[i];
          }
        }
        visit(q, begin, similarities, count);
      }
    }
    return true;
  }

  bool PerturbSamples() {
    const auto query_count = static_cast<std::size_t>(query_count_);
    // |x - y|^2 = |x|^2 + |y|^2 - 2 x . y
    std::vector<float> key_squares(
        static_cast<std::size_t>(lists_.key_count()));
    for (std::size_t p = 0; p < key_squares.size(); ++p) {
      const float inverse = lists_.inverse_norms[p];
      key_squares[p] =
          inverse == 0 ? 0.0f : (IsCosine() ? 1 : 1 / (inverse * inverse));
    }
    std::vector<float> least(query_count,
                             std::numeric_limits<float>::infinity());
    const bool completed =
        ForEachBlock([&](std::int64_t q, std::int64_t begin,
                         const float* similarities, std::int64_t count) {
          float& nearest = least[static_cast<std::size_t>(q)];
          const std::int64_t self = sampled_[static_cast<std::size_t>(q)];
          for (std::int64_t i = 0; i < count; ++i) {
            const float relative =
                key_squares[static_cast<std::size_t>(begin + i)] -
                2 * similarities[i];
            if (relative < nearest && begin + i != self) nearest = relative;
          }
        });
    if (!completed) return false;

    double distance_sum = 0;
    std::int64_t distance_count = 0;
    for (std::size_t q = 0; q < query_count; ++q) {
      const double square =
          double{least[q]} + key_squares[static_cast<std::size_t>(sampled_[q])];
      if (!std::isfinite(square)) continue;
      distance_sum += std::sqrt(std::max(0.0, square));
      ++distance_count;
    }
    if (distance_count == 0) return true;
    const auto length = static_cast<float>(kNoiseShare * distance_sum /
                                           static_cast<double>(distance_count));
    std::normal_distribution<float> normal;
    std::vector<float> direction(static_cast<std::size_t>(lists_.dim));
    for (std::int64_t q = 0; q < query_count_; ++q) {
      for (float& component : direction) component = normal(random_);
      const auto factor = static_cast<float>(length / Norm(direction));
      for (std::size_t d = 0; d < direction.size(); ++d) {
        Query(q)[d] += factor * direction[d];
      }
    }
    return true;
  }

  bool FindNeighbours(std::vector<TopK>& neighbours) {
    for (std::int64_t q = 0; q < query_count_; ++q) {
      neighbours.emplace_back(
          std::min(
              q < kDeepQueries ? Depths().back() : options_.neighbour_count,
              lists_.key_count() - 1),
          &no_ids_);
    }
    std::vector<std::int32_t> chosen(kBlockKeys);
    return ForEachBlock([&](std::int64_t q, std::int64_t begin,
                            const float* similarities, std::int64_t count) {
      TopK& top = neighbours[static_cast<std::size_t>(q)];
      const std::int64_t chosen_count = ActiveKernels().SelectAtLeast(
          similarities, count, top.threshold(), chosen.data());
      for (std::int64_t c = 0; c < chosen_count; ++c) {
        const std::int32_t i = chosen[static_cast<std::size_t>(c)];
        if (begin + i == sampled_[static_cast<std::size_t>(q)]) continue;
        top.Offer({.logit = similarities[i],
                   .similarity = similarities[i],
                   .segment = 0,
                   .row = static_cast<RowIndex>(begin + i)});
      }
    });
  }

  // Neighbours to calibrate for. Those beyond a quarter of the keys would be
  // spread over all lists.
  std::vector<std::int64_t> Depths() const {
    std::vector<std::int64_t> depths = {options_.neighbour_count};
    while (static_cast<int>(depths.size()) < kDepthCount &&
           4 * kDepthFactor * depths.back() <= lists_.key_count()) {
      depths.push_back(kDepthFactor * depths.back());
    }
    return depths;
  }

  Calibration Choose(const std::vector<TopK>& neighbours) {
    // A single key has no neighbours: its list is all there is.
    if (lists_.key_count() == 1) {
      return {.probe_count = 1, .recall = 1, .depths = {{1, 1}}};
    }
    const std::vector<std::int64_t> depths = Depths();
    // found_at[d][i]: of the neighbours of depth d, those in the list that is
    // i-th in its query's order.
    std::vector<std::vector<std::int64_t>> found_at(
        depths.size(), std::vector<std::int64_t>(
                           static_cast<std::size_t>(lists_.list_count())));
    for (std::int64_t q = 0; q < query_count_; ++q) {
      CountPlaces(q, neighbours[static_cast<std::size_t>(q)].Sorted(), depths,
                  found_at);
    }
    Calibration calibration;
    for (std::size_t d = 0; d < depths.size(); ++d) {
      const auto [probe_count, recall] = LeastProbes(found_at[d]);
      if (d == 0) {
        calibration.probe_count = probe_count;
        calibration.recall = recall;
      }
      calibration.depths.push_back({depths[d], probe_count});
    }
    return calibration;
  }

  // Adds where a query's neighbours, best first, stand in its order of lists.
  void CountPlaces(std::int64_t q, const std::vector<Candidate>& sorted,
                   const std::vector<std::int64_t>& depths,
                   std::vector<std::vector<std::int64_t>>& found_at) {
    std::vector<std::uint64_t> ranks;
    std::vector<std::size_t> place(
        static_cast<std::size_t>(lists_.list_count()));
    lists_.RankLists({Query(q), static_cast<std::size_t>(lists_.dim)}, ranks);
    std::sort(ranks.begin(), ranks.end(), std::greater<>());
    for (std::size_t i = 0; i < ranks.size(); ++i) {
      place[static_cast<std::size_t>(InvertedLists::ListOf(ranks[i]))] = i;
    }
    for (std::size_t n = 0; n < sorted.size(); ++n) {
      const auto list =
          std::upper_bound(lists_.offsets.begin(), lists_.offsets.end(),
                           std::int64_t{sorted[n].row}) -
          lists_.offsets.begin() - 1;
      for (std::size_t d = 0; d < depths.size(); ++d) {
        // Of a query that stops short, only the depths that it reaches.
        if (d > 0 && q >= kDeepQueries) break;
        if (static_cast<std::int64_t>(n) < depths[d]) {
          ++found_at[d][place[static_cast<std::size_t>(list)]];
        }
      }
    }
  }

  // The least number of lists that reaches the target, and what it reaches.
  std::pair<std::int64_t, double> LeastProbes(
      const std::vector<std::int64_t>& found_at) const {
    const auto all = static_cast<double>(
        std::accumulate(found_at.begin(), found_at.end(), std::int64_t{0}));
    std::int64_t found = 0;
    std::size_t probe_count = 0;
    double recall = 0;
    while (probe_count < found_at.size() && recall < options_.target_recall) {
      found += found_at[probe_count++];
      recall = static_cast<double>(found) / all;
    }
    return {static_cast<std::int64_t>(probe_count), recall};
  }

  const InvertedLists& lists_;
  const CalibrateOptions& options_;
  const NoIds no_ids_;
  std::mt19937_64 random_;
  std::int64_t query_count_ = 0;
  std::vector<std::int64_t> sampled_;  // positions of the sampled keys
  std::vector<float> queries_;         // [query_count_, dim]
};

}  // namespace

double Calibration::ProbesFor(double neighbour_count) const {
  const auto least = static_cast<double>(probe_count);
  if (depths.size() == 1) {
    // As many lists more as neighbours more: that is never too few.
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

absl::StatusOr<Calibration> Calibrate(const InvertedLists& lists,
                                      const CalibrateOptions& options) {
  return Calibrator(lists, options).Run();
}

}  // namespace attendant
