// What the values of a pass's keys add up to, each weighed by exp(logit), from
// their codes. Internal.
#ifndef ATTENDANT_CORE_SHORTLIST_PASSES_VALUE_POOL_H_
#define ATTENDANT_CORE_SHORTLIST_PASSES_VALUE_POOL_H_

#include <cstdint>
#include <span>
#include <vector>

#include "core/shortlist/lists/inverted_lists.h"
#include "core/shortlist/lists/list_values.h"

namespace attendant {

// With e(i) = exp(logit by code of key i), value i being the mean of its list
// plus R' s c(i) (c the code's integers, s its scale, R the rotation),
//   sum of e(i) value(i) = sum over lists of e(list) mean
//                        + R' sum of e(i) s c(i):
// one number a list, and one sum over codes, which are read in blocks with
// weights of 7, 14 or 21 bits, as few as will do. Where the values are keys
// their codes were just read.
//
// Order: Start, Add of all keys in their order, Remove, Take; then Start again:
// the object keeps its memory. Not thread-safe.
class ValuePool {
 public:
  // What is left, as a softmax over it would pool it.
  struct Rest {
    bool empty = true;  // but for rounding
    // [dim], by e(i).
    std::vector<double> mean;
    // By e(i) as well, every key being taken for one like its list's.
    ListValues::Means means;
    // Log of the sum of what e(i)^2 are expected to be off by, of rounding.
    double log_rounding_square = 0;
  };

  // Both must outlive the pass.
  void Start(const InvertedLists& lists, const ListValues& values);

  // Keys [begin, begin + count), whole blocks but for the last, at most
  // 16 x kMaxWeighedBlocks, the first of them in `list`; exps[i] is
  // exp(logit - max).
  void Add(std::int64_t list, std::int64_t begin, std::int64_t count,
           const float* exps, float max);

  // Takes keys out, ascending, with the logits that they were added with.
  void Remove(std::span<const std::int32_t> positions,
              std::span<const float> logits);

  const Rest& Take();

 private:
  // Makes sums relative to `max`, if it is greater.
  void Raise(float max);
  // Adds unit x weights x codes of the blocks, the weights of keys of
  // blocks_[i] at rounded_[16 i], of so many planes.
  void WeighBlocks(int plane_count, double unit);
  // Adds a list's means to those of the sums, e times.
  void AddMeans(std::size_t list, double e);

  const InvertedLists* lists_ = nullptr;
  const ListValues* values_ = nullptr;
  bool started_ = false;
  float max_ = 0;                  // sums are of exp(logit - max_)
  double sum_ = 0;                 // of e
  double rounding_square_ = 0;     // see Rest
  ListValues::Means mean_sums_;    // of e x those of the list
  double added_ = 0;               // sum_ before anything was taken out
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
