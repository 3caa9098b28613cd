#include "core/base/memory_budget.h"

#include <algorithm>
#include <chrono>

#include "absl/strings/str_cat.h"
#include "core/base/status.h"

namespace attendant {
namespace {

// Releasing memory takes milliseconds during which no thread can allocate.
constexpr std::chrono::seconds kReleaseInterval(1);

bool IsOlder(SteadyTime than, SteadyTime now, SteadyTime::duration age) {
  return than == SteadyTime::min() || now - than >= age;
}

}  // namespace

void MemoryBudget::Count(std::int64_t bytes, bool reserved) {
  if (!reserved) {
    counted_bytes_.fetch_add(bytes);
    return;
  }
  // Under the lock, so that a look sees both changes or neither.
  MutexLock lock(&mutex_);
  counted_bytes_.fetch_add(bytes);
  reserved_bytes_ += bytes;
}

MemoryBudget::Use MemoryBudget::Look(bool anew) {
  Use use;
  use.limit_bytes = options_.limit_bytes;
  MutexLock lock(&mutex_);
  use.counted_bytes = counted_bytes_.load();
  if (options_.shared_bytes) use.counted_bytes += options_.shared_bytes();
  use.used_bytes = use.counted_bytes;
  if (!options_.resident_bytes) return use;
  const SteadyTime now = SteadyNow();
  if (anew ||
      IsOlder(seen_at_, now, absl::ToChronoNanoseconds(options_.sample_time))) {
    seen_resident_ = options_.resident_bytes();
    seen_counted_ = use.counted_bytes;
    seen_at_ = now;
    // Bounds: all reserved bytes are held already, or none are.
    const std::int64_t least = seen_resident_ - seen_counted_;
    uncounted_ = std::clamp(uncounted_, least, least + reserved_bytes_);
  }
  use.resident_bytes = seen_resident_;
  // Bytes counted since the sample will be held soon; bytes no longer counted
  // may still be held.
  use.used_bytes = std::max(
      use.used_bytes, uncounted_ + std::max(use.counted_bytes, seen_counted_));
  return use;
}

MemoryBudget::Use MemoryBudget::use() { return Look(/*anew=*/true); }

absl::Status MemoryBudget::Check(absl::string_view what, std::int64_t bytes) {
  return CheckRoom(what, bytes, /*counted=*/false);
}

absl::Status MemoryBudget::CheckRoom(absl::string_view what, std::int64_t bytes,
                                     bool counted) {
  if (options_.limit_bytes == 0) return absl::OkStatus();
  const std::int64_t more = counted ? 0 : bytes;
  Use use = Look(/*anew=*/false);
  if (use.used_bytes + more <= use.limit_bytes) return absl::OkStatus();
  // The process may still hold memory that was freed since the last sample.
  if (use.counted_bytes + more <= use.limit_bytes) {
    bool may_release = false;
    if (options_.release) {
      MutexLock lock(&mutex_);
      const SteadyTime now = SteadyNow();
      may_release = IsOlder(released_at_, now, kReleaseInterval);
      if (may_release) released_at_ = now;
    }
    if (may_release) options_.release();
    use = Look(/*anew=*/true);
    if (use.used_bytes + more <= use.limit_bytes) return absl::OkStatus();
  }
  return StatusWithReason(
      absl::StatusCode::kResourceExhausted,
      absl::StrCat("memory is full: ", use.used_bytes + more - bytes,
                   " bytes of ", use.limit_bytes, " are used, and ", what,
                   " wants ", bytes,
                   " more; delete catalogs or items, or raise --memory-limit; "
                   "writes resume when there is room again"),
      "MEMORY_LIMIT");
}

absl::StatusOr<MemoryBudget::Account> MemoryBudget::Reserve(
    absl::string_view what, std::int64_t bytes) {
  // Counts first, so that two calls can't take the same room.
  Account account(this, /*reserved=*/true);
  account.Set(bytes);
  ATTENDANT_RETURN_IF_ERROR(CheckRoom(what, bytes, /*counted=*/true));
  return account;
}

absl::StatusOr<MemoryBudget::Account> MemoryBudget::ReserveIn(
    MemoryBudget* budget, absl::string_view what, std::int64_t bytes) {
  if (budget == nullptr) return Account();
  return budget->Reserve(what, bytes);
}

}  // namespace attendant
