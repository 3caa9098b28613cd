// Sends serialized requests at low cost.
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
  // Connections used in turns, >= thread_count. More are opened if all have
  // kMaxCalls under way.
  int connection_count = 4;
  int thread_count = 1;  // threads that receive answers, >= 1
  absl::Duration connect_deadline = absl::Seconds(10);  // > 0
  absl::Duration deadline = absl::Seconds(10);          // of each call, > 0
};

// Calls unary methods without parsing messages. Does not retry: a load tester
// reports failures. Thread-safe.
class WireSender {
 public:
  // The most calls under way on a connection. A server accepts a limited number
  // (attendantd --max-streams, 1,000); further calls would wait inside gRPC,
  // unnoticed.
  static constexpr int kMaxCalls = 500;

  // Connects. Errors of MakeChannelCredentials; Unavailable if the server can't
  // be reached within `connect_deadline`.
  static absl::StatusOr<std::unique_ptr<WireSender>> Connect(
      const WireSenderOptions& options);
  // Waits until all calls are done.
  ~WireSender();

  using Done = std::function<void(const absl::Status& status,
                                  const grpc::ByteBuffer& reply)>;
  // Calls `method` ("/package.Service/Method") with a message's bytes. `done`
  // is called once, on one of the sender's threads, and should be quick; it may
  // send again, on the same thread. The status has the server's code and
  // message.
  void Send(const std::string& method, const grpc::ByteBuffer& request,
            Done done);

  // Returns the number of connections, including those opened later.
  int connection_count() const;

  // Cancels the calls under way; those without an answer yet end with
  // Cancelled.
  void Cancel();

 private:
  class Lane;
  explicit WireSender(std::vector<std::unique_ptr<Lane>> lanes);

  const std::vector<std::unique_ptr<Lane>> lanes_;
  std::atomic<std::uint64_t> turn_{0};
};

}  // namespace attendant

#endif  // ATTENDANT_CLIENT_LOAD_SEND_WIRE_SENDER_H_
