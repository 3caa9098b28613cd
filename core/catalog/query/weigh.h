// Turns the logits of several heads into the weights of items: each head
// normalises on its own, and an item's weight is the mean over heads, by the
// heads' own weights.
#ifndef ATTENDANT_CORE_CATALOG_QUERY_WEIGH_H_
#define ATTENDANT_CORE_CATALOG_QUERY_WEIGH_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/attention/softmax/score.h"
#include "core/attention/softmax/state.h"
#include "core/base/minus_infinity.h"
#include "core/catalog/query/scored_rows.h"

namespace attendant {

// log sum exp of logits, kept as two parts max + log_sum: their sum would lose
// all digits of log_sum where logits are huge. max is -infinity if there are no
// logits.
struct LogPartition {
  double max = kMinusInfinity;
  double log_sum = 0;

  bool empty() const { return max == kMinusInfinity; }
  // Returns logit - log partition. The partition must not be empty.
  double LogWeight(double logit) const { return (logit - max) - log_sum; }
};

LogPartition LogPartitionOf(const SoftmaxPartition& partition);

// By head; empty for a head that sees nothing in the scope.
using LogPartitions = ByHead<LogPartition>;

// Returns the partitions over all of `scored`.
LogPartitions PartitionsOf(const ScoredRows& scored);

// Computes the weights of rows from their logits. With SOFTMAX a head's weight
// is exp(logit - its log partition). Heads that see nothing in the scope do not
// count in the mean, so that means sum to 1 too.
class Weigher {
 public:
  // Both have one entry per head. log_partitions is used only for SOFTMAX;
  // head_weights are > 0.
  Weigher(ActivationKind kind, LogPartitions log_partitions,
          ByHead<double> head_weights);

  double InHead(const ScoredRows& scored, std::size_t head,
                std::size_t row) const;
  // Computes the weights of all rows, equal to those above up to rounding.
  // `weights` becomes [scored.size()].
  void InHead(const ScoredRows& scored, std::size_t head,
              std::vector<double>& weights) const;
  // Returns a weight in one head as its term in the sum of which MeanOfSum
  // makes the mean.
  double TermOf(double weight, std::size_t head) const {
    return head_weights_[head] * weight;
  }
  // Returns the mean weight over heads.
  double Mean(const ScoredRows& scored, std::size_t row) const;
  // Returns the mean from a sum over heads that started with the first head.
  double MeanOfSum(double sum) const {
    return seeing_weight_ == 0 ? 0 : sum / seeing_weight_;
  }
  // Returns log(Mean), for SOFTMAX. It is exact even where Mean underflows to
  // 0.
  double LogMean(const ScoredRows& scored, std::size_t row) const;

 private:
  ActivationKind kind_;
  LogPartitions log_partitions_;
  ByHead<double> head_weights_;
  double seeing_weight_ = 0;  // of heads that see something, or of all heads
};

}  // namespace attendant

#endif  // ATTENDANT_CORE_CATALOG_QUERY_WEIGH_H_
