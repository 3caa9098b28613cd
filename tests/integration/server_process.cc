#include "tests/integration/server_process.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "tests/integration/binaries.h"

namespace attendant {
namespace {

constexpr absl::string_view kReady = "attendantd ready on ";
constexpr absl::string_view kHttp = "attendantd http on ";
// Two stacks, and what was where.
constexpr std::size_t kMaxReportSize = 20000;
// Generous, for sanitizers and a busy machine.
constexpr int kPatienceMs = 60000;

// Returns what follows `words` on their line, or nothing if the line is not
// complete yet.
absl::string_view AddressIn(absl::string_view output,
                            absl::string_view words = kReady) {
  const std::size_t begin = output.find(words);
  if (begin == absl::string_view::npos) return {};
  const absl::string_view rest = output.substr(begin + words.size());
  const std::size_t end = rest.find('\n');
  return end == absl::string_view::npos ? absl::string_view()
                                        : rest.substr(0, end);
}

// Reads until the ready line is complete or the writer closes its end.
std::string ReadUntilReady(int fd) {
  std::string output;
  while (AddressIn(output).empty()) {
    pollfd readable = {fd, POLLIN, 0};
    if (poll(&readable, 1, kPatienceMs) != 1) break;
    char buffer[4096];
    const ssize_t size = read(fd, buffer, sizeof(buffer));
    if (size <= 0) break;
    output.append(buffer, size);
  }
  return output;
}

// Returns where the line begins in which a sanitizer reports what it found, or
// npos.
std::size_t ReportBegin(const std::string& log) {
  std::size_t at = std::string::npos;
  for (const char* words : {"Sanitizer: ", ": runtime error: "}) {
    at = std::min(at, log.find(words));
  }
  if (at == std::string::npos) return at;
  const std::size_t line_end = log.rfind('\n', at);
  return line_end == std::string::npos ? 0 : line_end + 1;
}

}  // namespace

ServerProcess::ServerProcess(Process process, int out, std::string output,
                             std::unique_ptr<ScratchDirectory> log_directory)
    : process_(std::move(process)),
      out_(out),
      output_(std::move(output)),
      log_directory_(std::move(log_directory)),
      address_(AddressIn(output_)),
      http_address_(AddressIn(output_, kHttp)) {}

ServerProcess::~ServerProcess() {
  CheckLog();
  close(out_);
}

// Uses the log, which survives a killed server except for lines not yet
// written: a call is logged before it is answered, and of many failures in one
// second at least the first is logged. A call without a line has the same code
// as another failure.
void ServerProcess::CheckLog() {
  if (std::exchange(checked_log_, true)) return;
  const std::string all = log();
  const std::size_t report = ReportBegin(all);
  if (report != std::string::npos) {
    ADD_FAILURE() << all.substr(report, kMaxReportSize);
  }
  bool found = false;
  for (const absl::string_view line : absl::StrSplit(all, '\n')) {
    if (!absl::StrContains(line, R"("event":"call_failed")") ||
        !absl::StrContains(line, R"("code":"INTERNAL")")) {
      continue;
    }
    found = true;
    EXPECT_TRUE(expects_internal_errors_) << line;
  }
  EXPECT_TRUE(found || !expects_internal_errors_) << "no call ended so";
}

absl::StatusOr<std::unique_ptr<ServerProcess>> ServerProcess::Start(
    const std::string& data_dir, const std::vector<std::string>& flags,
    const std::vector<std::string>& environment) {
  std::vector<std::string> argv;
  if (!environment.empty()) {
    argv.push_back("/usr/bin/env");
    argv.insert(argv.end(), environment.begin(), environment.end());
  }
  argv.insert(argv.end(), {kAttendantd, "--data-dir", data_dir});
  if (std::ranges::find(flags, "--listen") == flags.end()) {
    argv.insert(argv.end(), {"--listen", "127.0.0.1:0"});
  }
  argv.insert(argv.end(), flags.begin(), flags.end());
  auto log_directory = std::make_unique<ScratchDirectory>();
  const std::string log_path = *log_directory / kLogFile;
  int out[2];
  if (pipe2(out, O_CLOEXEC) != 0) std::abort();
  const int err = OpenForWriting(log_path);
  Process process = Process::Start(argv, out[1], err);
  close(out[1]);
  close(err);
  std::string output = ReadUntilReady(out[0]);
  if (AddressIn(output).empty()) {
    close(out[0]);
    const int exit_status = process.Wait(absl::Seconds(10));
    return absl::FailedPreconditionError(
        absl::StrCat("attendantd ended with status ", exit_status, "\n", output,
                     ReadWholeFile(log_path)));
  }
  return std::unique_ptr<ServerProcess>(new ServerProcess(
      std::move(process), out[0], std::move(output), std::move(log_directory)));
}

absl::StatusOr<std::unique_ptr<Client>> ServerProcess::Connect() const {
  Client::Options options;
  options.server = address_;
  return Client::Connect(options);
}

int ServerProcess::Stop() {
  process_.Signal(SIGTERM);
  return Wait(absl::Minutes(1));
}

int ServerProcess::Wait(absl::Duration timeout) {
  const int exit_status = process_.Wait(timeout);
  CheckLog();
  return exit_status;
}

void ServerProcess::Signal(int signal) { process_.Signal(signal); }

void ServerProcess::Kill() {
  process_.Signal(SIGKILL);
  Wait(absl::Minutes(1));
}

}  // namespace attendant
