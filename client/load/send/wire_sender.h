// Requests that are bytes already, sent at the least cost.
#ifndef ATTENDANT_CLIENT_LOAD_SEND_WIRE_SENDER_H_
#define ATTENDANT_CLIENT_LOAD_SEND_WIRE_SENDER_H_

#include <grpcpp/support/byte_buffer.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/api/credentials.h"

namespace attendant {

struct WireSenderOptions {
  std::string server = "127.0.0.1:7600";  // HOST:PORT
  ClientSecurity security = {};
  // Taken in turns, >= thread_count. More are opened where all of them have
  // kMaxCalls under way.
  int connection_count = 4;
  int thread_count = 1;  // that take answers, >= 1
  absl::Duration connect_deadline = absl::Seconds(10);  // > 0
  absl::Duration deadline = absl::Seconds(10);          // of each call, > 0
};

// Calls unary methods without looking at messages. Nothing is tried again: a
// load tester reports what fails. Thread-safe.
class WireSender {
 public:
  // Calls under way on a connection before another is taken. A server takes so
  // many at once (attendantd: --max-streams, 1,000); what is beyond them would
  // wait within gRPC, where nobody sees it.
  static constexpr int kMaxCalls = 500;

  // Connects. Errors of MakeChannelCredentials; Unavailable if the server can't
  // be reached within its deadline.
  static absl::StatusOr<std::unique_ptr<WireSender>> Connect(
      const WireSenderOptions& options);
  // Returns when all calls are done.
  ~WireSender();

  using Done = std::function<void(const absl::Status& status,
                                  const grpc::ByteBuffer& reply)>;
  // Calls `method` ("/package.Service/Method") with a message's bytes. `done`
  // is called once, on one of the sender's threads, and should be quick; it may
  // send again, on the same thread. The status has the server's code and
  // message.
  void Send(const std::string& method, const grpc::ByteBuffer& request,
            Done done);

  // Connections, with those that were opened later.
  int connection_count() const;

  // Ends the calls that are under way, with Cancelled but for those that were
  // answered already.
  void Cancel();

 private:
  class Lane;
  explicit WireSender(std::vector<std::unique_ptr<Lane>> lanes);

  const std::vector<std::unique_ptr<Lane>> lanes_;
  std::atomic<std::uint64_t> turn_{0};
};

}  // namespace attendant

#endif  // ATTENDANT_CLIENT_LOAD_SEND_WIRE_SENDER_H_
