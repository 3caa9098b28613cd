#include "core/attention/softmax/state.h"

#include <algorithm>
#include <cmath>

#include "core/base/fail_point.h"
#include "core/kernels/kernels.h"
#include "core/kernels/select.h"

namespace attendant {
namespace {

// Makes the sums relative to `max`, which is at least their own max: exp(l -
// max) = exp(l - old) x scale, and a gap grows by old - max. Returns the scale.
double RaiseMax(float max, SoftmaxPartition& partition) {
  const double gap = double{partition.max} - max;
  const double scale = std::exp(gap);
  partition.sum_gap = scale * (partition.sum_gap + gap * partition.sum);
  partition.sum *= scale;
  partition.sum_square *= scale * scale;
  partition.max = max;
  return scale;
}

void Scale(double factor, std::vector<double>& sums) {
  for (double& sum : sums) sum *= factor;
}

}  // namespace

void SoftmaxPartition::Add(const float* logits, std::int64_t n, float* exps) {
  Add(logits, n, ActiveKernels().Max(logits, n), exps);
}

void SoftmaxPartition::Add(const float* logits, std::int64_t n, float greatest,
                           float* exps) {
  if (count == 0) {
    max = greatest;
  } else if (greatest > max) {
    RaiseMax(greatest, *this);
  }
  const ExpSums sums = ActiveKernels().SumExps(logits, n, max, exps);
  count += n;
  sum += sums.sum;
  sum_gap += sums.sum_gap;
  sum_square += sums.sum_square;
}

void SoftmaxPartition::Merge(const SoftmaxPartition& other) {
  if (other.count == 0) return;
  if (count == 0) {
    *this = other;
    return;
  }
  SoftmaxPartition raised = other;
  if (ATTENDANT_PLANTED_BUG("merge_max")) raised.max = max;
  if (raised.max > max) {
    RaiseMax(raised.max, *this);
  } else {
    RaiseMax(max, raised);
  }
  count += raised.count;
  sum += raised.sum;
  sum_gap += raised.sum_gap;
  sum_square += raised.sum_square;
}

std::optional<double> SoftmaxPartition::LogPartition() const {
  if (count == 0) return std::nullopt;
  return max + std::log(sum);
}

std::optional<double> SoftmaxPartition::Entropy() const {
  if (count == 0) return std::nullopt;
  // -sum w log w = log partition - mean logit, both relative to max. Rounding
  // may make it negative.
  return std::max(0.0, std::log(sum) - sum_gap / sum);
}

double SoftmaxPartition::EffectiveCount() const {
  if (count == 0) return 0;
  return std::clamp(sum * sum / sum_square, 1.0, static_cast<double>(count));
}

AttentionState::AttentionState(std::int64_t k, const IdResolver* ids,
                               std::int64_t value_dim)
    : top_(k, ids), pooled_(static_cast<std::size_t>(value_dim)) {}

void AttentionState::Add(std::int32_t segment, std::span<const RowIndex> rows,
                         std::span<const float> logits,
                         std::span<const float> similarities,
                         std::span<const float* const> values) {
  const Kernels& kernels = ActiveKernels();
  const std::size_t n = logits.size();
  const bool pools = !pooled_.empty();
  if (pools && exps_.size() < n) exps_.resize(n);
  // Thread-local, because each query makes a new state.
  thread_local std::vector<std::int32_t> positions;
  if (positions.size() < n) positions.resize(n);

  const float old_max = partition_.max;
  const bool was_empty = partition_.count == 0;
  partition_.Add(logits.data(), static_cast<std::int64_t>(n),
                 pools ? exps_.data() : nullptr);
  if (pools) {
    if (!was_empty && partition_.max > old_max) {
      Scale(std::exp(double{old_max} - partition_.max), pooled_);
    }
    Pool(values);
  }

  if (top_.k() == 0) return;
  const auto row_count = static_cast<std::int64_t>(n);
  std::int64_t selected_count = kernels.SelectAtLeast(
      logits.data(), row_count, top_.threshold(), positions.data());
  if (selected_count > 2 * top_.k()) {
    // In the first call all rows pass the threshold, so offer only those near
    // the k best of these rows.
    selected_count = kernels.SelectAtLeast(
        logits.data(), row_count,
        NearKthGreatest(logits, top_.k(), top_.k() + top_.k() / 4),
        positions.data());
  }
  top_.Expect(selected_count);
  for (std::int64_t s = 0; s < selected_count; ++s) {
    const auto i = static_cast<std::size_t>(positions[s]);
    top_.Offer({.logit = logits[i],
                .similarity = similarities[i],
                .segment = segment,
                .row = rows[i]});
  }
}

void AttentionState::Pool(std::span<const float* const> values) {
  // Eight rows fit into the L1 cache together, with their sums in registers.
  constexpr std::int64_t kTogether = 8;
  double factors[kTogether];
  const float* rows[kTogether];
  std::int64_t count = 0;
  const auto add = [&] {
    ActiveKernels().AddScaledRows(factors, rows, count, value_dim(),
                                  pooled_.data());
    count = 0;
  };
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (exps_[i] == 0) continue;
    factors[count] = exps_[i];
    rows[count] = values[i];
    if (++count == kTogether) add();
  }
  add();
}

void AttentionState::AddUnkept(const SoftmaxPartition& rows,
                               std::span<const double> value_sum) {
  if (rows.count == 0) return;
  const float old_max = partition_.max;
  const bool was_empty = partition_.count == 0;
  partition_.Merge(rows);
  unkept_.Merge(rows);
  if (pooled_.empty()) return;
  if (!was_empty) {
    Scale(std::exp(double{old_max} - partition_.max), pooled_);
  }
  const double scale = std::exp(double{rows.max} - partition_.max);
  for (std::size_t d = 0; d < value_sum.size(); ++d) {
    pooled_[d] += scale * value_sum[d];
  }
}

std::vector<float> AttentionState::PooledValue() const {
  std::vector<float> mean(pooled_.size());
  if (partition_.count == 0) return mean;
  for (std::size_t d = 0; d < mean.size(); ++d) {
    mean[d] = static_cast<float>(pooled_[d] / partition_.sum);
  }
  return mean;
}

}  // namespace attendant
