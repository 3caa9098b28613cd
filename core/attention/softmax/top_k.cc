#include "core/attention/softmax/top_k.h"

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

// Returns the logits of all candidates, in their order, contiguous for the
// kernels.
std::span<const float> LogitsOf(std::span<const Candidate> candidates) {
  thread_local std::vector<float> logits;
  logits.resize(candidates.size());
  for (std::size_t i = 0; i < logits.size(); ++i) {
    logits[i] = candidates[i].logit;
  }
  return logits;
}

// Returns the positions of the numbers that reach the threshold.
std::span<const std::int32_t> PlacesAtLeast(std::span<const float> numbers,
                                            float threshold) {
  thread_local std::vector<std::int32_t> places;
  places.resize(numbers.size());
  const std::int64_t count = ActiveKernels().SelectAtLeast(
      numbers.data(), static_cast<std::int64_t>(numbers.size()), threshold,
      places.data());
  return {places.data(), static_cast<std::size_t>(count)};
}

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

// Keeps the k best, up to a quarter more, which makes them cheaper to find, and
// all that equal the last of these.
void TopK::Shrink() {
  const std::span<const float> logits = LogitsOf(waiting_);
  threshold_ = NearKthGreatest(logits, k_, k_ + k_ / 4);
  const std::span<const std::int32_t> kept = PlacesAtLeast(logits, threshold_);
  if (kept.size() + kWaitingBlock > capacity_) return CutByIds();
  for (std::size_t i = 0; i < kept.size(); ++i) {
    waiting_[i] = waiting_[kept[i]];
  }
  waiting_.resize(kept.size());
}

void TopK::CutByIds() {
  const auto last_kept = waiting_.begin() + (k_ - 1);
  std::nth_element(
      waiting_.begin(), last_kept, waiting_.end(),
      [this](const Candidate& a, const Candidate& b) { return Better(a, b); });
  threshold_ = last_kept->logit;
  waiting_.resize(static_cast<std::size_t>(k_));
}

std::vector<Candidate> TopK::Sorted() const {
  if (k_ == 0 || waiting_.empty()) return {};
  const std::span<const float> logits = LogitsOf(waiting_);
  const auto count = static_cast<std::int64_t>(logits.size());
  // Includes those that equal the k-th, as ids decide between them.
  const std::span<const std::int32_t> best =
      PlacesAtLeast(logits, KthGreatest(logits, std::min(k_, count)));
  const std::size_t end = best.size();
  thread_local std::vector<float> best_logits;
  thread_local std::vector<std::int32_t> order;
  best_logits.resize(end);
  for (std::size_t i = 0; i < end; ++i) {
    best_logits[i] = logits[best[i]];
  }
  SortDescending(best_logits, order);
  std::vector<Candidate> sorted(end);
  for (std::size_t i = 0; i < end; ++i) {
    const std::int32_t place = best[order[i]];
    sorted[i] = waiting_[place];
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
