// Calls for whose end there is no memory: each must end once all the same, or
// its client would wait for ever.
#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "attendant/v1/attention_service.grpc.pb.h"
#include "core/base/clock.h"
#include "core/base/mutex.h"
#include "core/base/status.h"
#include "core/catalog/live/catalog_set.h"
#include "service/calls/unary_call.h"
#include "service/handlers/attend_call.h"
#include "service/queue/retry_delay.h"
#include "tests/core/catalog/failing_allocation.h"
#include "tests/support/sanitized.h"
#include "tests/support/scratch_directory.h"
#include "tests/support/status_matchers.h"

namespace attendant {
namespace {

using ::testing::AnyOf;
using ::testing::Contains;

// In the place of gRPC: learns how a call ends.
class FakeServerCall final : public grpc::ServerCallbackUnary {
 public:
  explicit FakeServerCall(grpc::ServerUnaryReactor& call) {
    BindReactor(&call);
  }
  void Finish(grpc::Status status) override {
    MutexLock lock(&mutex_);
    ++finish_count_;
    code_ = status.error_code();
    finished_.NotifyAll();
  }
  void SendInitialMetadata() override {}

  // Waits until the call has ended, and returns how often it has; 0 if it has
  // not within a minute.
  int AwaitFinish() {
    const SteadyTime end = SteadyAfter(absl::Minutes(1));
    MutexLock lock(&mutex_);
    while (finish_count_ == 0 && SteadyNow() < end) {
      finished_.WaitWithTimeout(&mutex_, TimeUntil(end));
    }
    return finish_count_;
  }
  grpc::StatusCode code() {
    MutexLock lock(&mutex_);
    return code_;
  }

 private:
  grpc::internal::ServerReactor* reactor() override { return nullptr; }
  void CallOnDone() override {}

  Mutex mutex_;
  CondVar finished_;
  int finish_count_ ABSL_GUARDED_BY(mutex_) = 0;
  grpc::StatusCode code_ ABSL_GUARDED_BY(mutex_) = grpc::StatusCode::OK;
};

// Lets a test have a call's context, which only gRPC can make.
class BorrowedCallService final
    : public v1::AttentionService::WithRawCallbackMethod_Attend<
          v1::AttentionService::Service> {
 public:
  using Use = std::function<void(grpc::CallbackServerContext& context,
                                 const grpc::ByteBuffer& request,
                                 grpc::ByteBuffer& response)>;

  grpc::ServerUnaryReactor* Attend(grpc::CallbackServerContext* context,
                                   const grpc::ByteBuffer* request,
                                   grpc::ByteBuffer* response) override {
    use(*context, *request, *response);
    grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
    // There is no reply to send.
    reactor->Finish(grpc::Status(grpc::StatusCode::ABORTED, ""));
    return reactor;
  }

  Use use;
};

// Set by a handler that is to be tried twice.
bool was_tried = false;

using AttendHandler = Handler<v1::AttendRequest, v1::AttendResponse>;
using ScriptedCall =
    UnaryCall<v1::AttendRequest, v1::AttendResponse, AttendHandler>;

class CallMemoryTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (kSanitized) GTEST_SKIP() << "no allocation fails";
    ASSERT_OK_AND_ASSIGN(catalogs_, CatalogSet::Open(directory_.path(), {}));
    backend_.emplace(catalogs_.get(), 65536);
  }

  // Runs a call whose nth allocation fails, for each n, and each later one too
  // or not. The call must end with `code`, or with what says that memory ran
  // out.
  void ExpectEnds(AttendHandler handler, grpc::StatusCode code) {
    v1::AttendRequest message;
    message.set_catalog("books");
    const std::string bytes = message.SerializeAsString();
    const grpc::Slice slice(bytes);
    for (const bool later_too : {false, true}) {
      bool befell = true;
      for (int nth = 1; befell; ++nth) {
        grpc::CallbackServerContext context;
        const grpc::ByteBuffer request(&slice, 1);
        grpc::ByteBuffer response;
        auto* call = new ScriptedCall(*backend_, FindMethod("Attend"), handler,
                                      pool_, context, request, response);
        FakeServerCall fake(*call);
        was_tried = false;
        {
          const FailingAllocation failing(nth, later_too);
          call->Run();
          befell = failing.befell();
        }
        ASSERT_EQ(fake.AwaitFinish(), 1) << nth << " " << later_too;
        if (!befell || fake.code() == code) {
          EXPECT_EQ(fake.code(), code);
        } else {
          EXPECT_THAT(codes_without_memory_, Contains(fake.code()));
        }
        call->OnDone();
      }
    }
    EXPECT_TRUE(backend_->calls.AwaitNone(SteadyAfter(absl::Minutes(1))));
  }

  // Sends `request` to a server that hands the call to `use`, on its thread.
  static void Send(const v1::AttendRequest& request,
                   BorrowedCallService::Use use) {
    BorrowedCallService service;
    service.use = std::move(use);
    int port = 0;
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(),
                             &port);
    builder.RegisterService(&service);
    const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
    ASSERT_NE(server, nullptr);
    const auto stub = v1::AttentionService::NewStub(grpc::CreateChannel(
        absl::StrCat("127.0.0.1:", port), grpc::InsecureChannelCredentials()));
    grpc::ClientContext context;
    v1::AttendResponse response;
    // What the calls have added to the context makes no difference here.
    static_cast<void>(stub->Attend(&context, request, &response));
    server->Shutdown();
  }

  std::vector<grpc::StatusCode> codes_without_memory_ = {
      grpc::StatusCode::RESOURCE_EXHAUSTED};
  ScratchDirectory directory_;
  std::unique_ptr<CatalogSet> catalogs_;
  std::optional<Backend> backend_;
  WorkerPool pool_{{.thread_count = 1}};
};

TEST_F(CallMemoryTest, ACallThatSucceedsEnds) {
  ExpectEnds(
      [](Backend&, const v1::AttendRequest&, const Interrupt&,
         v1::AttendResponse* response) {
        response->set_key_field("text");
        return absl::OkStatus();
      },
      grpc::StatusCode::OK);
}

// Its status has details.
TEST_F(CallMemoryTest, ACallWithAnInvalidFieldEnds) {
  ExpectEnds(
      [](Backend&, const v1::AttendRequest&, const Interrupt&,
         v1::AttendResponse*) {
        return InvalidField("query.vector.values", "3 values", "4 values");
      },
      grpc::StatusCode::INVALID_ARGUMENT);
}

// Its end is logged.
TEST_F(CallMemoryTest, ACallThatFailsByAnErrorOfOursEnds) {
  ExpectEnds(
      [](Backend&, const v1::AttendRequest&, const Interrupt&,
         v1::AttendResponse*) {
        return absl::InternalError("an invariant does not hold");
      },
      grpc::StatusCode::INTERNAL);
}

// The client is told when to try again.
TEST_F(CallMemoryTest, ACallThatMayBeTriedAgainEnds) {
  ExpectEnds(
      [](Backend&, const v1::AttendRequest&, const Interrupt&,
         v1::AttendResponse*) {
        return WithRetryDelay(
            StatusWithReason(absl::StatusCode::kResourceExhausted,
                             "too many requests wait", kQueueFull),
            absl::Milliseconds(300));
      },
      grpc::StatusCode::RESOURCE_EXHAUSTED);
}

TEST_F(CallMemoryTest, ACallThatThrowsEnds) {
  ExpectEnds(
      [](Backend&, const v1::AttendRequest&, const Interrupt&,
         v1::AttendResponse*) -> absl::Status {
        throw std::runtime_error("a surprise that takes some memory to tell");
      },
      grpc::StatusCode::INTERNAL);
}

TEST_F(CallMemoryTest, ACallThatWaitsForAWriteEnds) {
  // It may wait no longer if there is no memory for it.
  codes_without_memory_.push_back(grpc::StatusCode::DEADLINE_EXCEEDED);
  ExpectEnds(
      [](Backend&, const v1::AttendRequest&, const Interrupt&,
         v1::AttendResponse*) {
        if (std::exchange(was_tried, true)) return absl::OkStatus();
        return StatusWithReason(absl::StatusCode::kDeadlineExceeded,
                                "write 7 is under way", "WRITE_NOT_VISIBLE");
      },
      grpc::StatusCode::OK);
}

// It is light, so that it is answered on the thread that starts it.
TEST_F(CallMemoryTest, AnAttendCallEnds) {
  v1::AttendRequest message;
  message.set_catalog("a catalog that there is not");
  LightQueries light_queries;
  light_queries.Took(
      LightQueries::PlaceOf(absl::StrCat("near/", message.catalog()),
                            EffortOf(message)),
      absl::Microseconds(10));
  const auto run = [&](grpc::CallbackServerContext& context,
                       const grpc::ByteBuffer& request,
                       grpc::ByteBuffer& response, bool later_too) {
    bool befell = true;
    for (int nth = 1; befell; ++nth) {
      grpc::ServerUnaryReactor* call = nullptr;
      {
        const FailingAllocation failing(nth, later_too);
        try {
          call = StartAttendCall(*backend_, pool_, light_queries, &context,
                                 &request, &response);
        } catch (const std::bad_alloc&) {
          // gRPC ends a call that was not even made.
        }
        befell = failing.befell();
      }
      if (call == nullptr) continue;
      FakeServerCall fake(*call);
      ASSERT_EQ(fake.AwaitFinish(), 1) << nth << " " << later_too;
      EXPECT_THAT(fake.code(), AnyOf(grpc::StatusCode::NOT_FOUND,
                                     grpc::StatusCode::RESOURCE_EXHAUSTED));
      call->OnDone();
    }
  };
  Send(message,
       [&](grpc::CallbackServerContext& context,
           const grpc::ByteBuffer& request, grpc::ByteBuffer& response) {
         for (const bool later_too : {false, true}) {
           run(context, request, response, later_too);
         }
       });
  EXPECT_EQ(pool_.counts().elsewhere_turn_count, pool_.counts().turn_count);
  EXPECT_GT(pool_.counts().turn_count, 0);
  // Those that were not made are not counted either.
  EXPECT_TRUE(backend_->calls.AwaitNone(SteadyNow()));
}

}  // namespace
}  // namespace attendant
