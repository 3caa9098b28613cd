#include "bench/served/echo_server.h"

#include <google/protobuf/arena.h>
#include <grpcpp/server_builder.h>
#include <grpcpp/support/server_callback.h>

#include "attendant/v1/attention_service.grpc.pb.h"
#include "service/calls/grpc_status.h"
#include "service/convert/wire.h"

namespace attendant {
namespace {

constexpr std::int64_t kMaxMessageBytes = 16 << 20;

absl::Status Echo(const grpc::ByteBuffer& request,
                  const v1::AttendResponse& reply, grpc::ByteBuffer* response) {
  google::protobuf::Arena arena;
  auto* parsed =
      google::protobuf::Arena::CreateMessage<v1::AttendRequest>(&arena);
  const absl::Status status = ParseMessage(request, parsed);
  if (!status.ok()) return status;
  return SerialiseMessage(reply, kMaxMessageBytes, response);
}

}  // namespace

class EchoServer::Service final
    : public v1::AttentionService::WithRawCallbackMethod_Attend<
          v1::AttentionService::Service> {
 public:
  Service(const v1::AttendResponse& reply, EchoWork work)
      : work_(work), reply_(reply) {
    const grpc::Slice slice(reply.SerializeAsString());
    reply_bytes_ = grpc::ByteBuffer(&slice, 1);
  }

  grpc::ServerUnaryReactor* Attend(grpc::CallbackServerContext* context,
                                   const grpc::ByteBuffer* request,
                                   grpc::ByteBuffer* response) override {
    grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
    if (work_ == EchoWork::kNothing) {
      *response = reply_bytes_;
      reactor->Finish(grpc::Status::OK);
    } else {
      reactor->Finish(ToGrpcStatus(Echo(*request, reply_, response)));
    }
    return reactor;
  }

 private:
  const EchoWork work_;
  const v1::AttendResponse reply_;
  grpc::ByteBuffer reply_bytes_;
};

EchoServer::EchoServer(const v1::AttendResponse& reply, EchoWork work)
    : service_(std::make_unique<Service>(reply, work)) {}

EchoServer::~EchoServer() {
  if (server_ != nullptr) server_->Shutdown();
}

std::unique_ptr<EchoServer> EchoServer::Start(const v1::AttendResponse& reply,
                                              const std::string& listen,
                                              EchoWork work) {
  auto echo = std::unique_ptr<EchoServer>(new EchoServer(reply, work));
  grpc::ServerBuilder builder;
  builder.AddListeningPort(listen, grpc::InsecureServerCredentials(),
                           &echo->port_);
  builder.RegisterService(echo->service_.get());
  echo->server_ = builder.BuildAndStart();
  if (echo->server_ == nullptr || echo->port_ == 0) return nullptr;
  return echo;
}

}  // namespace attendant
