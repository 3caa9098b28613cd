#include "core/attention/top_k.h"

#include <algorithm>
#include <tuple>

namespace attendant {
namespace {

// Candidates that may wait beyond 2k: few, so that the threshold rises early in
// a short scan; enough, so that cutting back to k is rare.
constexpr std::size_t kWaitingBlock = 256;

}  // namespace

TopK::TopK(std::int64_t k, const IdResolver* ids)
    : k_(k),
      ids_(ids),
      capacity_(2 * static_cast<std::size_t>(k) + kWaitingBlock) {}

bool TopK::Better(const Candidate& a, const Candidate& b) const {
  if (a.logit != b.logit) return a.logit > b.logit;
  const absl::string_view a_id = ids_->IdOf(a.segment, a.row);
  const absl::string_view b_id = ids_->IdOf(b.segment, b.row);
  if (a_id != b_id) return a_id < b_id;
  return std::tie(a.segment, a.row) < std::tie(b.segment, b.row);
}

void TopK::Shrink() {
  const auto better = [this](const Candidate& a, const Candidate& b) {
    return Better(a, b);
  };
  const auto last_kept = waiting_.begin() + (k_ - 1);
  std::nth_element(waiting_.begin(), last_kept, waiting_.end(), better);
  threshold_ = last_kept->logit;
  waiting_.resize(static_cast<std::size_t>(k_));
}

void TopK::Merge(const TopK& other) {
  for (const Candidate& candidate : other.waiting_) Offer(candidate);
}

std::vector<Candidate> TopK::Sorted() const {
  std::vector<Candidate> sorted = waiting_;
  const auto better = [this](const Candidate& a, const Candidate& b) {
    return Better(a, b);
  };
  const auto count = static_cast<std::size_t>(k_);
  if (sorted.size() > count) {
    std::nth_element(sorted.begin(), sorted.begin() + k_, sorted.end(), better);
    sorted.resize(count);
  }
  std::sort(sorted.begin(), sorted.end(), better);
  return sorted;
}

}  // namespace attendant
