#include "client/load/send/wire_sender.h"

#include <gmock/gmock.h>
#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>
#include <grpcpp/server_posix.h>
#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "attendant/v1/attention_service.grpc.pb.h"
#include "core/base/clock.h"
#include "tests/support/silent_listener.h"
#include "tests/support/status_matchers.h"

namespace attendant {
namespace {

// Answers with an empty message, or not until the call is cancelled.
class EmptyAttention final : public v1::AttentionService::Service {
 public:
  explicit EmptyAttention(bool is_silent) : is_silent_(is_silent) {}

  grpc::Status Attend(grpc::ServerContext* context,
                      const v1::AttendRequest* /*request*/,
                      v1::AttendResponse* /*response*/) override {
    while (is_silent_ && !context->IsCancelled()) {
      absl::SleepFor(absl::Milliseconds(1));
    }
    return grpc::Status::OK;
  }

 private:
  const bool is_silent_;
};

// A server that can stop and start again, and a sender.
class WireSenderTest : public ::testing::Test {
 protected:
  void StartServer(bool is_silent) {
    attention_ = std::make_unique<EmptyAttention>(is_silent);
    grpc::ServerBuilder builder;
    builder.AddListeningPort(absl::StrCat("127.0.0.1:", port_),
                             grpc::InsecureServerCredentials(), &port_);
    builder.RegisterService(attention_.get());
    server_ = builder.BuildAndStart();
    ASSERT_NE(server_, nullptr);
  }

  void Connect() {
    ASSERT_OK_AND_ASSIGN(
        sender_,
        WireSender::Connect({.server = absl::StrCat("127.0.0.1:", port_),
                             .connection_count = 1}));
  }

  std::future<absl::Status> Send() {
    auto answer = std::make_shared<std::promise<absl::Status>>();
    // An empty message.
    const grpc::Slice slice;
    sender_->Send(
        "/attendant.v1.AttentionService/Attend", grpc::ByteBuffer(&slice, 1),
        [answer](const absl::Status& status, const grpc::ByteBuffer&) {
          answer->set_value(status);
        });
    return answer->get_future();
  }

  int port_ = 0;
  std::unique_ptr<EmptyAttention> attention_;
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<WireSender> sender_;
};

TEST_F(WireSenderTest, CancelEndsWhatIsUnderWay) {
  StartServer(/*is_silent=*/true);
  Connect();
  std::future<absl::Status> first = Send();
  std::future<absl::Status> second = Send();
  sender_->Cancel();
  EXPECT_TRUE(absl::IsCancelled(first.get()));
  EXPECT_TRUE(absl::IsCancelled(second.get()));
}

// gRPC would reconnect after a second, and then after longer and longer waits.
TEST_F(WireSenderTest, SeesTheEndOfAnOutageAtOnce) {
  StartServer(/*is_silent=*/false);
  Connect();
  EXPECT_OK(Send().get());
  server_.reset();
  const SteadyTime give_up = SteadyAfter(absl::Minutes(1));
  while (Send().get().ok() && SteadyNow() < give_up) {
  }
  StartServer(/*is_silent=*/false);
  const SteadyTime back = SteadyNow();
  while (!Send().get().ok() && SteadyNow() < give_up) {
    absl::SleepFor(absl::Milliseconds(1));
  }
  EXPECT_LT(TimeSince(back), absl::Milliseconds(600));
}

// The kernel accepts connections at once; a busy server gets to them later.
TEST_F(WireSenderTest, WaitsForAServerThatIsSlowToTakeItsConnection) {
  const SilentListener listener;
  StartServer(/*is_silent=*/false);
  port_ = listener.port();
  // Takes the first connection alone: later ones are second attempts.
  std::jthread slow([&] {
    absl::SleepFor(absl::Milliseconds(500));
    const int taken = listener.Accept();
    if (taken >= 0) grpc::AddInsecureChannelFromFd(server_.get(), taken);
  });
  Connect();
  EXPECT_OK(Send().get());
}

// A server that accepts connections but no calls.
class DeafServer {
 public:
  DeafServer() {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(),
                             &port_);
    builder.RegisterAsyncGenericService(&service_);
    queue_ = builder.AddCompletionQueue();
    server_ = builder.BuildAndStart();
  }
  ~DeafServer() {
    server_->Shutdown(std::chrono::system_clock::now());
    queue_->Shutdown();
    void* tag = nullptr;
    bool ok = false;
    while (queue_->Next(&tag, &ok)) {
    }
  }
  int port() const { return port_; }

 private:
  int port_ = 0;
  grpc::AsyncGenericService service_;
  std::unique_ptr<grpc::ServerCompletionQueue> queue_;
  std::unique_ptr<grpc::Server> server_;
};

// A server limits the calls of a connection: further ones would wait here.
TEST_F(WireSenderTest, OpensAConnectionWhereTheOthersHaveNoRoom) {
  const DeafServer server;
  port_ = server.port();
  Connect();
  std::vector<std::future<absl::Status>> calls;
  for (int i = 0; i < WireSender::kMaxCalls; ++i) calls.push_back(Send());
  EXPECT_EQ(sender_->connection_count(), 1);
  calls.push_back(Send());
  EXPECT_EQ(sender_->connection_count(), 2);
  sender_->Cancel();
  for (std::future<absl::Status>& call : calls) {
    EXPECT_TRUE(absl::IsCancelled(call.get()));
  }
  // The connections have room again.
  calls.clear();
  for (int i = 0; i < 2 * WireSender::kMaxCalls; ++i) calls.push_back(Send());
  EXPECT_EQ(sender_->connection_count(), 2);
  sender_->Cancel();
  for (std::future<absl::Status>& call : calls) call.wait();
}

}  // namespace
}  // namespace attendant
