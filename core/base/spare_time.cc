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

// The argument of sched_setattr(2). The C library doesn't define it, and the
// kernel's header conflicts with the C library's.
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

// A thread that wants a core waits at most this long for an idle-share
// thread...
constexpr auto kTurn = std::chrono::microseconds(200);
// ...which then sleeps this long, plus up to 50 us of timer slack. The system
// moves a thread to a core that it sees idle long enough to be worth it.
constexpr auto kAside = std::chrono::microseconds(50);

// Returns the number of cores if the process may use them all, else 0.
int AllCores() {
  const long online = sysconf(_SC_NPROCESSORS_ONLN);
  cpu_set_t usable;
  const bool is_known = sched_getaffinity(0, sizeof(usable), &usable) == 0;
  return is_known && CPU_COUNT(&usable) == online ? CPU_COUNT(&usable) : 0;
}

// Returns the number of runnable threads on the machine; 0 if unknown.
int RunnableThreads() {
  const int file = open("/proc/loadavg", O_RDONLY | O_CLOEXEC);
  if (file < 0) return 0;
  char text[128];
  const ssize_t size = read(file, text, sizeof(text) - 1);
  close(file);
  if (size <= 0) return 0;
  text[size] = '\0';
  // The file has three loads, "RUNNABLE/ALL", and a process id.
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
  // Since Linux 6.12 a thread keeps its core until its slice ends, whichever
  // thread wakes up: 3 ms unless it requests less.
  SchedulingAttributes attributes;
  attributes.nice = std::max(kNice, getpriority(PRIO_PROCESS, 0));
  attributes.runtime_ns = 100000;  // the minimum
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
