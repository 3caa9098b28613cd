#include "core/attention/top_k.h"

#include <algorithm>
#include <cstdint>
#include <tuple>

#include "core/kernels/kernels.h"
#include "core/kernels/select.h"
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
  if (k_ == 0 || waiting_.empty()) return {};
  thread_local std::vector<float> logits;
  thread_local std::vector<std::int32_t> best;
  thread_local std::vector<std::int32_t> order;
  logits.resize(waiting_.size());
  best.resize(waiting_.size());
  for (std::size_t i = 0; i < logits.size(); ++i) logits[i] = waiting_[i].logit;
  const auto count = static_cast<std::int64_t>(logits.size());
  // Those that equal the last of the best are there for ids to decide.
  best.resize(static_cast<std::size_t>(ActiveKernels().SelectAtLeast(
      logits.data(), count, KthGreatest(logits, std::min(k_, count)),
      best.data())));
  const std::size_t end = best.size();
  for (std::size_t i = 0; i < end; ++i) {
    logits[i] = logits[static_cast<std::size_t>(best[i])];
  }
  SortDescending({logits.data(), end}, order);
  std::vector<Candidate> sorted(end);
  for (std::size_t i = 0; i < end; ++i) {
    const std::int32_t place = best[static_cast<std::size_t>(order[i])];
    sorted[i] = waiting_[static_cast<std::size_t>(place)];
  }
  for (std::size_t begin = 0; begin < end;) {
    std::size_t run_end = begin + 1;
    while (run_end < end && sorted[run_end].logit == sorted[begin].logit) {
      ++run_end;
    }
    if (run_end > begin + 1) {
      std::sort(sorted.begin() + static_cast<std::ptrdiff_t>(begin),
                sorted.begin() + static_cast<std::ptrdiff_t>(run_end),
                [this](const Candidate& a, const Candidate& b) {
                  return Better(a, b);
                });
    }
    begin = run_end;
  }
  sorted.resize(std::min(end, static_cast<std::size_t>(k_)));
  return sorted;
}

}  // namespace attendant
