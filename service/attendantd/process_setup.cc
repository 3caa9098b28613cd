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

// Each catalog keeps some files open, and so do connections.
void RaiseOpenFilesLimit() {
  rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

// Makes malloc return freed memory to the system, except for some MiB per
// arena. By default each arena, of which there are eight per core, may keep at
// its end up to twice the largest block ever freed, at most 64 MiB, which
// malloc_trim does not release: a tenth of the memory that a million items of
// dimension 128 took.
void LimitFreeMemory() {
  const unsigned cores = std::max(std::thread::hardware_concurrency(), 1u);
  mallopt(M_ARENA_MAX, static_cast<int>(2 * cores));
  mallopt(M_MMAP_THRESHOLD, 4 << 20);
  mallopt(M_TRIM_THRESHOLD, 4 << 20);
  mallopt(M_TOP_PAD, 1 << 20);
}

// The threads of an idle server beside its workers.
constexpr int kOtherThreads = 60;

absl::Status CheckThreads(int worker_count) {
  const auto least = static_cast<std::size_t>(kOtherThreads + worker_count);
  std::latch done(1);
  std::vector<std::jthread> threads;
  const absl::Cleanup release = [&done] { done.count_down(); };
  try {
    while (threads.size() < least) threads.emplace_back([&] { done.wait(); });
  } catch (const std::system_error&) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "threads: got ", threads.size(), ", want ", least,
        " at least: raise the limit of the user (ulimit -u), of the control "
        "group (systemd TasksMax, pids.max) or on address space (ulimit -v)"));
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

absl::Status PrepareProcess(int worker_count) {
  // Debian's Abseil, whose mutexes gRPC uses, searches for deadlock cycles at
  // each lock operation, under one lock shared by all threads.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  LimitFreeMemory();
  RaiseOpenFilesLimit();
  // Stored data must not be readable by other users.
  umask(0077);
  return CheckThreads(worker_count);
}

}  // namespace attendant
