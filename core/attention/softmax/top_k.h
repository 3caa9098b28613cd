// The k best rows seen so far.
#ifndef ATTENDANT_CORE_ATTENTION_SOFTMAX_TOP_K_H_
#define ATTENDANT_CORE_ATTENTION_SOFTMAX_TOP_K_H_

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "absl/strings/string_view.h"
#include "core/base/ids.h"
#include "core/base/minus_infinity.h"

namespace attendant {

// A scored row. `segment` is the position of its segment in the snapshot.
struct Candidate {
  float logit = 0;
  float similarity = 0;
  std::int32_t segment = 0;
  RowIndex row = 0;
};

// Returns the id of a candidate, to break ties. Called only for equal logits.
class IdResolver {
 public:
  virtual ~IdResolver() = default;
  virtual absl::string_view IdOf(std::int32_t segment, RowIndex row) const = 0;
};

// Keeps the k best candidates in the order (logit descending, id ascending).
// Uses a running threshold instead of a heap: candidates are appended, and once
// 2k + a block are waiting, only the best k, or a few more, are kept. Amortised
// O(1) per offer. Not thread-safe.
class TopK {
 public:
  // k >= 0. `ids` must outlive the object.
  TopK(std::int64_t k, const IdResolver* ids);

  // Candidates with a logit below this can't enter; -infinity until k are kept.
  // A candidate with a logit equal to it may enter, depending on its id.
  float threshold() const { return threshold_; }

  // Reserves room for `count` offers.
  void Expect(std::int64_t count) {
    if (!waiting_.empty()) return;
    waiting_.reserve(std::min(static_cast<std::size_t>(count), capacity_));
  }

  void Offer(const Candidate& candidate) {
    if (candidate.logit < threshold_ || k_ == 0) return;
    waiting_.push_back(candidate);
    if (waiting_.size() >= capacity_) Shrink();
  }

  // Returns the best k, in order. The object stays usable.
  std::vector<Candidate> Sorted() const;

  // The candidates kept, unordered: the best k and some more. If k is at least
  // the number of offers, all of them, in the order offered.
  const std::vector<Candidate>& candidates() const { return waiting_; }

  std::int64_t k() const { return k_; }

 private:
  bool Better(const Candidate& a, const Candidate& b) const;
  void Shrink();
  // Cuts to the k best when too many candidates equal the k-th.
  void CutByIds();

  std::int64_t k_;
  const IdResolver* ids_;
  std::size_t capacity_;
  float threshold_ = kMinusInfinityF;
  std::vector<Candidate> waiting_;
};

}  // namespace attendant

#endif  // ATTENDANT_CORE_ATTENTION_SOFTMAX_TOP_K_H_
