#include "service/attendantd/process_setup.h"

#include <fcntl.h>
#include <malloc.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <latch>
#include <system_error>
#include <thread>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"

namespace attendant {
namespace {

// Each catalog keeps some files open; connections want theirs too.
void RaiseOpenFilesLimit() {
  rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

// What is freed goes back to the system, but for some MiB of each arena. By
// default each of malloc's arenas, eight to a core, may keep twice as much at
// its end as the largest block ever freed, up to 64 MiB, which malloc_trim
// leaves there: a tenth of all that a million items of 128 took.
void LimitFreeMemory() {
  const unsigned cores = std::max(std::thread::hardware_concurrency(), 1u);
  mallopt(M_ARENA_MAX, static_cast<int>(2 * cores));
  mallopt(M_MMAP_THRESHOLD, 4 << 20);
  mallopt(M_TRIM_THRESHOLD, 4 << 20);
  mallopt(M_TOP_PAD, 1 << 20);
}

absl::Status CheckThreads() {
  constexpr std::size_t kLeast = 48;
  std::latch done(1);
  std::vector<std::jthread> threads;
  const absl::Cleanup release = [&done] { done.count_down(); };
  try {
    while (threads.size() < kLeast) threads.emplace_back([&] { done.wait(); });
  } catch (const std::system_error&) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "threads: got ", threads.size(), ", want ", kLeast,
        " at least: raise the limit of the user (ulimit -u), of the control "
        "group (TasksMax of systemd, pids.max) or of addresses (ulimit -v)"));
  }
  return absl::OkStatus();
}

}  // namespace

void HoldStandardStreams() {
  int file = 0;
  do {
    file = open("/dev/null", O_RDONLY);
  } while (file >= 0 && file <= STDERR_FILENO);
  if (file >= 0) close(file);
}

absl::Status PrepareProcess() {
  // Debian's Abseil, which gRPC's locks are of, looks for cycles at each of
  // them, under one lock of all threads.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  LimitFreeMemory();
  RaiseOpenFilesLimit();
  // What it stores is nobody else's to read.
  umask(0077);
  return CheckThreads();
}

}  // namespace attendant
