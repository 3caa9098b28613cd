#include "bench/served/echo_server.h"

#include <google/protobuf/arena.h>
#include <grpcpp/server_builder.h>
#include <grpcpp/support/server_callback.h>

#include "attendant/v1/attention_service.grpc.pb.h"
#include "service/grpc_status.h"
#include "service/wire.h"

namespace attendant {

class EchoServer::Service final
    : public v1::AttentionService::WithRawCallbackMethod_Attend<
          v1::AttentionService::Service> {
 public:
  explicit Service(const v1::AttendResponse& reply) : reply_(reply) {}

  grpc::ServerUnaryReactor* Attend(grpc::CallbackServerContext* context,
                                   const grpc::ByteBuffer* request,
                                   grpc::ByteBuffer* response) override {
    google::protobuf::Arena arena;
    auto* parsed =
        google::protobuf::Arena::CreateMessage<v1::AttendRequest>(&arena);
    absl::Status status = ParseMessage(*request, parsed);
    if (status.ok()) {
      status = SerialiseMessage(reply_, 16 << 20, response);
    }
    grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
    reactor->Finish(ToGrpcStatus(status));
    return reactor;
  }

 private:
  const v1::AttendResponse reply_;
};

EchoServer::EchoServer(const v1::AttendResponse& reply)
    : service_(std::make_unique<Service>(reply)) {}

EchoServer::~EchoServer() {
  if (server_ != nullptr) server_->Shutdown();
}

std::unique_ptr<EchoServer> EchoServer::Start(const v1::AttendResponse& reply) {
  auto echo = std::unique_ptr<EchoServer>(new EchoServer(reply));
  grpc::ServerBuilder builder;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(),
                           &echo->port_);
  builder.RegisterService(echo->service_.get());
  echo->server_ = builder.BuildAndStart();
  if (echo->server_ == nullptr || echo->port_ == 0) return nullptr;
  return echo;
}

}  // namespace attendant
