// Sums of the values of a pass's keys, weighed by exp(logit), from their codes.
// Internal.
#ifndef ATTENDANT_CORE_SHORTLIST_PASSES_VALUE_POOL_H_
#define ATTENDANT_CORE_SHORTLIST_PASSES_VALUE_POOL_H_

#include <cstdint>
#include <span>
#include <vector>

#include "core/shortlist/lists/inverted_lists.h"
#include "core/shortlist/lists/list_values.h"

namespace attendant {

// Let e(i) = exp(logit by code of key i), and let value i be the mean of its
// list plus R' s c(i), where c are the code's integers, s its scale and R the
// rotation. Then
//   sum of e(i) value(i) = sum over lists of e(list) mean
//                        + R' sum of e(i) s c(i),
// which takes one number per list and one sum over codes. The codes are read in
// blocks, with weights of 7, 14 or 21 bits, as few as suffice. If the values
// are keys, their codes were just read.
//
// Order of calls: Start, Add of all keys in their order, Remove, Take. Start
// may follow again; the object keeps its memory. Not thread-safe.
class ValuePool {
 public:
  // The keys that are left, pooled as by a softmax over them.
  struct Rest {
    bool empty = true;  // empty except for rounding
    // [dim], weighed by e(i).
    std::vector<double> mean;
    // Weighed by e(i) too, with every key taken to be like the mean of its
    // list.
    ListValues::Means means;
    // Log of the sum of the expected squared errors of e(i) from rounding.
    double log_rounding_square = 0;
  };

  // Both arguments must outlive the pass.
  void Start(const InvertedLists& lists, const ListValues& values);

  // Adds keys [begin, begin + count), at most 16 x kMaxWeighedBlocks, in whole
  // blocks except for the last; the first key is in `list`. exps[i] is
  // exp(logit - max).
  void Add(std::int64_t list, std::int64_t begin, std::int64_t count,
           const float* exps, float max);

  // Removes keys with the logits that they were added with. `positions` ascend.
  void Remove(std::span<const std::int32_t> positions,
              std::span<const float> logits);

  const Rest& Take();

 private:
  // Makes sums relative to `max` if it is greater than the current one.
  void Raise(float max);
  // Adds unit x weights x codes of the blocks; the weights of the keys of
  // blocks_[i] are at rounded_[16 i] and have plane_count planes.
  void WeighBlocks(int plane_count, double unit);
  // Adds a list's means to mean_sums_, multiplied by e.
  void AddMeans(std::size_t list, double e);

  const InvertedLists* lists_ = nullptr;
  const ListValues* values_ = nullptr;
  bool started_ = false;
  float max_ = 0;                  // sums are of exp(logit - max_)
  double sum_ = 0;                 // of e
  double rounding_square_ = 0;     // see Rest
  ListValues::Means mean_sums_;    // of e x the list's means
  double added_ = 0;               // sum_ before anything was removed
  std::vector<double> list_sums_;  // of e x norm
  std::vector<double> code_sums_;  // rotated
  Rest rest_;
  // Scratch.
  std::vector<float> weights_;
  std::vector<std::uint32_t> rounded_;
  std::vector<std::int32_t> blocks_;
  std::vector<double> used_sums_;  // those of list_sums_ that are not 0
  std::vector<const float*> used_means_;
};

}  // namespace attendant

#endif  // ATTENDANT_CORE_SHORTLIST_PASSES_VALUE_POOL_H_
