// A server that does nothing but what every server of these messages must.
#ifndef ATTENDANT_BENCH_SERVED_ECHO_SERVER_H_
#define ATTENDANT_BENCH_SERVED_ECHO_SERVER_H_

#include <grpcpp/server.h>

#include <memory>

#include "attendant/v1/attention_service.pb.h"

namespace attendant {

// Answers every Attend with the same reply: parses the request and serialises
// the reply anew each time, on the thread of gRPC's that the call arrives on,
// through the raw callback methods that attendantd uses.
class EchoServer {
 public:
  // Listens on a free loopback port; null if it can't.
  static std::unique_ptr<EchoServer> Start(const v1::AttendResponse& reply);
  ~EchoServer();

  int port() const { return port_; }

 private:
  class Service;

  explicit EchoServer(const v1::AttendResponse& reply);

  std::unique_ptr<Service> service_;
  std::unique_ptr<grpc::Server> server_;
  int port_ = 0;
};

}  // namespace attendant

#endif  // ATTENDANT_BENCH_SERVED_ECHO_SERVER_H_
