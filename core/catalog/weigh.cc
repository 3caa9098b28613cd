#include "core/catalog/weigh.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace attendant {
namespace {

constexpr double kNothing = -std::numeric_limits<double>::infinity();

double LogSumExp(const std::vector<float>& logits) {
  double max = kNothing;
  for (const float logit : logits) max = std::max(max, double{logit});
  if (max == kNothing) return kNothing;
  double sum = 0;
  for (const float logit : logits) sum += std::exp(logit - max);
  return max + std::log(sum);
}

}  // namespace

double LogAdd(double a, double b) {
  if (a < b) std::swap(a, b);
  return b == kNothing ? a : a + std::log1p(std::exp(b - a));
}

LogPartitions PartitionsOf(const ScoredRows& scored) {
  LogPartitions partitions;
  for (const std::vector<float>& logits : scored.logits) {
    partitions.push_back(LogSumExp(logits));
  }
  return partitions;
}

Weigher::Weigher(ActivationKind kind, LogPartitions log_partitions)
    : kind_(kind), log_partitions_(std::move(log_partitions)) {
  for (const double partition : log_partitions_) {
    if (kind_ != ActivationKind::kSoftmax || partition != kNothing) {
      ++seeing_count_;
    }
  }
}

double Weigher::InHead(const ScoredRows& scored, std::size_t head,
                       std::size_t row) const {
  const double logit = scored.logits[head][row];
  if (logit == kNothing) return 0;
  switch (kind_) {
    case ActivationKind::kSoftmax:
      // Rounding may carry the weight of a lone row past 1.
      return std::min(1.0, std::exp(logit - log_partitions_[head]));
    case ActivationKind::kSigmoid:
      return 1 / (1 + std::exp(-logit));
    case ActivationKind::kNone:
      return logit;
  }
  return 0;
}

double Weigher::Mean(const ScoredRows& scored, std::size_t row) const {
  if (seeing_count_ == 0) return 0;
  double sum = 0;
  for (std::size_t h = 0; h < scored.logits.size(); ++h) {
    sum += InHead(scored, h, row);
  }
  return sum / seeing_count_;
}

double Weigher::LogMean(const ScoredRows& scored, std::size_t row) const {
  double sum = kNothing;
  for (std::size_t h = 0; h < scored.logits.size(); ++h) {
    if (log_partitions_[h] == kNothing) continue;
    sum = LogAdd(sum, scored.logits[h][row] - log_partitions_[h]);
  }
  return sum - std::log(seeing_count_);
}

double Weigher::MassInHead(const LogPartitions& part, std::size_t head) const {
  if (log_partitions_[head] == kNothing) return 0;
  return std::min(1.0, std::exp(part[head] - log_partitions_[head]));
}

double Weigher::MassOf(const LogPartitions& part) const {
  if (seeing_count_ == 0) return 0;
  double sum = 0;
  for (std::size_t h = 0; h < part.size(); ++h) sum += MassInHead(part, h);
  return sum / seeing_count_;
}

}  // namespace attendant
