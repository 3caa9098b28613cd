// echo_server: the cost of a server that does nothing with its messages.
#include <google/protobuf/util/json_util.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/generic/generic_stub.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "attendant/v1/attention_service.pb.h"
#include "bench/served/echo_server.h"
#include "core/base/host_port.h"
#include "service/attendantd/stop_signal.h"

namespace attendant {
namespace {

absl::StatusOr<v1::AttendRequest> ReadRequest(const std::string& path) {
  std::ifstream file(path);
  const std::string json{std::istreambuf_iterator<char>(file), {}};
  v1::AttendRequest request;
  const auto status =
      google::protobuf::util::JsonStringToMessage(json, &request);
  if (!status.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": ", status.ToString()));
  }
  return request;
}

// Returns a server's answer. Internal if it does not serialise to as many bytes
// as the server sent: an echo of it would then do different work.
absl::StatusOr<v1::AttendResponse> ReplyOf(const std::string& server,
                                           const v1::AttendRequest& request) {
  grpc::GenericStub stub(
      grpc::CreateChannel(server, grpc::InsecureChannelCredentials()));
  const grpc::Slice sent(request.SerializeAsString());
  grpc::ClientContext context;
  grpc::CompletionQueue queue;
  const auto call =
      stub.PrepareUnaryCall(&context, "/attendant.v1.AttentionService/Attend",
                            grpc::ByteBuffer(&sent, 1), &queue);
  call->StartCall();
  grpc::ByteBuffer received;
  grpc::Status status;
  call->Finish(&received, &status, nullptr);
  void* tag = nullptr;
  bool ok = false;
  queue.Next(&tag, &ok);
  if (!status.ok()) {
    return absl::UnavailableError(
        absl::StrCat(server, ": ", status.error_message()));
  }
  grpc::Slice bytes;
  v1::AttendResponse reply;
  if (!received.DumpToSingleSlice(&bytes).ok() ||
      !reply.ParseFromArray(bytes.begin(), static_cast<int>(bytes.size()))) {
    return absl::InternalError(absl::StrCat(server, ": got no AttendResponse"));
  }
  if (reply.ByteSizeLong() != bytes.size()) {
    return absl::InternalError(absl::StrCat(
        server, ": got a reply of ", bytes.size(), " bytes, want the ",
        reply.ByteSizeLong(), " that are made of it"));
  }
  return reply;
}

int Main(int argc, char** argv) {
  std::string listen = "127.0.0.1:0";
  std::string server;
  std::string request_path;
  bool null = false;
  CLI::App app{"Answers every Attend with the same reply.", "echo_server"};
  app.add_option("--listen", listen, "HOST:PORT")->capture_default_str();
  CLI::Option* reply_of = app.add_option(
      "--reply-of", server,
      "HOST:PORT of the attendantd whose reply it is; default: an empty one");
  reply_of->needs(
      app.add_option("--request", request_path,
                     "File with the AttendRequest, as JSON, that it is to")
          ->check(CLI::ExistingFile)
          ->needs(reply_of));
  app.add_flag("--null", null, "Don't parse requests; make the reply once");
  CLI11_PARSE(app, argc, argv);

  v1::AttendResponse reply;
  if (!server.empty()) {
    const auto request = ReadRequest(request_path);
    const auto found =
        request.ok() ? ReplyOf(server, *request) : request.status();
    if (!found.ok()) {
      std::fprintf(stderr, "echo_server: %s\n",
                   found.status().ToString().c_str());
      return 1;
    }
    reply = *found;
  }
  // As in attendantd.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  CatchStopSignals();
  const auto echo = EchoServer::Start(
      reply, listen, null ? EchoWork::kNothing : EchoWork::kMessages);
  if (echo == nullptr) {
    std::fprintf(stderr, "echo_server: can't listen on %s\n", listen.c_str());
    return 1;
  }
  std::printf("echo_server ready on %s\n",
              WithPort(listen, echo->port()).c_str());
  std::fflush(stdout);
  AwaitStopSignal(/*on_hangup=*/[] {});
  return 0;
}

}  // namespace
}  // namespace attendant

int main(int argc, char** argv) { return attendant::Main(argc, argv); }
