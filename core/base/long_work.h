// Work that takes seconds to minutes.
#ifndef ATTENDANT_CORE_BASE_LONG_WORK_H_
#define ATTENDANT_CORE_BASE_LONG_WORK_H_

#include <cstdint>
#include <functional>
#include <utility>

#include "absl/status/status.h"
#include "core/base/interrupt.h"

namespace attendant {

// Whether to go on, and whom to tell how far it is. Not thread-safe.
class LongWork {
 public:
  // Of done and total bytes, by the thread that works, for every MiB or so.
  using Report = std::function<void(std::int64_t done, std::int64_t total)>;

  LongWork() = default;
  // The interrupt's flag must outlive the work.
  explicit LongWork(const Interrupt& interrupt, Report report = nullptr)
      : interrupt_(interrupt), report_(std::move(report)) {}

  // From here on there are so many bytes to do, and none is done.
  void Start(std::int64_t total) {
    done_ = 0;
    total_ = total;
  }
  // So many more bytes are done. Cancelled or DeadlineExceeded: stop.
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
