#include "core/shortlist/calibration/sample_queries.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <utility>

#include "core/attention/softmax/top_k.h"
#include "core/kernels/kernels.h"
#include "core/shortlist/builds/for_each_part.h"
#include "core/shortlist/builds/guard_build.h"

namespace attendant {
namespace {

constexpr std::int64_t kSampleQueries = 200;
// Queries among them that look for more neighbours. So few suffice for a mean,
// because each has many neighbours.
constexpr std::int64_t kDeepQueries = 40;
constexpr std::int64_t kDepthFactor = 4;
constexpr int kDepthCount = 4;
constexpr std::int64_t kBlockKeys = 1024;
constexpr float kNoiseShare = 2.0f / 3;  // of the nearest distance

// Makes ties be broken by position alone.
class NoIds : public IdResolver {
 public:
  absl::string_view IdOf(std::int32_t, RowIndex) const override { return {}; }
};

}  // namespace

class SampleDraw {
 public:
  SampleDraw(MatrixView keys, std::span<const float> inverse_norms,
             const SampleOptions& options)
      : keys_(keys),
        inverse_norms_(inverse_norms),
        options_(options),
        random_(options.seed) {}

  absl::StatusOr<SampleQueries> Run() {
    sample_.dim_ = keys_.dim;
    sample_.depths_ = {options_.neighbour_count};
    while (static_cast<int>(sample_.depths_.size()) < kDepthCount &&
           4 * kDepthFactor * sample_.depths_.back() <= keys_.row_count) {
      sample_.depths_.push_back(kDepthFactor * sample_.depths_.back());
    }
    SampleKeys();
    if (!PerturbSamples() || !FindNeighbours() || !DrawBlends()) {
      return BuildCancelled();
    }
    return std::move(sample_);
  }

 private:
  bool IsCosine() const { return options_.score_kind == ScoreKind::kCosine; }

  float* Query(std::int64_t i) {
    return sample_.queries_.data() + i * keys_.dim;
  }

  // Copies random keys, of norm 1 under COSINE, to the queries.
  void SampleKeys() {
    const std::int64_t n = keys_.row_count;
    std::vector<std::int64_t> positions(static_cast<std::size_t>(n));
    for (std::int64_t p = 0; p < n; ++p) {
      positions[p] = p;
    }
    query_count_ = std::min(n, kSampleQueries);
    sample_.queries_.resize(static_cast<std::size_t>(query_count_ * keys_.dim));
    for (std::int64_t i = 0; i < query_count_; ++i) {
      const auto other = static_cast<std::size_t>(
          i + static_cast<std::int64_t>(random_() %
                                        static_cast<std::uint64_t>(n - i)));
      std::swap(positions[i], positions[other]);
      const std::int64_t p = positions[i];
      sampled_.push_back(p);
      const float factor = IsCosine() ? inverse_norms_[p] : 1;
      const std::span<const float> key = keys_.Row(p);
      std::transform(key.begin(), key.end(), Query(i),
                     [factor](float component) { return component * factor; });
    }
    sample_.keys_ = sample_.queries_;
  }

  // Calls visit(query, first key, similarities, count) for blocks of keys, in
  // order, and each of the queries [query_count_, dim]. Calls for different
  // queries run concurrently. Returns false if cancelled.
  template <typename Visit>
  bool ForEachBlock(const std::vector<float>& queries, Visit visit) {
    ForEachPart(query_count_, options_.thread_count,
                [&](std::int64_t begin, std::int64_t end) {
                  ForEachBlockOf(queries, begin, end, visit);
                });
    return !IsCancelled(options_.cancelled);
  }

  template <typename Visit>
  void ForEachBlockOf(const std::vector<float>& queries, std::int64_t first,
                      std::int64_t last, const Visit& visit) {
    if (first == last) return;
    std::vector<float> dots(
        static_cast<std::size_t>((last - first) * kBlockKeys));
    for (std::int64_t begin = 0;
         begin < keys_.row_count && !IsCancelled(options_.cancelled);
         begin += kBlockKeys) {
      const std::int64_t count = std::min(kBlockKeys, keys_.row_count - begin);
      ActiveKernels().DotRowsMulti(queries.data() + first * keys_.dim,
                                   last - first, keys_.data + begin * keys_.dim,
                                   count, keys_.dim, dots.data());
      for (std::int64_t q = first; q < last; ++q) {
        float* similarities = dots.data() + (q - first) * count;
        if (IsCosine()) {
          const float* inverse_norms = inverse_norms_.data() + begin;
          for (std::int64_t i = 0; i < count; ++i) {
            similarities[i] *= inverse_norms[i];
          }
        }
        visit(q, begin, similarities, count);
      }
    }
  }

  bool PerturbSamples() {
    const auto query_count = static_cast<std::size_t>(query_count_);
    // |x - y|^2 = |x|^2 + |y|^2 - 2 x . y
    std::vector<float> key_squares(inverse_norms_.size());
    for (std::size_t p = 0; p < key_squares.size(); ++p) {
      const float inverse = inverse_norms_[p];
      key_squares[p] =
          inverse == 0 ? 0.0f : (IsCosine() ? 1 : 1 / (inverse * inverse));
    }
    std::vector<float> least(query_count,
                             std::numeric_limits<float>::infinity());
    std::vector<TopK> tops = MakeTops(/*some_deep=*/false);
    const bool completed = ForEachBlock(
        sample_.queries_, [&](std::int64_t q, std::int64_t begin,
                              const float* similarities, std::int64_t count) {
          const std::int64_t& self = sampled_[q];
          Offer({&self, 1}, begin, similarities, count, tops[q]);
          float& nearest = least[q];
          for (std::int64_t i = 0; i < count; ++i) {
            const float relative = key_squares[begin + i] - 2 * similarities[i];
            if (relative < nearest && begin + i != self) nearest = relative;
          }
        });
    if (!completed) return false;
    TakeFound(tops, sample_.key_neighbours_);

    double distance_sum = 0;
    std::int64_t distance_count = 0;
    for (std::size_t q = 0; q < query_count; ++q) {
      const double square = double{least[q]} + key_squares[sampled_[q]];
      if (!std::isfinite(square)) continue;
      distance_sum += std::sqrt(std::max(0.0, square));
      ++distance_count;
    }
    if (distance_count == 0) return true;
    const auto length = static_cast<float>(kNoiseShare * distance_sum /
                                           static_cast<double>(distance_count));
    std::normal_distribution<float> normal;
    std::vector<float> direction(static_cast<std::size_t>(keys_.dim));
    for (std::int64_t q = 0; q < query_count_; ++q) {
      for (float& component : direction) component = normal(random_);
      const auto factor = static_cast<float>(length / Norm(direction));
      for (std::size_t d = 0; d < direction.size(); ++d) {
        Query(q)[d] += factor * direction[d];
      }
    }
    return true;
  }

  std::vector<TopK> MakeTops(bool some_deep) const {
    static const NoIds& no_ids = *new NoIds();
    std::vector<TopK> tops;
    for (std::int64_t q = 0; q < query_count_; ++q) {
      tops.emplace_back(
          std::min(some_deep && q < kDeepQueries ? sample_.depths_.back()
                                                 : options_.neighbour_count,
                   keys_.row_count - 1),
          &no_ids);
      // Allocates here, because what other threads allocate stays with the
      // process for longer.
      tops.back().Expect(keys_.row_count);
    }
    return tops;
  }

  // Offers all keys but those at the positions `left_out`.
  static void Offer(std::span<const std::int64_t> left_out, std::int64_t begin,
                    const float* similarities, std::int64_t count, TopK& top) {
    std::int32_t chosen[kBlockKeys];
    const std::int64_t chosen_count = ActiveKernels().SelectAtLeast(
        similarities, count, top.threshold(), chosen);
    for (std::int64_t c = 0; c < chosen_count; ++c) {
      const std::int32_t i = chosen[c];
      if (std::ranges::find(left_out, begin + i) != left_out.end()) continue;
      top.Offer({.logit = similarities[i],
                 .similarity = similarities[i],
                 .segment = 0,
                 .row = static_cast<RowIndex>(begin + i)});
    }
  }

  static void TakeFound(std::span<const TopK> tops,
                        std::vector<std::vector<std::int32_t>>& neighbours) {
    for (const TopK& top : tops) {
      std::vector<std::int32_t>& found = neighbours.emplace_back();
      for (const Candidate& candidate : top.Sorted()) {
        found.push_back(candidate.row);
      }
    }
  }

  bool FindNeighbours() {
    std::vector<TopK> tops = MakeTops(/*some_deep=*/true);
    const bool completed = ForEachBlock(
        sample_.queries_, [&](std::int64_t q, std::int64_t begin,
                              const float* similarities, std::int64_t count) {
          Offer({&sampled_[q], 1}, begin, similarities, count, tops[q]);
        });
    if (!completed) return false;
    TakeFound(tops, sample_.neighbours_);
    return true;
  }

  bool DrawBlends() {
    const auto key_count = static_cast<std::uint64_t>(keys_.row_count);
    sample_.blends_.assign(sample_.queries_.size(), 0);
    std::vector<std::vector<std::int64_t>> parts;  // positions, by blend
    for (std::int64_t q = 0; q < query_count_; ++q) {
      std::vector<std::int64_t>& of_blend = parts.emplace_back();
      float* blend = sample_.blends_.data() + q * keys_.dim;
      for (std::int64_t i = 0; i < SampleQueries::PartsOfBlend(q); ++i) {
        const auto p = static_cast<std::int64_t>(random_() % key_count);
        of_blend.push_back(p);
        const float factor = IsCosine() ? inverse_norms_[p] : 1;
        const std::span<const float> key = keys_.Row(p);
        for (std::size_t d = 0; d < key.size(); ++d) {
          blend[d] += factor * key[d];
        }
      }
    }
    std::vector<TopK> tops = MakeTops(/*some_deep=*/false);
    const bool completed = ForEachBlock(
        sample_.blends_, [&](std::int64_t q, std::int64_t begin,
                             const float* similarities, std::int64_t count) {
          Offer(parts[q], begin, similarities, count, tops[q]);
        });
    if (!completed) return false;
    TakeFound(tops, sample_.blend_neighbours_);
    return true;
  }

  const MatrixView keys_;
  const std::span<const float> inverse_norms_;
  const SampleOptions& options_;
  std::mt19937_64 random_;
  std::int64_t query_count_ = 0;
  std::vector<std::int64_t> sampled_;  // positions of the sampled keys
  SampleQueries sample_;
};

bool SampleQueries::Reaches(std::int64_t i, std::size_t d) const {
  return d == 0 || i < kDeepQueries;
}

absl::StatusOr<SampleQueries> SampleQueries::Draw(
    MatrixView keys, std::span<const float> inverse_norms,
    const SampleOptions& options) {
  return SampleDraw(keys, inverse_norms, options).Run();
}

}  // namespace attendant
