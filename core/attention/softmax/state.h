// Partial attention: what a scan of some rows knows, in a form that merges.
// This is the online softmax (Milakov, Gimelshein 2018; Dao et al. 2022,
// FlashAttention, sec. 3.1), with a top-k beside it.
#ifndef ATTENDANT_CORE_ATTENTION_SOFTMAX_STATE_H_
#define ATTENDANT_CORE_ATTENTION_SOFTMAX_STATE_H_

#include <cmath>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/attention/softmax/top_k.h"

namespace attendant {

// Sums over scored rows, relative to the greatest logit among them, with
// e = exp(logit - max).
//
// Laws, held to by state_test.cc: merging is commutative and associative up to
// rounding, and merging with an empty partition changes nothing.
struct SoftmaxPartition {
  std::int64_t count = 0;
  float max = 0;          // meaningless while count == 0
  double sum = 0;         // of e
  double sum_gap = 0;     // of e * (logit - max)
  double sum_square = 0;  // of e^2

  // Adds n >= 1 logits, some of which may be -infinity: rows that weigh
  // nothing; not all of the first. If exps is not null it has room for n and
  // receives exp(logit - new max); it may be `logits`.
  void Add(const float* logits, std::int64_t n, float* exps);
  // The same of logits whose greatest is known.
  void Add(const float* logits, std::int64_t n, float greatest, float* exps);
  void Merge(const SoftmaxPartition& other);

  // log sum exp of the logits; nothing while count == 0.
  std::optional<double> LogPartition() const;
  // Entropy of the softmax in nats, >= 0; nothing while count == 0.
  std::optional<double> Entropy() const;
  // 1 / sum of squared weights, in [1, count]; 0 while count == 0.
  double EffectiveCount() const;
};

// What was added to a partition between two looks at it, relative to
// after.max. What is below 1e-16 of the rest may be lost, and is of no matter
// then.
inline double SumAdded(const SoftmaxPartition& before,
                       const SoftmaxPartition& after) {
  if (before.count == 0) return after.sum;
  return after.sum - before.sum * std::exp(double{before.max} - after.max);
}

// A partition, the top-k and, if pooled, the sum of e x value.
// Not thread-safe.
class AttentionState {
 public:
  // Keeps the k best. value_dim > 0 pools values of so many floats; 0 pools
  // nothing. `ids` must outlive the object.
  AttentionState(std::int64_t k, const IdResolver* ids,
                 std::int64_t value_dim = 0);

  // Adds n >= 1 rows of one segment. logits, similarities and rows have n
  // entries; values has n pointers to value_dim floats when pooling, else it is
  // empty.
  void Add(std::int32_t segment, std::span<const RowIndex> rows,
           std::span<const float> logits, std::span<const float> similarities,
           std::span<const float* const> values = {});

  // Adds rows that are not among the k best, as their sums. value_sum is that
  // of e x value, [value_dim], with e relative to rows.max.
  void AddUnkept(const SoftmaxPartition& rows,
                 std::span<const double> value_sum = {});

  // Floats of a pooled value; 0 if nothing is pooled.
  std::int64_t value_dim() const {
    return static_cast<std::int64_t>(pooled_.size());
  }
  const SoftmaxPartition& partition() const { return partition_; }
  // Of these, what AddUnkept added.
  const SoftmaxPartition& unkept() const { return unkept_; }
  const TopK& top() const { return top_; }
  // Weighted mean of the values, value_dim entries; zero while count == 0.
  std::vector<float> PooledValue() const;

 private:
  // Adds values, each times its exps_.
  void Pool(std::span<const float* const> values);

  SoftmaxPartition partition_;
  SoftmaxPartition unkept_;
  TopK top_;
  std::vector<double> pooled_;  // sum of e x value
  std::vector<float> exps_;     // scratch, when pooling
};

}  // namespace attendant

#endif  // ATTENDANT_CORE_ATTENTION_SOFTMAX_STATE_H_
