// Child processes: run to completion, or kept and stopped.
#ifndef ATTENDANT_TESTS_INTEGRATION_PROCESS_H_
#define ATTENDANT_TESTS_INTEGRATION_PROCESS_H_

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace attendant {

std::string ReadWholeFile(const std::string& path);
void WriteWholeFile(const std::string& path, const std::string& content);

// Returns the sum of RssAnon and RssShmem of a process, in bytes.
std::int64_t ResidentOf(pid_t pid);

// Returns the number of threads of a process.
std::int64_t ThreadCountOf(pid_t pid);

// Creates a file and returns a descriptor for writing, which the caller closes.
int OpenForWriting(const std::string& path);

// A child process, which dies with the thread that started it. Not thread-safe.
class Process {
 public:
  // Starts argv[0] with stdout and stderr on the given descriptors, which
  // remain the caller's.
  static Process Start(const std::vector<std::string>& argv, int out, int err);
  ~Process();
  Process(Process&& other) noexcept;
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  pid_t pid() const { return pid_; }
  void Signal(int signal) const;
  // Waits for the process to end. Returns its exit status, or 128 + the signal
  // that ended it. After `timeout` kills it and returns -1.
  int Wait(absl::Duration timeout);

 private:
  explicit Process(pid_t pid) : pid_(pid) {}
  pid_t pid_;  // 0 when it was waited for
};

struct CommandResult {
  int exit_status = -1;
  std::string out;
  std::string err;
};

// Runs a command to its end, killing it after `timeout`.
CommandResult RunCommand(const std::vector<std::string>& argv,
                         absl::Duration timeout = absl::Minutes(1));

}  // namespace attendant

#endif  // ATTENDANT_TESTS_INTEGRATION_PROCESS_H_
