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

// Attendantd on a data directory and a free port of the loopback interface. It
// is killed when this is destroyed. Not thread-safe.
class ServerProcess {
 public:
  // Starts it and waits until it says that it is ready. FailedPrecondition,
  // with the exit status and what it said, if it ends instead. It takes a free
  // port unless `flags` has --listen. `environment` are variables of its own,
  // as NAME=VALUE.
  static absl::StatusOr<std::unique_ptr<ServerProcess>> Start(
      const std::string& data_dir, const std::vector<std::string>& flags = {},
      const std::vector<std::string>& environment = {});

  ~ServerProcess();

  // HOST:PORT.
  const std::string& address() const { return address_; }
  // Of the HTTP port.
  const std::string& http_address() const { return http_address_; }
  // A new connection.
  absl::StatusOr<std::unique_ptr<Client>> Connect() const;

  pid_t pid() const { return process_.pid(); }

  // Of a test that has calls end with INTERNAL, which says that an invariant of
  // ours is broken: without it the test fails when the server ends or is
  // destroyed, with what the log says of them.
  void ExpectInternalErrors() { expects_internal_errors_ = true; }

  // SIGTERM, and the exit status.
  int Stop();
  // Sends a signal, and waits for nothing.
  void Signal(int signal);
  // SIGKILL, and waits for the end.
  void Kill();

  // Waits for it to end by itself: the exit status, or 128 + the signal that
  // ended it. After `timeout` it is killed, and the answer is -1.
  int Wait(absl::Duration timeout);

  // What it wrote to stdout until it was ready.
  const std::string& output() const { return output_; }
  // What it wrote to stderr so far: a JSON object a line.
  std::string log() const { return ReadWholeFile(*log_directory_ / kLogFile); }

 private:
  static constexpr char kLogFile[] = "server.log";

  ServerProcess(Process process, int out, std::string output,
                std::unique_ptr<ScratchDirectory> log_directory);

  // Once: what was found is not told again.
  void CheckInternalErrors();

  Process process_;
  const int out_;  // the end of its standard output to read from
  const std::string output_;
  const std::unique_ptr<ScratchDirectory> log_directory_;
  std::string address_;
  std::string http_address_;
  bool expects_internal_errors_ = false;
  bool checked_internal_errors_ = false;
};

}  // namespace attendant

#endif  // ATTENDANT_TESTS_INTEGRATION_SERVER_PROCESS_H_
