#include "core/catalog/query/pool.h"

#include <algorithm>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "core/base/status.h"
#include "core/kernels/kernels.h"
#include "core/kernels/prefetch.h"

namespace attendant {
namespace {

// The number of values pooled at once, while the following ones, which are
// scattered in memory, are prefetched.
constexpr std::size_t kTogether = 8;
constexpr std::size_t kAhead = 2 * kTogether;
// Floats of values between two checks of the interrupt.
constexpr std::int64_t kInterruptFloats = std::int64_t{1} << 20;

// Finds each row's value, or its key if it has none; null if it has neither. A
// separate loop, so that lookups overlap their memory latency. Returns the
// number of keys.
std::int64_t FindValues(const Snapshot& snapshot, int field,
                        const ScoredRows& scored,
                        std::vector<const float*>& values) {
  values.assign(scored.size(), nullptr);
  std::int64_t key_count = 0;
  for (std::size_t i = 0; i < scored.size(); ++i) {
    const RowAddress& address = scored.rows[i];
    const std::span<const float> key = snapshot.KeyOf(address, field);
    if (key.empty()) continue;
    values[i] =
        snapshot.segments[address.segment].segment->rows->ValueOf(address.row);
    if (values[i] != nullptr) continue;
    values[i] = key.data();
    ++key_count;
  }
  return key_count;
}

// Removes null values, and their weights.
void DropMissing(std::vector<const float*>& values,
                 std::vector<double>& weights) {
  std::size_t count = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (values[i] == nullptr) continue;
    values[count] = values[i];
    weights[count++] = weights[i];
  }
  values.resize(count);
  weights.resize(count);
}

// Adds the weighted values to `sum`, in order.
absl::Status AddWeighted(std::span<const float* const> values,
                         std::span<const double> weights,
                         const Interrupt& interrupt, std::span<double> sum) {
  std::int64_t floats_since_check = 0;
  const Kernels& kernels = ActiveKernels();
  const auto dim = static_cast<std::int64_t>(sum.size());
  const auto group = [&](std::size_t begin, std::size_t count) {
    const std::size_t first = std::min(begin, values.size());
    return values.subspan(first, std::min(count, values.size() - first));
  };
  const auto prefetch = [&](std::span<const float* const> next) {
    for (const float* value : next) PrefetchRow(value, dim);
  };
  prefetch(group(0, kAhead));
  for (std::size_t i = 0; i < values.size(); i += kTogether) {
    const auto now = group(i, kTogether);
    prefetch(group(i + kAhead, kTogether));
    kernels.AddScaledRows(weights.data() + i, now.data(),
                          static_cast<std::int64_t>(now.size()), dim,
                          sum.data());
    floats_since_check += static_cast<std::int64_t>(now.size()) * dim;
    if (floats_since_check < kInterruptFloats) continue;
    floats_since_check = 0;
    ATTENDANT_RETURN_IF_ERROR(interrupt.Check());
  }
  return absl::OkStatus();
}

}  // namespace

std::vector<float> HeadPools::Mean(ActivationKind kind,
                                   const ByHead<double>& head_weights) const {
  double weight_sum = 0;
  for (std::size_t h = 0; h < sums.size(); ++h) {
    if (kind != ActivationKind::kSoftmax || row_counts[h] > 0) {
      weight_sum += head_weights[h];
    }
  }
  std::vector<float> mean(sums.front().size());
  if (weight_sum == 0) return mean;
  for (std::size_t d = 0; d < mean.size(); ++d) {
    double of_heads = 0;
    for (std::size_t h = 0; h < sums.size(); ++h) {
      of_heads += head_weights[h] * sums[h][d];
    }
    mean[d] = static_cast<float>(of_heads / weight_sum);
  }
  return mean;
}

double HeadPools::MeanDeviation(const ByHead<double>& head_weights) const {
  double sum = 0;
  double weight_sum = 0;
  for (std::size_t h = 0; h < deviations.size(); ++h) {
    sum += head_weights[h] * deviations[h];
    if (row_counts[h] > 0) weight_sum += head_weights[h];
  }
  return weight_sum > 0 ? sum / weight_sum : 0;
}

absl::Status PoolRows(const Snapshot& snapshot, const QueryPlan& plan,
                      const ScoredRows& scored, const Weigher& weigher,
                      const Interrupt& interrupt, HeadPools& pools) {
  thread_local std::vector<const float*> values;
  thread_local std::vector<double> weights;
  for (std::size_t h = 0; h < plan.heads.size(); ++h) {
    const int field = plan.heads[h].field;
    const std::int64_t dim = snapshot.schema->PooledDim(field);
    const std::int64_t key_as_value_count =
        FindValues(snapshot, field, scored, values);
    if (plan.select_kind == SelectKind::kHard) {
      weights.assign(scored.size(), 1);
    } else {
      weigher.InHead(scored, h, weights);
    }
    DropMissing(values, weights);
    std::vector<double> sum(static_cast<std::size_t>(dim));
    ATTENDANT_RETURN_IF_ERROR(AddWeighted(values, weights, interrupt, sum));
    pools.sums.push_back(std::move(sum));
    pools.weight_sums.push_back(
        std::accumulate(weights.begin(), weights.end(), 0.0));
    pools.row_counts.push_back(static_cast<std::int64_t>(values.size()));
    pools.key_as_value_count =
        std::max(pools.key_as_value_count, key_as_value_count);
  }
  return absl::OkStatus();
}

HeadPools PoolScans(const ByHead<HeadScan>& scans) {
  HeadPools pools;
  for (const HeadScan& scan : scans) {
    pools.sums.emplace_back(scan.pooled_value.begin(), scan.pooled_value.end());
    pools.weight_sums.push_back(scan.partition.count > 0 ? 1 : 0);
    pools.row_counts.push_back(scan.partition.count);
    pools.key_as_value_count =
        std::max(pools.key_as_value_count, scan.key_as_value_count);
    pools.exact &= scan.pooled_exactly;
    pools.deviations.push_back(scan.pooled_deviation);
  }
  return pools;
}

std::vector<float> HeadOutput(const MultiHeadProjections& model,
                              const HeadPools& pools, std::size_t head) {
  const std::vector<double>& sum = pools.sums[head];
  std::vector<float> pooled(sum.begin(), sum.end());
  if (!model.value) return pooled;
  const std::int64_t row_count = model.value->output_dim() / model.head_count;
  const std::int64_t first_row = static_cast<std::int64_t>(head) * row_count;
  const std::int64_t dim = model.value->input_dim();
  std::vector<float> output(static_cast<std::size_t>(row_count));
  ProjectRows(
      {model.value->weight.data.data() + first_row * dim, row_count, dim}, {},
      {pooled.data(), 1, dim}, output.data());
  if (model.value->bias.empty()) return output;
  for (std::size_t i = 0; i < output.size(); ++i) {
    output[i] += static_cast<float>(
        pools.weight_sums[head] *
        model.value->bias[static_cast<std::size_t>(first_row) + i]);
  }
  return output;
}

std::vector<float> ModelOutput(const MultiHeadProjections& model,
                               const std::vector<std::vector<float>>& outputs,
                               bool pooled_anything) {
  std::vector<float> joined;
  for (const std::vector<float>& output : outputs) {
    joined.insert(joined.end(), output.begin(), output.end());
  }
  if (!model.output) return joined;
  std::vector<float> output(
      static_cast<std::size_t>(model.output->output_dim()));
  if (pooled_anything) Project(*model.output, joined, output);
  return output;
}

}  // namespace attendant
