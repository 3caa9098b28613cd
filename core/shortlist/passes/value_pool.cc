#include "core/shortlist/passes/value_pool.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "core/kernels/codes.h"
#include "core/kernels/kernels.h"
#include "core/kernels/weigh_codes.h"

namespace attendant {
namespace {

// Greatest weight of this many planes: the factor that scales weights to it,
// when rounded up, gives no more than the last number of these bits.
constexpr float GreatestWeight(int planes) {
  return static_cast<float>((1 << (kCodeWeightPlaneBits * planes)) - 2);
}
// Rounding may move a chunk's weights by this share, as root mean squares,
// which is less than the error of codes of 4 bits. Fewer planes are faster.
constexpr double kRoundingShare = 0.02;
// Residue of a sum of floats, as a share of it, after all of it was subtracted
// again.
constexpr double kResidueShare = 0x1p-17;

// Returns the least number of planes that rounds `count` weights well enough.
int PlanesFor(const WeightSums& sums, std::int64_t count) {
  const double greatest = sums.greatest;
  int planes = 1;
  while (planes < kCodeWeightPlanes) {
    const double unit = greatest / GreatestWeight(planes);
    if (static_cast<double>(count) * unit * unit / 12 <=
        kRoundingShare * kRoundingShare * sums.square_sum) {
      break;
    }
    ++planes;
  }
  return planes;
}

}  // namespace

void ValuePool::Start(const InvertedLists& lists, const ListValues& values) {
  lists_ = &lists;
  values_ = &values;
  started_ = false;
  sum_ = added_ = rounding_square_ = 0;
  mean_sums_ = {};
  list_sums_.assign(static_cast<std::size_t>(lists.list_count()), 0);
  const KeyCodes& codes = values.codes(lists);
  const auto components =
      static_cast<std::size_t>(codes.step_count() * kCodeDims);
  code_sums_.assign(components, 0);
  constexpr auto kKeys =
      static_cast<std::size_t>(kMaxWeighedBlocks * kCodeRows);
  weights_.resize(kKeys);
  rounded_.resize(kKeys);
}

void ValuePool::Raise(float max) {
  if (started_ && max <= max_) return;
  if (started_) {
    const double factor = std::exp(double{max_} - max);
    sum_ *= factor;
    rounding_square_ *= factor * factor;
    mean_sums_.square *= factor;
    mean_sums_.scale_square_norm *= factor;
    mean_sums_.scale_square_norm_square *= factor;
    for (double& sum : list_sums_) sum *= factor;
    for (double& sum : code_sums_) sum *= factor;
  }
  started_ = true;
  max_ = max;
}

void ValuePool::AddMeans(std::size_t list, double e) {
  const ListValues::Means& means = values_->list_means()[list];
  mean_sums_.square += e * means.square;
  mean_sums_.scale_square_norm += e * means.scale_square_norm;
  mean_sums_.scale_square_norm_square += e * means.scale_square_norm_square;
}

void ValuePool::WeighBlocks(int plane_count, double unit) {
  const std::size_t key_count = blocks_.size() * kCodeRows;
  values_->codes(*lists_).AddWeighed({rounded_.data(), key_count}, plane_count,
                                     blocks_, unit, code_sums_.data());
}

void ValuePool::Add(std::int64_t list, std::int64_t begin, std::int64_t count,
                    const float* exps, float max) {
  const WeighCodesKernels& kernels = ActiveWeighCodesKernels();
  Raise(max);
  const double factor = std::exp(double{max} - max_);
  // The factor of a value's code: e, times the norm of a normalised key.
  const float* counts = exps;
  alignas(64) float with_norms[kMaxWeighedBlocks * kCodeRows];
  if (values_->normalised()) {
    const float* inverses = lists_->inverse_norms.data() + begin;
    for (std::int64_t i = 0; i < count; ++i) {
      with_norms[i] = inverses[i] > 0 ? exps[i] / inverses[i] : 0.0f;
    }
    counts = with_norms;
  }
  double sum_of_all = 0;
  for (std::int64_t i = 0; i < count; ++list) {
    const auto l = static_cast<std::size_t>(list);
    const std::int64_t end = std::min(count, lists_->offsets[l + 1] - begin);
    if (end <= i) continue;
    const double sum = factor * kernels.Sum(exps + i, end - i);
    sum_of_all += sum;
    AddMeans(l, sum);
    list_sums_[l] +=
        counts == exps ? sum : factor * kernels.Sum(counts + i, end - i);
    i = end;
  }
  sum_ += sum_of_all;
  const KeyCodes& codes = values_->codes(*lists_);
  const WeightSums weights = kernels.ScaleWeights(
      counts, codes.scales().data() + begin, count, weights_.data());
  if (!(weights.greatest > 0)) return;
  const int planes = PlanesFor(weights, count);
  const float inverse = GreatestWeight(planes) / weights.greatest;
  if (!std::isfinite(inverse)) return;  // too little to weigh
  // Expressed as errors of e, since a weight is e times about the same number.
  const double rounding = sum_of_all / weights.sum / inverse;
  rounding_square_ += static_cast<double>(count) * rounding * rounding / 12;
  kernels.RoundWeights(weights_.data(), count, inverse, rounded_.data());
  const std::int64_t block_count = (count + kCodeRows - 1) / kCodeRows;
  std::fill(rounded_.begin() + count,
            rounded_.begin() + block_count * kCodeRows, 0);
  blocks_.resize(static_cast<std::size_t>(block_count));
  for (std::int64_t b = 0; b < block_count; ++b) {
    blocks_[b] = static_cast<std::int32_t>(begin / kCodeRows + b);
  }
  WeighBlocks(planes, factor / inverse);
}

void ValuePool::Remove(std::span<const std::int32_t> positions,
                       std::span<const float> logits) {
  added_ = sum_;
  const KeyCodes& codes = values_->codes(*lists_);
  // Prefetches blocks of keys that are no longer in a near cache.
  std::size_t asked = 0;
  const auto ask_for = [&](std::size_t end) {
    for (; asked < std::min(end, positions.size()); ++asked) {
      const std::int64_t block = positions[asked] / kCodeRows;
      if (asked > 0 && positions[asked - 1] / kCodeRows == block) continue;
      codes.PrefetchBlock(block, CodeBits::k4);
    }
  };
  ask_for(kMaxWeighedBlocks);
  std::int64_t list = 0;
  for (std::size_t first = 0; first < positions.size();) {
    ask_for(first + 2 * kMaxWeighedBlocks);
    // Keys of as many blocks as are weighed at once.
    blocks_.clear();
    std::size_t end = first;
    float greatest = 0;
    for (; end < positions.size(); ++end) {
      const auto block = static_cast<std::int32_t>(positions[end] / kCodeRows);
      if (blocks_.empty() || blocks_.back() != block) {
        if (blocks_.size() == kMaxWeighedBlocks) break;
        std::fill_n(weights_.begin() +
                        static_cast<std::ptrdiff_t>(blocks_.size()) * kCodeRows,
                    kCodeRows, 0.0f);
        blocks_.push_back(block);
      }
      const auto position = static_cast<std::size_t>(positions[end]);
      while (lists_->offsets[static_cast<std::size_t>(list) + 1] <=
             positions[end]) {
        ++list;
      }
      const auto l = static_cast<std::size_t>(list);
      const double e = std::exp(double{logits[end]} - max_);
      const double norm = values_->NormOf(*lists_, positions[end]);
      const double scale = codes.scales()[position];
      sum_ -= e;
      AddMeans(l, -e);
      list_sums_[l] -= e * norm;
      const auto weight = static_cast<float>(e * norm * scale);
      weights_[(blocks_.size() - 1) * kCodeRows + position % kCodeRows] =
          weight;
      greatest = std::max(greatest, weight);
    }
    first = end;
    if (!(greatest > 0)) continue;
    const float inverse = GreatestWeight(kCodeWeightPlanes) / greatest;
    if (!std::isfinite(inverse)) continue;  // too little to weigh
    ActiveWeighCodesKernels().RoundWeights(
        weights_.data(), static_cast<std::int64_t>(blocks_.size()) * kCodeRows,
        inverse, rounded_.data());
    WeighBlocks(kCodeWeightPlanes, -1 / double{inverse});
  }
}

const ValuePool::Rest& ValuePool::Take() {
  rest_.empty = !started_ || !(sum_ > kResidueShare * added_);
  if (rest_.empty) return rest_;
  const KeyCodes& codes = values_->codes(*lists_);
  codes.rotation().Undo(code_sums_.data());
  const auto dim = static_cast<std::size_t>(values_->dim());
  rest_.mean.assign(code_sums_.begin(),
                    code_sums_.begin() + static_cast<std::ptrdiff_t>(dim));
  const MatrixView means = values_->means(*lists_);
  used_sums_.clear();
  used_means_.clear();
  for (std::size_t l = 0; l < list_sums_.size(); ++l) {
    if (list_sums_[l] == 0) continue;
    used_sums_.push_back(list_sums_[l]);
    used_means_.push_back(means.Row(static_cast<std::int64_t>(l)).data());
  }
  ActiveKernels().AddScaledRows(used_sums_.data(), used_means_.data(),
                                static_cast<std::int64_t>(used_sums_.size()),
                                means.dim, rest_.mean.data());
  for (double& component : rest_.mean) component /= sum_;
  rest_.log_rounding_square = 2.0 * max_ + std::log(rounding_square_);
  const auto mean = [&](double sum) { return std::max(0.0, sum / sum_); };
  rest_.means = {mean(mean_sums_.square), mean(mean_sums_.scale_square_norm),
                 mean(mean_sums_.scale_square_norm_square)};
  return rest_;
}

}  // namespace attendant
