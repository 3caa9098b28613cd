#include "core/attention/top_k.h"

#include <algorithm>
#include <cstdint>
#include <tuple>

#include "core/kernels/sort.h"

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
  std::vector<std::uint64_t> keys(waiting_.size());
  for (std::size_t i = 0; i < keys.size(); ++i) {
    keys[i] = DescendingKey(waiting_[i].logit, static_cast<std::uint32_t>(i));
  }
  SortAscending(std::span(keys));
  const std::size_t count = std::min(keys.size(), static_cast<std::size_t>(k_));
  // Those that equal the last must be there for ids to decide.
  std::size_t end = count;
  while (end > 0 && end < keys.size() &&
         keys[end] >> 32 == keys[count - 1] >> 32) {
    ++end;
  }
  std::vector<Candidate> sorted;
  sorted.reserve(end);
  for (std::size_t i = 0; i < end; ++i) {
    sorted.push_back(waiting_[keys[i] & 0xffffffff]);
  }
  for (std::size_t begin = 0; begin < end;) {
    std::size_t run_end = begin + 1;
    while (run_end < end && keys[run_end] >> 32 == keys[begin] >> 32) ++run_end;
    if (run_end > begin + 1) {
      std::sort(sorted.begin() + static_cast<std::ptrdiff_t>(begin),
                sorted.begin() + static_cast<std::ptrdiff_t>(run_end),
                [this](const Candidate& a, const Candidate& b) {
                  return Better(a, b);
                });
    }
    begin = run_end;
  }
  sorted.resize(count);
  return sorted;
}

}  // namespace attendant
