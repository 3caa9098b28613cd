// Partial attention: the mergeable result of scanning some rows. This is the
// online softmax (Milakov, Gimelshein 2018; Dao et al. 2022, FlashAttention,
// sec. 3.1) together with a top-k.
#ifndef ATTENDANT_CORE_ATTENTION_SOFTMAX_STATE_H_
#define ATTENDANT_CORE_ATTENTION_SOFTMAX_STATE_H_

#include <cmath>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/attention/softmax/top_k.h"

namespace attendant {

// Sums over scored rows, relative to the greatest logit among them, with e =
// exp(logit - max).
//
// Laws, tested by state_test.cc: merging is commutative and associative up to
// rounding, and merging with an empty partition changes nothing.
struct SoftmaxPartition {
  std::int64_t count = 0;
  float max = 0;          // meaningless if count == 0
  double sum = 0;         // of e
  double sum_gap = 0;     // of e * (logit - max)
  double sum_square = 0;  // of e^2

  // Adds n >= 1 logits. A logit may be -infinity, for a row of weight 0, but
  // not all logits of the first call. `exps`, if not null, has room for n and
  // receives exp(logit - new max); it may be `logits`.
  void Add(const float* logits, std::int64_t n, float* exps);
  // As above, for logits whose greatest is known.
  void Add(const float* logits, std::int64_t n, float greatest, float* exps);
  void Merge(const SoftmaxPartition& other);

  // Returns the log sum exp of the logits; nothing if count == 0.
  std::optional<double> LogPartition() const;
  // Returns the entropy of the softmax in nats, >= 0; nothing if count == 0.
  std::optional<double> Entropy() const;
  // Returns 1 / sum of squared weights, in [1, count]; 0 if count == 0.
  double EffectiveCount() const;
};

// Returns the sum added to a partition between its states `before` and `after`,
// relative to after.max. An addition below 1e-16 of the rest may be lost, but
// does not matter then.
inline double SumAdded(const SoftmaxPartition& before,
                       const SoftmaxPartition& after) {
  if (before.count == 0) return after.sum;
  return after.sum - before.sum * std::exp(double{before.max} - after.max);
}

// A partition, the top-k and, if pooling, the sum of e x value. Not
// thread-safe.
class AttentionState {
 public:
  // Keeps the k best. If value_dim > 0, pools values of `value_dim` floats; 0
  // pools nothing. `ids` must outlive the object.
  AttentionState(std::int64_t k, const IdResolver* ids,
                 std::int64_t value_dim = 0);

  // Adds n >= 1 rows of one segment. logits, similarities and rows have n
  // entries; values has n pointers to value_dim floats when pooling, else it is
  // empty.
  void Add(std::int32_t segment, std::span<const RowIndex> rows,
           std::span<const float> logits, std::span<const float> similarities,
           std::span<const float* const> values = {});

  // Adds rows that are not among the k best, given as their sums. value_sum
  // [value_dim] is the sum of e x value, with e relative to rows.max.
  void AddUnkept(const SoftmaxPartition& rows,
                 std::span<const double> value_sum = {});

  // Returns the floats of a pooled value; 0 if nothing is pooled.
  std::int64_t value_dim() const {
    return static_cast<std::int64_t>(pooled_.size());
  }
  const SoftmaxPartition& partition() const { return partition_; }
  // The part of partition() that AddUnkept added.
  const SoftmaxPartition& unkept() const { return unkept_; }
  const TopK& top() const { return top_; }
  // Returns the weighted mean of the values [value_dim]; zeros if count == 0.
  std::vector<float> PooledValue() const;

 private:
  // Adds values, each times its entry in exps_.
  void Pool(std::span<const float* const> values);

  SoftmaxPartition partition_;
  SoftmaxPartition unkept_;
  TopK top_;
  std::vector<double> pooled_;  // sum of e x value
  std::vector<float> exps_;     // scratch, when pooling
};

}  // namespace attendant

#endif  // ATTENDANT_CORE_ATTENTION_SOFTMAX_STATE_H_
