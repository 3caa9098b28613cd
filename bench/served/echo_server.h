// A server that does only what every server of these messages must do.
#ifndef ATTENDANT_BENCH_SERVED_ECHO_SERVER_H_
#define ATTENDANT_BENCH_SERVED_ECHO_SERVER_H_

#include <grpcpp/server.h>

#include <memory>
#include <string>

#include "attendant/v1/attention_service.pb.h"

namespace attendant {

enum class EchoWork {
  // Parses each request and serialises a reply for each.
  kMessages,
  // Does neither: the reply's bytes are made once. The resulting rate is the
  // upper limit of what a load tester can send.
  kNothing,
};

// Answers every Attend with the same reply, on the gRPC thread that the call
// arrives on, through the raw callback methods that attendantd uses.
class EchoServer {
 public:
  // Listens on `listen`, HOST:PORT; returns null if it cannot.
  static std::unique_ptr<EchoServer> Start(
      const v1::AttendResponse& reply,
      const std::string& listen = "127.0.0.1:0",
      EchoWork work = EchoWork::kMessages);
  ~EchoServer();

  int port() const { return port_; }

 private:
  class Service;

  EchoServer(const v1::AttendResponse& reply, EchoWork work);

  std::unique_ptr<Service> service_;
  std::unique_ptr<grpc::Server> server_;
  int port_ = 0;
};

}  // namespace attendant

#endif  // ATTENDANT_BENCH_SERVED_ECHO_SERVER_H_
