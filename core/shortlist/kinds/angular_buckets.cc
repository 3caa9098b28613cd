#include "core/shortlist/kinds/angular_buckets.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "core/attention/approximations/angular_argmax.h"
#include "core/attention/softmax/score.h"
#include "core/base/random.h"
#include "core/base/status.h"
#include "core/kernels/kernels.h"
#include "core/shortlist/builds/guard_build.h"

namespace attendant {
namespace {

constexpr std::int64_t kBlockKeys = 64;
// More than any bucket scores, since the norms of keys are at most about 1: the
// query's own buckets come first, whatever score is expected of them.
constexpr float kOwn = 100;

AngularArgmax NearestOf(const float* products, std::int64_t count) {
  AngularArgmax nearest;
  nearest.Add(products, count);
  return nearest;
}

// Returns unit vectors in random directions.
std::vector<float> RandomDirections(std::int64_t count, std::int64_t dim,
                                    std::uint64_t seed) {
  std::vector<float> directions(static_cast<std::size_t>(count * dim));
  FillNormals(NormalUse::kIndexDirections, seed, 0, directions);
  for (std::int64_t i = 0; i < count; ++i) {
    const std::span<float> direction =
        std::span(directions)
            .subspan(static_cast<std::size_t>(i * dim),
                     static_cast<std::size_t>(dim));
    const double norm = Norm(direction);
    for (float& component : direction) {
      component = static_cast<float>(component / norm);
    }
  }
  return directions;
}

// Returns the range of each key's norm. Ranges have equally many keys, the
// shortest first.
std::vector<std::int32_t> NormRanges(const std::vector<double>& norms,
                                     std::int64_t range_count) {
  std::vector<std::int32_t> order(norms.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, [&norms](std::int32_t a, std::int32_t b) {
    return norms[a] < norms[b];
  });
  std::vector<std::int32_t> ranges(norms.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    ranges[order[i]] =
        static_cast<std::int32_t>(static_cast<std::int64_t>(i) * range_count /
                                  static_cast<std::int64_t>(order.size()));
  }
  return ranges;
}

}  // namespace

bool AngularBuckets::Build(MatrixView keys, std::span<const float> factors,
                           const AngularOptions& options,
                           std::vector<std::int32_t>& bucket_of) {
  options_ = options;
  dim_ = keys.dim;
  key_count_ = keys.row_count;
  const std::int64_t directions = options.direction_count;
  const std::int64_t rounds = options.round_count;
  directions_ = RandomDirections(rounds * directions, dim_, options.seed);
  std::vector<double> norms(static_cast<std::size_t>(key_count_));
  for (std::int64_t p = 0; p < key_count_; ++p) {
    const auto at = static_cast<std::size_t>(p);
    norms[at] = Norm(keys.Row(p)) * factors[at];
  }
  const std::vector<std::int32_t> ranges =
      NormRanges(norms, options.norm_range_count);

  // Sums per bucket of the keys' products with their direction, and of their
  // squared norms.
  const auto bucket_count =
      static_cast<std::size_t>(rounds * BucketsPerRound());
  bucket_of.resize(static_cast<std::size_t>(rounds * key_count_));
  std::vector<double> product_sums(bucket_count), square_sums(bucket_count);
  offsets_.assign(bucket_count + 1, 0);
  std::vector<float> products(
      static_cast<std::size_t>(kBlockKeys * rounds * directions));
  for (std::int64_t begin = 0; begin < key_count_; begin += kBlockKeys) {
    if (IsCancelled(options.cancelled)) return false;
    const std::int64_t count = std::min(kBlockKeys, key_count_ - begin);
    ActiveKernels().DotRowsMulti(keys.data + begin * dim_, count,
                                 directions_.data(), rounds * directions, dim_,
                                 products.data());
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int64_t p = begin + i;
      const auto at = static_cast<std::size_t>(p);
      for (std::int64_t r = 0; r < rounds; ++r) {
        const AngularArgmax nearest = NearestOf(
            products.data() + (i * rounds + r) * directions, directions);
        const auto bucket = static_cast<std::size_t>(
            r * BucketsPerRound() + ranges[at] * 2 * directions +
            nearest.bucket());
        bucket_of[r * key_count_ + p] = static_cast<std::int32_t>(bucket);
        ++offsets_[bucket + 1];
        product_sums[bucket] += nearest.size * factors[at];
        square_sums[bucket] += norms[at] * norms[at];
      }
    }
  }
  std::partial_sum(offsets_.begin(), offsets_.end(), offsets_.begin());
  members_.resize(bucket_of.size());
  std::vector<std::int64_t> next(offsets_.begin(), offsets_.end() - 1);
  for (std::size_t i = 0; i < bucket_of.size(); ++i) {
    const auto bucket = static_cast<std::size_t>(bucket_of[i]);
    members_[next[bucket]++] =
        static_cast<std::int32_t>(static_cast<std::int64_t>(i) % key_count_);
  }

  scores_of_mean_.assign(bucket_count, 0);
  reaches_.assign(bucket_count, std::numeric_limits<float>::lowest());
  for (std::size_t b = 0; b < bucket_count; ++b) {
    const auto n = static_cast<double>(offsets_[b + 1] - offsets_[b]);
    if (n == 0) continue;
    const double mean = product_sums[b] / n;
    // The part of a key that is not along its direction may lie in any other:
    // the best of n normal numbers exceeds their mean by about sqrt(2 log n)
    // deviations.
    const double variance = std::max(0.0, square_sums[b] / n - mean * mean) /
                            static_cast<double>(dim_);
    scores_of_mean_[b] = static_cast<float>(mean);
    reaches_[b] = static_cast<float>(std::sqrt(2 * variance * std::log(n + 1)));
  }
  return true;
}

std::span<const std::int32_t> AngularBuckets::KeysOf(
    std::int64_t bucket) const {
  const auto b = static_cast<std::size_t>(bucket);
  return std::span(members_).subspan(
      static_cast<std::size_t>(offsets_[b]),
      static_cast<std::size_t>(offsets_[b + 1] - offsets_[b]));
}

void AngularBuckets::Score(std::span<const float> query,
                           std::vector<float>& scores) const {
  const std::int64_t directions = options_.direction_count;
  const std::int64_t all = options_.round_count * directions;
  thread_local std::vector<float> unit;
  thread_local std::vector<float> products;
  products.resize(static_cast<std::size_t>(all));
  scores.resize(scores_of_mean_.size());
  DirectionOf(query, unit);
  ActiveKernels().DotRows(unit.data(), directions_.data(), all, dim_,
                          products.data());
  std::size_t b = 0;
  for (std::int64_t r = 0; r < options_.round_count; ++r) {
    const float* of_round = products.data() + r * directions;
    const auto own =
        static_cast<std::size_t>(NearestOf(of_round, directions).bucket());
    for (std::int64_t range = 0; range < options_.norm_range_count; ++range) {
      const std::size_t first = b;
      for (const float sign : {1.0f, -1.0f}) {
        for (std::int64_t d = 0; d < directions; ++d, ++b) {
          scores[b] = sign * of_round[d] * scores_of_mean_[b] + reaches_[b];
        }
      }
      scores[first + own] += kOwn;
    }
  }
}

std::int64_t AngularBuckets::memory_bytes() const {
  return static_cast<std::int64_t>(directions_.size() * sizeof(float) +
                                   offsets_.size() * sizeof(std::int64_t) +
                                   members_.size() * sizeof(std::int32_t) +
                                   (scores_of_mean_.size() + reaches_.size()) *
                                       sizeof(float));
}

void AngularBuckets::Save(ByteSink& sink) const {
  sink.Put(options_.round_count);
  sink.Put(options_.direction_count);
  sink.Put(options_.norm_range_count);
  sink.PutArray(std::span<const float>(directions_));
  sink.PutArray(std::span<const std::int64_t>(offsets_));
  sink.PutArray(std::span<const std::int32_t>(members_));
  sink.PutArray(std::span<const float>(scores_of_mean_));
  sink.PutArray(std::span<const float>(reaches_));
}

absl::StatusOr<AngularBuckets> AngularBuckets::Load(ByteSource& source,
                                                    std::int64_t key_count,
                                                    std::int64_t dim) {
  // Keeps products of the counts within 64 bits.
  constexpr std::int64_t kMost = 1 << 20;
  AngularBuckets buckets;
  AngularOptions& options = buckets.options_;
  options.round_count = source.Get<std::int64_t>();
  options.direction_count = source.Get<std::int64_t>();
  options.norm_range_count = source.Get<std::int64_t>();
  buckets.dim_ = dim;
  buckets.key_count_ = key_count;
  buckets.directions_ = source.GetArray<std::vector<float>>();
  buckets.offsets_ = source.GetArray<std::vector<std::int64_t>>();
  buckets.members_ = source.GetArray<std::vector<std::int32_t>>();
  buckets.scores_of_mean_ = source.GetArray<std::vector<float>>();
  buckets.reaches_ = source.GetArray<std::vector<float>>();
  ATTENDANT_RETURN_IF_ERROR(source.status());
  const auto is_count = [](std::int64_t count) {
    return count >= 1 && count <= kMost;
  };
  const auto holds = [](const auto& array, std::int64_t count) {
    return static_cast<std::int64_t>(array.size()) == count;
  };
  const bool fits =
      is_count(options.round_count) && is_count(options.direction_count) &&
      is_count(options.norm_range_count) &&
      holds(buckets.directions_,
            options.round_count * options.direction_count * dim) &&
      holds(buckets.scores_of_mean_,
            options.round_count * buckets.BucketsPerRound()) &&
      holds(buckets.reaches_, buckets.bucket_count()) &&
      holds(buckets.offsets_, buckets.bucket_count() + 1) &&
      holds(buckets.members_, options.round_count * key_count) &&
      buckets.offsets_.front() == 0 &&
      holds(buckets.members_, buckets.offsets_.back()) &&
      std::ranges::is_sorted(buckets.offsets_) &&
      std::ranges::all_of(buckets.members_, [key_count](std::int32_t position) {
        return position >= 0 && position < key_count;
      });
  if (!fits) return absl::DataLossError("it has no buckets of its keys");
  return buckets;
}

}  // namespace attendant
