#include "core/base/spare_time.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <string_view>
#include <system_error>
#include <thread>

#include "core/base/clock.h"

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

// What wants a core waits for one that computes at this share for so long...
constexpr auto kTurn = std::chrono::microseconds(200);
// ...and has it for this, and what sleeps are rounded up by (up to 50 us): the
// system moves a thread to a core that it sees idle for long enough to be worth
// it.
constexpr auto kAside = std::chrono::microseconds(50);

// How many cores the machine has, if the process may use them all; else 0.
int AllCores() {
  const long online = sysconf(_SC_NPROCESSORS_ONLN);
  cpu_set_t usable;
  const bool is_known = sched_getaffinity(0, sizeof(usable), &usable) == 0;
  return is_known && CPU_COUNT(&usable) == online ? CPU_COUNT(&usable) : 0;
}

// How many threads of the machine run or could; 0 if it doesn't say.
int RunnableThreads() {
  const int file = open("/proc/loadavg", O_RDONLY | O_CLOEXEC);
  if (file < 0) return 0;
  char text[128];
  const ssize_t size = read(file, text, sizeof(text) - 1);
  close(file);
  if (size <= 0) return 0;
  text[size] = '\0';
  // Three loads, "RUNNABLE/ALL", and a process.
  std::string_view rest(text);
  for (int field = 0; field < 3; ++field) {
    rest.remove_prefix(std::min(rest.size(), rest.find(' ') + 1));
  }
  return std::atoi(rest.data());
}

}  // namespace

void MakeWay() {
  thread_local const bool has_idle_share = sched_getscheduler(0) == SCHED_IDLE;
  thread_local SteadyTime turn_end = SteadyTime::min();
  if (!has_idle_share || SteadyNow() < turn_end) return;
  sched_yield();
  static const int core_count = AllCores();
  if (core_count > 0 && RunnableThreads() > core_count) {
    std::this_thread::sleep_for(kAside);
  }
  turn_end = SteadyNow() + kTurn;
}

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
