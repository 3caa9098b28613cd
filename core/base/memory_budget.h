// Refuses requests for memory that would not fit, before the machine runs out.
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

// Every holder of memory opens an account and keeps it up to date; whoever
// wants more memory asks first. The memory in use is the greater of what the
// accounts sum to and what the process is seen to hold. The accounts are exact
// and immediate; the process is only sampled, but its figure includes what no
// account counts (fragmentation, requests).
//
// Thread-safe. Must outlive its accounts.
class MemoryBudget {
 public:
  struct Options {
    std::int64_t limit_bytes = 0;  // 0: no limit
    // Returns bytes that are in no account and can be queried at any time.
    // Null: there are none.
    std::function<std::int64_t()> shared_bytes;
    // Returns the bytes that the process holds, 0 if unknown. Null: never
    // sampled.
    std::function<std::int64_t()> resident_bytes;
    // Returns freed memory to the system; called when the process holds too
    // much. Null: does nothing.
    std::function<void()> release;
    // How long a sample of resident_bytes stays valid.
    absl::Duration sample_time = absl::Milliseconds(100);
  };

  // A number of bytes held by the account's owner, counted until the account is
  // destroyed. Movable. Not thread-safe.
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
    bool reserved_ = false;           // perhaps not allocated yet
    std::int64_t bytes_ = 0;
  };

  struct Use {
    std::int64_t limit_bytes = 0;     // 0: no limit
    std::int64_t counted_bytes = 0;   // by accounts and shared_bytes
    std::int64_t resident_bytes = 0;  // last sample; 0: unknown
    std::int64_t used_bytes = 0;      // compared with the limit
  };

  explicit MemoryBudget(Options options) : options_(std::move(options)) {}

  // Returns an account of 0 bytes.
  Account OpenAccount() { return Account(this, /*reserved=*/false); }

  // OK if `bytes` more fit. Otherwise ResourceExhausted with reason
  // MEMORY_LIMIT; the message names `what`, which wants the memory, the use and
  // the limit.
  absl::Status Check(absl::string_view what, std::int64_t bytes);

  // As Check, but also counts the bytes until the account is destroyed. They
  // are counted before they are checked, so two concurrent calls that fit alone
  // but not together may both be refused.
  absl::StatusOr<Account> Reserve(absl::string_view what, std::int64_t bytes);
  // As Reserve of `budget`. Null: no limit, and nothing is counted.
  static absl::StatusOr<Account> ReserveIn(MemoryBudget* budget,
                                           absl::string_view what,
                                           std::int64_t bytes);

  Use use();

 private:
  void Count(std::int64_t bytes, bool reserved);
  // Implements Check; `counted` tells whether an account has the bytes already.
  absl::Status CheckRoom(absl::string_view what, std::int64_t bytes,
                         bool counted);
  Use Look(bool anew) ABSL_LOCKS_EXCLUDED(mutex_);

  const Options options_;
  std::atomic<std::int64_t> counted_bytes_ = 0;
  Mutex mutex_;
  // The part of counted_bytes_ that is reserved.
  std::int64_t reserved_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  // The last sample of the process, and counted_bytes_ at that time.
  std::int64_t seen_resident_ ABSL_GUARDED_BY(mutex_) = 0;
  std::int64_t seen_counted_ ABSL_GUARDED_BY(mutex_) = 0;
  // Estimate, from all samples, of the bytes that no account counts; less than
  // 0 if accounts claim more than is held.
  std::int64_t uncounted_ ABSL_GUARDED_BY(mutex_) = 0;
  SteadyTime seen_at_ ABSL_GUARDED_BY(mutex_) = SteadyTime::min();
  SteadyTime released_at_ ABSL_GUARDED_BY(mutex_) = SteadyTime::min();
};

}  // namespace attendant

#endif  // ATTENDANT_CORE_BASE_MEMORY_BUDGET_H_
