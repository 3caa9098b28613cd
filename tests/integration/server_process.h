// The real attendantd as a child process.
#ifndef ATTENDANT_TESTS_INTEGRATION_SERVER_PROCESS_H_
#define ATTENDANT_TESTS_INTEGRATION_SERVER_PROCESS_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/api/client.h"
#include "tests/integration/process.h"
#include "tests/support/scratch_directory.h"

namespace attendant {

// attendantd on a data directory and a free loopback port. The destructor kills
// it. Not thread-safe.
class ServerProcess {
 public:
  // Starts the server and waits until it reports that it is ready. Returns
  // FailedPrecondition, with the exit status and its output, if it ends
  // instead. Uses a free port unless `flags` has --listen. `environment` adds
  // variables as NAME=VALUE.
  static absl::StatusOr<std::unique_ptr<ServerProcess>> Start(
      const std::string& data_dir, const std::vector<std::string>& flags = {},
      const std::vector<std::string>& environment = {});

  ~ServerProcess();

  // HOST:PORT of the gRPC port.
  const std::string& address() const { return address_; }
  // HOST:PORT of the HTTP port.
  const std::string& http_address() const { return http_address_; }
  // Opens a new connection.
  absl::StatusOr<std::unique_ptr<Client>> Connect() const;

  pid_t pid() const { return process_.pid(); }

  // For tests in which calls get INTERNAL, which means a broken invariant of
  // the server. Without this the test fails when the server ends or is
  // destroyed, and reports what the log says of those calls.
  void ExpectInternalErrors() { expects_internal_errors_ = true; }

  // Sends SIGTERM and returns the exit status.
  int Stop();
  // Sends a signal without waiting.
  void Signal(int signal);
  // Sends SIGKILL and waits for the process to end.
  void Kill();

  // Waits for the server to end by itself. Returns the exit status, or 128 +
  // the signal that ended it. After `timeout` kills it and returns -1.
  int Wait(absl::Duration timeout);

  // stdout up to the moment when the server was ready.
  const std::string& output() const { return output_; }
  // stderr so far: one JSON object per line.
  std::string log() const { return ReadWholeFile(*log_directory_ / kLogFile); }

 private:
  static constexpr char kLogFile[] = "server.log";

  ServerProcess(Process process, int out, std::string output,
                std::unique_ptr<ScratchDirectory> log_directory);

  // Reports internal errors and what a sanitizer found, at most once.
  void CheckLog();

  Process process_;
  const int out_;  // the end of its standard output to read from
  const std::string output_;
  const std::unique_ptr<ScratchDirectory> log_directory_;
  std::string address_;
  std::string http_address_;
  bool expects_internal_errors_ = false;
  bool checked_log_ = false;
};

}  // namespace attendant

#endif  // ATTENDANT_TESTS_INTEGRATION_SERVER_PROCESS_H_
