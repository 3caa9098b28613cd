#include "core/base/spare_time.h"

#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <exception>
#include <system_error>
#include <thread>

namespace attendant {
namespace {

constexpr int kNice = 10;

// What sched_setattr(2) takes. The C library has no name for it, and the
// kernel's header can't be included beside its own.
struct SchedulingAttributes {
  std::uint32_t size = sizeof(SchedulingAttributes);
  std::uint32_t policy = SCHED_OTHER;
  std::uint64_t flags = 0;
  std::int32_t nice = 0;
  std::uint32_t priority = 0;
  std::uint64_t runtime_ns = 0;
  std::uint64_t deadline_ns = 0;
  std::uint64_t period_ns = 0;
};

}  // namespace

void TakeShare(Share share) {
  if (share == Share::kEven) return;
  const sched_param none = {};
  if (share == Share::kIdle && sched_setscheduler(0, SCHED_IDLE, &none) == 0) {
    return;
  }
  // From Linux 6.12 on a thread keeps its core until its slice is over, whoever
  // wakes up: 3 ms unless it asks for less.
  SchedulingAttributes attributes;
  attributes.nice = std::max(kNice, getpriority(PRIO_PROCESS, 0));
  attributes.runtime_ns = 100000;  // the least that there is
  if (syscall(SYS_sched_setattr, 0, &attributes, 0) != 0) {
    setpriority(PRIO_PROCESS, 0, attributes.nice);
  }
}

void RunInSpareTime(Share share, absl::FunctionRef<void()> work) {
  std::exception_ptr thrown;
  std::thread thread;
  try {
    thread = std::thread([&] {
      TakeShare(share);
      try {
        work();
      } catch (...) {
        thrown = std::current_exception();
      }
    });
  } catch (const std::system_error&) {
    return work();
  }
  thread.join();
  if (thrown != nullptr) std::rethrow_exception(thrown);
}

}  // namespace attendant
