// Work that takes seconds to minutes.
#ifndef ATTENDANT_CORE_BASE_LONG_WORK_H_
#define ATTENDANT_CORE_BASE_LONG_WORK_H_

#include <cstdint>
#include <functional>
#include <utility>

#include "absl/status/status.h"
#include "core/base/interrupt.h"

namespace attendant {

// Tells work whether to continue, and reports its progress. Not thread-safe.
class LongWork {
 public:
  // Called by the working thread about once per MiB.
  using Report = std::function<void(std::int64_t done, std::int64_t total)>;

  LongWork() = default;
  // The interrupt's flag must outlive the work.
  explicit LongWork(const Interrupt& interrupt, Report report = nullptr)
      : interrupt_(interrupt), report_(std::move(report)) {}

  // Sets the work ahead to `total` bytes, none of them done.
  void Start(std::int64_t total) {
    done_ = 0;
    total_ = total;
  }
  // Records that `bytes` more are done, and reports it. The work must stop if
  // this returns Cancelled or DeadlineExceeded.
  absl::Status Advance(std::int64_t bytes) {
    done_ += bytes;
    if (report_ != nullptr) report_(done_, total_);
    return interrupt_.Check();
  }
  const Interrupt& interrupt() const { return interrupt_; }

 private:
  Interrupt interrupt_;
  Report report_;
  std::int64_t done_ = 0;
  std::int64_t total_ = 0;
};

}  // namespace attendant

#endif  // ATTENDANT_CORE_BASE_LONG_WORK_H_
