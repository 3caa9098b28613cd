#include "tests/integration/server_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "tests/integration/binaries.h"

namespace attendant {
namespace {

constexpr absl::string_view kReady = "attendantd ready on ";
constexpr absl::string_view kHttp = "attendantd http on ";
// Generous: sanitizers and a busy machine.
constexpr int kPatienceMs = 60000;

// What follows the words of a line, or nothing yet.
absl::string_view AddressIn(absl::string_view output,
                            absl::string_view words = kReady) {
  const std::size_t begin = output.find(words);
  if (begin == absl::string_view::npos) return {};
  const absl::string_view rest = output.substr(begin + words.size());
  const std::size_t end = rest.find('\n');
  return end == absl::string_view::npos ? absl::string_view()
                                        : rest.substr(0, end);
}

// Reads until the ready line is there, or the writer has closed its end.
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

}  // namespace

ServerProcess::ServerProcess(Process process, int out, std::string output,
                             std::unique_ptr<ScratchDirectory> log_directory)
    : process_(std::move(process)),
      out_(out),
      output_(std::move(output)),
      log_directory_(std::move(log_directory)),
      address_(AddressIn(output_)),
      http_address_(AddressIn(output_, kHttp)) {}

ServerProcess::~ServerProcess() { close(out_); }

absl::StatusOr<std::unique_ptr<ServerProcess>> ServerProcess::Start(
    const std::string& data_dir, const std::vector<std::string>& flags,
    const std::vector<std::string>& environment) {
  std::vector<std::string> argv;
  if (!environment.empty()) {
    argv.push_back("/usr/bin/env");
    argv.insert(argv.end(), environment.begin(), environment.end());
  }
  argv.insert(argv.end(), {kAttendantd, "--data-dir", data_dir});
  if (std::find(flags.begin(), flags.end(), "--listen") == flags.end()) {
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
  return process_.Wait(absl::Minutes(1));
}

void ServerProcess::Signal(int signal) { process_.Signal(signal); }

void ServerProcess::Kill() {
  process_.Signal(SIGKILL);
  process_.Wait(absl::Minutes(1));
}

}  // namespace attendant
