// Refuses what would not fit into memory, before the machine does.
#ifndef ATTENDANT_CORE_BASE_MEMORY_BUDGET_H_
#define ATTENDANT_CORE_BASE_MEMORY_BUDGET_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "core/base/clock.h"
#include "core/base/mutex.h"

namespace attendant {

// Who holds memory opens an account and keeps it up to date; who wants more
// asks first. What is used is the greater of what the accounts say and what the
// process is seen to hold, which is looked at now and then: accounts are exact
// and at once, and what nobody counts (fragments, requests) is not forgotten.
//
// Thread-safe. Must outlive its accounts.
class MemoryBudget {
 public:
  struct Options {
    std::int64_t limit_bytes = 0;  // 0: none
    // Memory that no account has and that can be asked for at any time, in
    // bytes. Null: none.
    std::function<std::int64_t()> shared_bytes;
    // What the process holds, in bytes; 0 if that can't be told. Null: not
    // looked at.
    std::function<std::int64_t()> resident_bytes;
    // Gives back what was freed; called where the process holds too much. Null:
    // nothing.
    std::function<void()> release;
    // How long what the process was seen to hold is believed.
    absl::Duration sample_time = absl::Milliseconds(100);
  };

  // Bytes that somebody holds, until they are destroyed. Movable. Not
  // thread-safe.
  class Account {
   public:
    Account() = default;
    Account(Account&& other) noexcept
        : budget_(std::exchange(other.budget_, nullptr)),
          reserved_(other.reserved_),
          bytes_(std::exchange(other.bytes_, 0)) {}
    Account& operator=(Account&& other) noexcept {
      std::swap(budget_, other.budget_);
      std::swap(reserved_, other.reserved_);
      std::swap(bytes_, other.bytes_);
      return *this;
    }
    ~Account() { Set(0); }

    void Set(std::int64_t bytes) {
      if (budget_ == nullptr) return;
      budget_->Count(bytes - bytes_, reserved_);
      bytes_ = bytes;
    }

   private:
    friend class MemoryBudget;
    Account(MemoryBudget* budget, bool reserved)
        : budget_(budget), reserved_(reserved) {}

    MemoryBudget* budget_ = nullptr;  // null: counts nowhere
    bool reserved_ = false;           // perhaps not held yet
    std::int64_t bytes_ = 0;
  };

  struct Use {
    std::int64_t limit_bytes = 0;     // 0: none
    std::int64_t counted_bytes = 0;   // by accounts, and shared
    std::int64_t resident_bytes = 0;  // as last seen; 0: not known
    std::int64_t used_bytes = 0;      // what is held against the limit
  };

  explicit MemoryBudget(Options options) : options_(std::move(options)) {}

  // An account of 0 bytes.
  Account OpenAccount() { return Account(this, /*reserved=*/false); }

  // OK if so many bytes more fit. Else ResourceExhausted with reason
  // MEMORY_LIMIT, naming `what` wants them, what is used and the limit.
  absl::Status Check(absl::string_view what, std::int64_t bytes);

  // The same, and counts them until the account goes. They are counted before
  // they are checked, so that of two that fit, but not together, both may be
  // refused.
  absl::StatusOr<Account> Reserve(absl::string_view what, std::int64_t bytes);

  Use use();

 private:
  void Count(std::int64_t bytes, bool reserved);
  // Check; `counted`: an account has the bytes already.
  absl::Status CheckRoom(absl::string_view what, std::int64_t bytes,
                         bool counted);
  Use Look(bool anew) ABSL_LOCKS_EXCLUDED(mutex_);

  const Options options_;
  std::atomic<std::int64_t> counted_bytes_ = 0;
  Mutex mutex_;
  // Of those counted.
  std::int64_t reserved_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  // What the process was seen to hold, and was counted, at that time.
  std::int64_t seen_resident_ ABSL_GUARDED_BY(mutex_) = 0;
  std::int64_t seen_counted_ ABSL_GUARDED_BY(mutex_) = 0;
  // What nobody counts, by all looks so far; less than 0 where accounts say
  // more than is held.
  std::int64_t uncounted_ ABSL_GUARDED_BY(mutex_) = 0;
  SteadyTime seen_at_ ABSL_GUARDED_BY(mutex_) = SteadyTime::min();
  SteadyTime released_at_ ABSL_GUARDED_BY(mutex_) = SteadyTime::min();
};

}  // namespace attendant

#endif  // ATTENDANT_CORE_BASE_MEMORY_BUDGET_H_
