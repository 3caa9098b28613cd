#include "core/catalog/query/weigh.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/attention/softmax/log_add.h"
#include "core/base/minus_infinity.h"
#include "core/kernels/kernels.h"

namespace attendant {
namespace {

LogPartition LogSumExp(const std::vector<float>& logits) {
  const Kernels& kernels = ActiveKernels();
  const auto count = static_cast<std::int64_t>(logits.size());
  LogPartition partition;
  if (count > 0) partition.max = kernels.Max(logits.data(), count);
  if (partition.empty()) return partition;
  thread_local std::vector<double> exps;
  exps.resize(logits.size());
  partition.log_sum =
      std::log(kernels.Exps(logits.data(), count, partition.max, exps.data()));
  return partition;
}

}  // namespace

LogPartition LogPartitionOf(const SoftmaxPartition& partition) {
  if (partition.count == 0) return {};
  return {partition.max, std::log(partition.sum)};
}

LogPartitions PartitionsOf(const ScoredRows& scored) {
  LogPartitions partitions;
  for (const std::vector<float>& logits : scored.logits) {
    partitions.push_back(LogSumExp(logits));
  }
  return partitions;
}

Weigher::Weigher(ActivationKind kind, LogPartitions log_partitions,
                 ByHead<double> head_weights)
    : kind_(kind),
      log_partitions_(std::move(log_partitions)),
      head_weights_(std::move(head_weights)) {
  for (std::size_t h = 0; h < head_weights_.size(); ++h) {
    if (kind_ != ActivationKind::kSoftmax || !log_partitions_[h].empty()) {
      seeing_weight_ += head_weights_[h];
    }
  }
}

double Weigher::InHead(const ScoredRows& scored, std::size_t head,
                       std::size_t row) const {
  const double logit = scored.logits[head][row];
  if (logit == kMinusInfinity) return 0;
  switch (kind_) {
    case ActivationKind::kSoftmax:
      // Rounding may carry the weight of a single row above 1.
      return std::min(1.0, std::exp(log_partitions_[head].LogWeight(logit)));
    case ActivationKind::kSigmoid:
      return 1 / (1 + std::exp(-logit));
    case ActivationKind::kNone:
      return logit;
  }
  return 0;
}

void Weigher::InHead(const ScoredRows& scored, std::size_t head,
                     std::vector<double>& weights) const {
  weights.resize(scored.size());
  if (kind_ != ActivationKind::kSoftmax) {
    for (std::size_t i = 0; i < weights.size(); ++i) {
      weights[i] = InHead(scored, head, i);
    }
    return;
  }
  const LogPartition& partition = log_partitions_[head];
  if (partition.empty()) {
    std::ranges::fill(weights, 0.0);
    return;
  }
  ActiveKernels().Exps(scored.logits[head].data(),
                       static_cast<std::int64_t>(weights.size()), partition.max,
                       weights.data());
  const double factor = std::exp(-partition.log_sum);
  for (double& weight : weights) weight = std::min(1.0, weight * factor);
}

double Weigher::Mean(const ScoredRows& scored, std::size_t row) const {
  double sum = 0;
  for (std::size_t h = 0; h < scored.logits.size(); ++h) {
    sum += TermOf(InHead(scored, h, row), h);
  }
  return MeanOfSum(sum);
}

double Weigher::LogMean(const ScoredRows& scored, std::size_t row) const {
  double sum = kMinusInfinity;
  for (std::size_t h = 0; h < scored.logits.size(); ++h) {
    if (log_partitions_[h].empty()) continue;
    sum = LogAdd(sum, std::log(head_weights_[h]) +
                          log_partitions_[h].LogWeight(scored.logits[h][row]));
  }
  return sum - std::log(seeing_weight_);
}

}  // namespace attendant
