#include "tests/integration/process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <initializer_list>
#include <sstream>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "tests/support/scratch_directory.h"

namespace attendant {
namespace {

// Returns the sum of these fields of a process's status, in the file's unit.
std::int64_t SumOfStatus(pid_t pid,
                         std::initializer_list<absl::string_view> names) {
  std::istringstream lines(
      ReadWholeFile(absl::StrCat("/proc/", pid, "/status")));
  std::int64_t sum = 0;
  for (std::string line; std::getline(lines, line);) {
    for (const absl::string_view name : names) {
      absl::string_view rest = line;
      std::int64_t value = 0;
      if (absl::ConsumePrefix(&rest, name) &&
          absl::SimpleAtoi(absl::StripSuffix(rest, "kB"), &value)) {
        sum += value;
      }
    }
  }
  return sum;
}

}  // namespace

std::string ReadWholeFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream content;
  content << file.rdbuf();
  return content.str();
}

void WriteWholeFile(const std::string& path, const std::string& content) {
  std::ofstream file(path, std::ios::binary);
  file << content;
}

std::int64_t ResidentOf(pid_t pid) {
  return SumOfStatus(pid, {"RssAnon:", "RssShmem:"}) << 10;
}

std::int64_t ThreadCountOf(pid_t pid) { return SumOfStatus(pid, {"Threads:"}); }

int OpenForWriting(const std::string& path) {
  const int fd =
      open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (fd < 0) std::abort();
  return fd;
}

Process Process::Start(const std::vector<std::string>& argv, int out, int err) {
  std::vector<char*> arguments;
  for (const std::string& argument : argv) {
    arguments.push_back(const_cast<char*>(argument.c_str()));
  }
  arguments.push_back(nullptr);
  const int in = open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (in < 0) std::abort();
  const pid_t pid = fork();
  if (pid < 0) std::abort();
  if (pid == 0) {
    // Only async-signal-safe calls are allowed after a fork with threads.
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    dup2(in, STDIN_FILENO);
    dup2(out, STDOUT_FILENO);
    dup2(err, STDERR_FILENO);
    execv(arguments[0], arguments.data());
    _exit(127);
  }
  close(in);
  return Process(pid);
}

Process::Process(Process&& other) noexcept
    : pid_(std::exchange(other.pid_, 0)) {}

Process::~Process() {
  if (pid_ == 0) return;
  kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
}

void Process::Signal(int signal) const { kill(pid_, signal); }

int Process::Wait(absl::Duration timeout) {
  // The descriptor becomes readable when the process ends.
  const int handle = static_cast<int>(syscall(SYS_pidfd_open, pid_, 0));
  if (handle < 0) std::abort();
  pollfd ended = {handle, POLLIN, 0};
  const bool in_time =
      poll(&ended, 1, static_cast<int>(absl::ToInt64Milliseconds(timeout))) ==
      1;
  close(handle);
  if (!in_time) kill(pid_, SIGKILL);
  int status = 0;
  waitpid(std::exchange(pid_, 0), &status, 0);
  if (!in_time) return -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

CommandResult RunCommand(const std::vector<std::string>& argv,
                         absl::Duration timeout) {
  const ScratchDirectory directory;
  CommandResult result;
  const int out = OpenForWriting(directory / "out");
  const int err = OpenForWriting(directory / "err");
  Process process = Process::Start(argv, out, err);
  close(out);
  close(err);
  result.exit_status = process.Wait(timeout);
  result.out = ReadWholeFile(directory / "out");
  result.err = ReadWholeFile(directory / "err");
  return result;
}

}  // namespace attendant
