#include "tests/support/wall_clock.h"

#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <ctime>

namespace attendant {
namespace {

constexpr std::int64_t kNanosPerSecond = 1'000'000'000;

std::atomic<std::int64_t> offset_nanos = 0;

// Bypasses the C library, whose function is replaced below.
int ReadClock(clockid_t clock, timespec* time) {
  const auto result = static_cast<int>(syscall(SYS_clock_gettime, clock, time));
  const bool is_time_of_day =
      clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE;
  if (result != 0 || !is_time_of_day) return result;
  const std::int64_t nanos =
      time->tv_sec * kNanosPerSecond + time->tv_nsec + offset_nanos.load();
  time->tv_sec = nanos / kNanosPerSecond;
  time->tv_nsec = nanos % kNanosPerSecond;
  return 0;
}

}  // namespace

ShiftedWallClock::ShiftedWallClock(absl::Duration offset) {
  offset_nanos.store(absl::ToInt64Nanoseconds(offset));
}

ShiftedWallClock::~ShiftedWallClock() { offset_nanos.store(0); }

}  // namespace attendant

extern "C" {

int clock_gettime(clockid_t clock, timespec* time) noexcept {
  return attendant::ReadClock(clock, time);
}

int gettimeofday(timeval* time, void* /*zone*/) noexcept {
  timespec precise;
  const int result = attendant::ReadClock(CLOCK_REALTIME, &precise);
  if (result != 0) return result;
  time->tv_sec = precise.tv_sec;
  time->tv_usec = precise.tv_nsec / 1000;
  return 0;
}

std::time_t time(std::time_t* time) noexcept {
  timespec precise;
  if (attendant::ReadClock(CLOCK_REALTIME, &precise) != 0) return -1;
  if (time != nullptr) *time = precise.tv_sec;
  return precise.tv_sec;
}

}  // extern "C"
