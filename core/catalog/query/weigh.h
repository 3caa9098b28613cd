// From the logits of several heads to the weights of items: each head
// normalises on its own, and an item weighs the mean.
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

// log sum exp of logits as max + log_sum, apart: their sum has no digits left
// for log_sum where logits are huge. max is -infinity where there are none.
struct LogPartition {
  double max = kMinusInfinity;
  double log_sum = 0;

  bool empty() const { return max == kMinusInfinity; }
  // logit - log partition, of one that is not empty.
  double LogWeight(double logit) const { return (logit - max) - log_sum; }
};

LogPartition LogPartitionOf(const SoftmaxPartition& partition);

// By head: empty where the head sees nothing in the scope.
using LogPartitions = ByHead<LogPartition>;

// Over all of `scored`.
LogPartitions PartitionsOf(const ScoredRows& scored);

// Weights of rows, from their logits. With SOFTMAX a head's weight is
// exp(logit - its log partition); heads that see nothing in the scope have no
// part in the mean, so that means sum to 1 too.
class Weigher {
 public:
  // log_partitions has one entry a head; looked at for SOFTMAX only.
  Weigher(ActivationKind kind, LogPartitions log_partitions);

  double InHead(const ScoredRows& scored, std::size_t head,
                std::size_t row) const;
  // The same of all rows, up to rounding: `weights` becomes [scored.size()].
  void InHead(const ScoredRows& scored, std::size_t head,
              std::vector<double>& weights) const;
  // The mean over heads.
  double Mean(const ScoredRows& scored, std::size_t row) const;
  // The same of a sum over heads, from the first on.
  double MeanOfSum(double sum) const {
    return seeing_count_ == 0 ? 0 : sum / seeing_count_;
  }
  // log(Mean), for SOFTMAX: exact also where Mean is 0 to a double.
  double LogMean(const ScoredRows& scored, std::size_t row) const;

 private:
  ActivationKind kind_;
  LogPartitions log_partitions_;
  double seeing_count_ = 0;  // heads that see something; of all kinds
};

}  // namespace attendant

#endif  // ATTENDANT_CORE_CATALOG_QUERY_WEIGH_H_
