// Calls whose handlers the test controls: cancellations, deadlines, full queues
// and exceptions.
#include "service/calls/unary_call.h"

#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <new>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/substitute.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "attendant/v1/attention_service.grpc.pb.h"
#include "core/base/clock.h"
#include "core/base/mutex.h"
#include "core/base/status.h"
#include "core/storage/files/files.h"
#include "service/metrics/metric_page.h"
#include "tests/service/internal_errors.h"
#include "tests/service/raw_call.h"
#include "tests/service/rpc_details.h"
#include "tests/support/wall_clock.h"

namespace attendant {
namespace {

using ::testing::HasSubstr;

// Records what handlers did, for one test at a time.
class Script {
 public:
  void CallArrived(SteadyTime deadline) {
    MutexLock lock(&mutex_);
    last_deadline_ = deadline;
    ++arrived_count_;
    changed_.NotifyAll();
  }
  // Waits for `count` calls; returns the last one's deadline as the server
  // knows it.
  SteadyTime AwaitArrived(int count) {
    MutexLock lock(&mutex_);
    while (arrived_count_ < count) changed_.Wait(&mutex_);
    return last_deadline_;
  }
  void CallStarted() {
    MutexLock lock(&mutex_);
    ++started_count_;
    changed_.NotifyAll();
  }
  void Checked() {
    MutexLock lock(&mutex_);
    ++check_count_;
    changed_.NotifyAll();
  }
  // Waits for `count` more checks.
  void AwaitChecks(int count) {
    MutexLock lock(&mutex_);
    const int end = check_count_ + count;
    while (check_count_ < end) changed_.Wait(&mutex_);
  }
  void CallEnded(absl::StatusCode code) {
    MutexLock lock(&mutex_);
    last_code_ = code;
    ++ended_count_;
    changed_.NotifyAll();
  }
  void AwaitStarted(int count) {
    MutexLock lock(&mutex_);
    while (started_count_ < count) changed_.Wait(&mutex_);
  }
  absl::StatusCode AwaitEnded(int count) {
    MutexLock lock(&mutex_);
    while (ended_count_ < count) changed_.Wait(&mutex_);
    return last_code_;
  }
  int started_count() {
    MutexLock lock(&mutex_);
    return started_count_;
  }

  std::atomic<bool> release = false;

 private:
  Mutex mutex_;
  CondVar changed_;
  int arrived_count_ ABSL_GUARDED_BY(mutex_) = 0;
  SteadyTime last_deadline_ ABSL_GUARDED_BY(mutex_) = SteadyTime::min();
  int started_count_ ABSL_GUARDED_BY(mutex_) = 0;
  int check_count_ ABSL_GUARDED_BY(mutex_) = 0;
  int ended_count_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::StatusCode last_code_ ABSL_GUARDED_BY(mutex_) = absl::StatusCode::kOk;
};

Script* script = nullptr;

// Does what the query's catalog name asks for.
absl::Status ScriptedHandler(Backend& /*backend*/,
                             const v1::AttendRequest& request,
                             const Interrupt& interrupt,
                             v1::AttendResponse* response) {
  script->CallStarted();
  absl::Status status;
  if (request.catalog() == "wait") {
    while (status.ok() && !script->release.load()) {
      std::this_thread::yield();
      status = interrupt.Check();
      script->Checked();
    }
  } else if (request.catalog() == "out of memory") {
    throw std::bad_alloc();
  } else if (request.catalog() == "out of threads") {
    throw std::system_error(
        std::make_error_code(std::errc::resource_unavailable_try_again));
  } else if (request.catalog() == "no rights") {
    status = StatusWithReason(absl::StatusCode::kUnavailable, "no rights",
                              kFilesNotAccessible);
  } else if (request.catalog() == "no larger files") {
    status = StatusWithReason(absl::StatusCode::kResourceExhausted,
                              "no larger files", kFileTooLarge);
  } else if (request.catalog() == "throw") {
    throw std::runtime_error("a surprise");
  } else if (request.catalog() == "not visible yet") {
    // The reply of a failed attempt must not remain.
    response->add_unknown_example_ids("of one try");
    if (!script->release.load()) {
      status = StatusWithReason(absl::StatusCode::kDeadlineExceeded,
                                "not visible", "WRITE_NOT_VISIBLE");
    }
  } else if (request.catalog() == "large") {
    response->set_key_field(std::string(70000, 'x'));
  }
  script->CallEnded(status.code());
  return status;
}

class ScriptedService final
    : public v1::AttentionService::WithRawCallbackMethod_Attend<
          v1::AttentionService::Service> {
 public:
  ScriptedService(Backend& backend, WorkerPool& pool)
      : backend_(backend), pool_(pool) {}

  grpc::ServerUnaryReactor* Attend(grpc::CallbackServerContext* context,
                                   const grpc::ByteBuffer* request,
                                   grpc::ByteBuffer* response) override {
    script->CallArrived(DeadlineOf(*context));
    return StartUnaryCall<v1::AttendRequest, v1::AttendResponse>(
        backend_, pool_, FindMethod("Attend"), &ScriptedHandler, context,
        request, response);
  }

 private:
  Backend& backend_;
  WorkerPool& pool_;
};

// One worker, and room for one waiting call.
class UnaryCallTest : public ::testing::Test {
 protected:
  void SetUp() override {
    script = &script_;
    int port = 0;
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(),
                             &port);
    builder.RegisterService(&service_);
    server_ = builder.BuildAndStart();
    ASSERT_NE(server_, nullptr);
    channel_ = grpc::CreateChannel(absl::StrCat("127.0.0.1:", port),
                                   grpc::InsecureChannelCredentials());
    stub_ = v1::AttentionService::NewStub(channel_);
  }

  void TearDown() override {
    script_.release = true;
    server_->Shutdown();
    server_->Wait();
    pool_.Stop();
    MetricPage page;
    backend_.metrics.Write(page);
    internal_errors_.Check(page);
  }

  grpc::Status Call(const std::string& what, grpc::ClientContext& context) {
    v1::AttendRequest request;
    request.set_catalog(what);
    v1::AttendResponse response;
    return stub_->Attend(&context, request, &response);
  }
  // A call's status arrives shortly before its turn ends.
  void AwaitNoTurn() {
    while (pool_.counts().busy_worker_count > 0) std::this_thread::yield();
  }
  grpc::Status Call(const std::string& what) {
    grpc::ClientContext context;
    return Call(what, context);
  }
  // Sets a deadline that only the server knows. With its own deadline the
  // caller might report it first, depending on load.
  static void SetServerDeadline(const char* timeout,
                                grpc::ClientContext& context) {
    context.AddMetadata("grpc-timeout", timeout);
  }
  // Expects `count` calls with this code to be recorded once all have ended.
  void ExpectRecorded(const char* code, int count) {
    ASSERT_TRUE(backend_.calls.AwaitNone(SteadyAfter(absl::Minutes(1))));
    MetricPage page;
    backend_.metrics.Write(page);
    EXPECT_THAT(page.Text(),
                HasSubstr(absl::Substitute(
                    "grpc_server_handled_total{grpc_type=\"unary\","
                    "grpc_service=\"attendant.v1.AttentionService\","
                    "grpc_method=\"Attend\",grpc_code=\"$0\"} $1\n",
                    code, count)));
  }

  InternalErrors internal_errors_;
  Script script_;
  Backend backend_{nullptr, 65536};
  WorkerPool pool_{{.thread_count = 1, .max_waiting_count = 1}};
  ScriptedService service_{backend_, pool_};
  std::unique_ptr<grpc::Server> server_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<v1::AttentionService::Stub> stub_;
};

TEST_F(UnaryCallTest, CancellationReachesTheHandler) {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() +
                       std::chrono::hours(1));
  std::thread caller([&] {
    EXPECT_EQ(Call("wait", context).error_code(), grpc::StatusCode::CANCELLED);
  });
  script_.AwaitStarted(1);
  context.TryCancel();
  EXPECT_EQ(script_.AwaitEnded(1), absl::StatusCode::kCancelled);
  caller.join();
  AwaitNoTurn();
  EXPECT_EQ(pool_.counts().cut_short_count, 1);
  EXPECT_GT(pool_.counts().overrun_ns, 0);
  ExpectRecorded("Canceled", 1);
}

TEST_F(UnaryCallTest, DeadlineReachesTheHandler) {
  grpc::ClientContext context;
  // Enough for the call to begin on a busy machine.
  SetServerDeadline("2S", context);
  EXPECT_EQ(Call("wait", context).error_code(),
            grpc::StatusCode::DEADLINE_EXCEEDED);
  // Even though gRPC cancels a call past its deadline, possibly earlier.
  EXPECT_EQ(script_.AwaitEnded(1), absl::StatusCode::kDeadlineExceeded);
  AwaitNoTurn();
  EXPECT_EQ(pool_.counts().cut_short_count, 1);
  ExpectRecorded("DeadlineExceeded", 1);
}

// Computes a caller's own deadline from the server's, which gRPC rounds up: it
// is earlier by as much.
TEST(CallerDeadlineTest, IsNoLaterThanWhatWasRoundedUp) {
  const SteadyTime now = SteadyNow();
  const auto caller_ms = [&](int deadline_ms) {
    const SteadyTime deadline = now + std::chrono::milliseconds(deadline_ms);
    return (CallerDeadline(deadline, now) - now) / std::chrono::milliseconds(1);
  };
  // Rounded up from 1.001, 10.001 and 100.001 s.
  EXPECT_LE(caller_ms(1010), 1001);
  EXPECT_LE(caller_ms(10100), 10001);
  EXPECT_LE(caller_ms(101000), 100001);
  // Not so early that a cancellation is likely to be mistaken for it.
  EXPECT_GE(caller_ms(100), 80);
  EXPECT_GE(caller_ms(10000), 9800);
  EXPECT_EQ(CallerDeadline(SteadyTime::max(), now), SteadyTime::max());
}

TEST_F(UnaryCallTest, AClockSetForwardEndsNoCall) {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() +
                       std::chrono::hours(1));
  grpc::Status status;
  std::thread caller([&] { status = Call("wait", context); });
  script_.AwaitStarted(1);
  const ShiftedWallClock tomorrow(absl::Hours(24));
  script_.AwaitChecks(10);
  script_.release = true;
  caller.join();
  EXPECT_TRUE(status.ok()) << status.error_message();
}

// Includes a call that waits for a write, which an alarm's clock wakes.
TEST_F(UnaryCallTest, AClockSetBackDelaysNoCall) {
  grpc::Status status;
  std::thread caller([&] { status = Call("not visible yet"); });
  script_.AwaitStarted(2);
  const ShiftedWallClock yesterday(-absl::Hours(24));
  script_.AwaitStarted(5);
  script_.release = true;
  caller.join();
  EXPECT_TRUE(status.ok()) << status.error_message();
}

TEST_F(UnaryCallTest, CallThatExpiresInTheQueueDoesNoWork) {
  std::thread caller([&] { EXPECT_TRUE(Call("wait").ok()); });
  script_.AwaitStarted(1);
  grpc::ClientContext context;
  // Enough for the call to arrive on a busy machine.
  SetServerDeadline("2S", context);
  EXPECT_EQ(Call("wait", context).error_code(),
            grpc::StatusCode::DEADLINE_EXCEEDED);
  // gRPC counts in milliseconds and may report the deadline a little early.
  const SteadyTime deadline = script_.AwaitArrived(2);
  while (SteadyNow() <= deadline) std::this_thread::yield();
  script_.release = true;
  caller.join();
  server_->Shutdown();
  pool_.Stop();  // after what waited in it
  EXPECT_EQ(script_.started_count(), 1);
  EXPECT_EQ(pool_.counts().ended_waiting_count, 1);
  ExpectRecorded("DeadlineExceeded", 1);
}

TEST_F(UnaryCallTest, ACancelledCallGivesItsPlaceToAnother) {
  std::thread first([&] { EXPECT_TRUE(Call("wait").ok()); });
  script_.AwaitStarted(1);
  grpc::ClientContext context;
  std::thread second([&] {
    EXPECT_EQ(Call("wait", context).error_code(), grpc::StatusCode::CANCELLED);
  });
  // The queue has room for one.
  while (pool_.counts().waiting_count == 0) std::this_thread::yield();
  context.TryCancel();
  second.join();
  while (pool_.counts().waiting_count > 0) std::this_thread::yield();
  std::thread third([&] { EXPECT_TRUE(Call("wait").ok()); });
  while (pool_.counts().waiting_count == 0) std::this_thread::yield();
  script_.release = true;
  first.join();
  third.join();
  EXPECT_EQ(pool_.counts().ended_waiting_count, 1);
  ExpectRecorded("Canceled", 1);
}

TEST_F(UnaryCallTest, FullQueueRefusesWithRetryInfo) {
  std::thread first([&] { EXPECT_TRUE(Call("wait").ok()); });
  script_.AwaitStarted(1);
  // Of two more calls, one waits and one is refused, which lets the first end.
  std::atomic<int> refused_count = 0;
  const auto call = [&] {
    grpc::ClientContext context;
    const grpc::Status status = Call("wait", context);
    if (status.ok()) return;
    EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
    const google::rpc::Status details = DetailsOf(status);
    EXPECT_EQ(ReasonIn(details), "QUEUE_FULL");
    EXPECT_EQ(Details<google::rpc::RetryInfo>(details).size(), 1u);
    // The same for gRPC's built-in retries.
    const auto& metadata = context.GetServerTrailingMetadata();
    const auto push_back = metadata.find("grpc-retry-pushback-ms");
    ASSERT_NE(push_back, metadata.end());
    EXPECT_NE(push_back->second, "-1");
    ++refused_count;
    script_.release = true;
  };
  std::thread second(call);
  std::thread third(call);
  first.join();
  second.join();
  third.join();
  EXPECT_EQ(refused_count, 1);
  EXPECT_EQ(backend_.metrics.shed[ShedReason::kQueueFull].value(), 1);
}

TEST_F(UnaryCallTest, DrainingRefusesWithUnavailable) {
  backend_.draining = true;
  const grpc::Status status = Call("ok");
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(ReasonIn(DetailsOf(status)), "DRAINING");
  EXPECT_EQ(script_.started_count(), 0);
  EXPECT_EQ(backend_.metrics.shed[ShedReason::kDraining].value(), 1);
}

// Returns the log lines of this event, as JSON.
std::vector<nlohmann::json> Events(const std::string& log,
                                   const std::string& event) {
  std::vector<nlohmann::json> events;
  for (const absl::string_view line : absl::StrSplit(log, '\n')) {
    const auto json = nlohmann::json::parse(line, nullptr, false);
    if (!json.is_discarded() && json["event"] == event) events.push_back(json);
  }
  return events;
}

TEST_F(UnaryCallTest, SlowQueriesAreLoggedWithTheirRequestAndTrace) {
  backend_.records.slow_query_time = absl::ZeroDuration();
  testing::internal::CaptureStderr();
  grpc::ClientContext context;
  context.AddMetadata("x-request-id", "checkout 7");
  context.AddMetadata(
      "traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01");
  EXPECT_TRUE(Call("ok", context).ok());
  EXPECT_TRUE(Call("ok").ok());
  EXPECT_TRUE(Call("ok").ok());
  const auto slow =
      Events(testing::internal::GetCapturedStderr(), "slow_query");
  ASSERT_EQ(slow.size(), 3u);
  EXPECT_EQ(slow[0]["level"], "warning");
  EXPECT_EQ(slow[0]["request_id"], "checkout 7");
  EXPECT_EQ(slow[0]["trace_id"], "4bf92f3577b34da6a3ce929d0e0e4736");
  EXPECT_EQ(slow[0]["parent_span_id"], "00f067aa0ba902b7");
  EXPECT_EQ(slow[0]["method"], "Attend");
  EXPECT_EQ(slow[0]["code"], "OK");
  EXPECT_EQ(slow[0]["catalog"], "ok");
  EXPECT_GE(slow[0]["time_ms"].get<double>(), 0);
  for (const char* time : {"queue_duration", "read_duration", "answer_duration",
                           "reply_duration"}) {
    EXPECT_TRUE(slow[0]["plan"].contains(time)) << time;
  }
  EXPECT_FALSE(slow[1].contains("trace_id"));
  EXPECT_EQ(slow[1]["request_id"].get<std::string>().size(), 16u);
  EXPECT_NE(slow[1]["request_id"], slow[2]["request_id"]);
  EXPECT_EQ(backend_.metrics.slow_queries.value(), 3);
}

TEST_F(UnaryCallTest, ASlowQueryPastItsDeadlineIsLoggedWithItsStages) {
  backend_.records.slow_query_time = absl::ZeroDuration();
  testing::internal::CaptureStderr();
  grpc::ClientContext context;
  // Enough for the call to begin on a busy machine.
  SetServerDeadline("2S", context);
  EXPECT_EQ(Call("wait", context).error_code(),
            grpc::StatusCode::DEADLINE_EXCEEDED);
  backend_.calls.AwaitNone(SteadyAfter(absl::Minutes(1)));
  const auto slow =
      Events(testing::internal::GetCapturedStderr(), "slow_query");
  ASSERT_EQ(slow.size(), 1u);
  EXPECT_NE(slow[0]["plan"]["answer_duration"], "0s");
}

TEST_F(UnaryCallTest, AFloodOfSlowQueriesIsCountedButNotLogged) {
  backend_.records.slow_query_time = absl::ZeroDuration();
  testing::internal::CaptureStderr();
  const SteadyTime begin = SteadyNow();
  constexpr int kCalls = 30;
  for (int i = 0; i < kCalls; ++i) EXPECT_TRUE(Call("ok").ok());
  const double seconds = absl::ToDoubleSeconds(TimeSince(begin));
  const auto slow =
      Events(testing::internal::GetCapturedStderr(), "slow_query");
  EXPECT_GE(slow.size(), 1u);
  EXPECT_LE(static_cast<double>(slow.size()), 10 * (seconds + 1));
  EXPECT_EQ(backend_.metrics.slow_queries.value(), kCalls);
}

TEST_F(UnaryCallTest, ARequestIdThatCouldConfuseALogIsNotTaken) {
  backend_.records.slow_query_time = absl::ZeroDuration();
  testing::internal::CaptureStderr();
  grpc::ClientContext context;
  context.AddMetadata("x-request-id", std::string(129, 'x'));
  EXPECT_TRUE(Call("ok", context).ok());
  const auto slow =
      Events(testing::internal::GetCapturedStderr(), "slow_query");
  ASSERT_EQ(slow.size(), 1u);
  EXPECT_EQ(slow[0]["request_id"].get<std::string>().size(), 16u);
}

// The parsed part may hold anything.
TEST_F(UnaryCallTest, NothingIsToldOfAMessageThatWasNotRead) {
  backend_.records.slow_query_time = absl::ZeroDuration();
  testing::internal::CaptureStderr();
  v1::AttendRequest request;
  request.set_catalog("ok");
  EXPECT_EQ(CallWithBytes(channel_, "/attendant.v1.AttentionService/Attend",
                          request.SerializeAsString() + "\xff")
                .error_code(),
            grpc::StatusCode::INVALID_ARGUMENT);
  const auto slow =
      Events(testing::internal::GetCapturedStderr(), "slow_query");
  ASSERT_EQ(slow.size(), 1u);
  EXPECT_FALSE(slow[0].contains("catalog"));
}

TEST_F(UnaryCallTest, ErrorsOfOursAreLogged) {
  internal_errors_.Expect();
  testing::internal::CaptureStderr();
  EXPECT_EQ(Call("throw").error_code(), grpc::StatusCode::INTERNAL);
  const std::string log = testing::internal::GetCapturedStderr();
  const auto failed = Events(log, "call_failed");
  ASSERT_EQ(failed.size(), 1u);
  EXPECT_EQ(failed[0]["code"], "INTERNAL");
  EXPECT_EQ(failed[0]["message"], "unexpected exception: a surprise");
  EXPECT_FALSE(failed[0]["request_id"].get<std::string>().empty());
  EXPECT_TRUE(Events(log, "slow_query").empty());
}

TEST_F(UnaryCallTest, AFloodOfErrorsOfOursIsNotLogged) {
  internal_errors_.Expect();
  testing::internal::CaptureStderr();
  const SteadyTime begin = SteadyNow();
  for (int i = 0; i < 30; ++i) {
    EXPECT_EQ(Call("throw").error_code(), grpc::StatusCode::INTERNAL);
  }
  const double seconds = absl::ToDoubleSeconds(TimeSince(begin));
  const auto failed =
      Events(testing::internal::GetCapturedStderr(), "call_failed");
  ASSERT_GE(failed.size(), 1u);
  EXPECT_LE(static_cast<double>(failed.size()), 10 * (seconds + 1));
  EXPECT_EQ(failed[0]["not_logged_before"], 0);
}

TEST_F(UnaryCallTest, EveryCallIsLoggedAtDebugLevel) {
  SetLogLevel(LogLevel::kDebug);
  testing::internal::CaptureStderr();
  EXPECT_TRUE(Call("ok").ok());
  const auto calls = Events(testing::internal::GetCapturedStderr(), "call");
  SetLogLevel(LogLevel::kInfo);
  ASSERT_EQ(calls.size(), 1u);
  EXPECT_EQ(calls[0]["method"], "Attend");
}

TEST_F(UnaryCallTest, FailedAllocationIsResourceExhausted) {
  const grpc::Status status = Call("out of memory");
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(ReasonIn(DetailsOf(status)), "OUT_OF_MEMORY");
}

TEST_F(UnaryCallTest, AThreadThatCanNotBeStartedIsResourceExhausted) {
  const grpc::Status status = Call("out of threads");
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(ReasonIn(DetailsOf(status)), "OUT_OF_THREADS");
}

TEST_F(UnaryCallTest, OtherExceptionIsInternal) {
  internal_errors_.Expect();
  EXPECT_EQ(Call("throw").error_code(), grpc::StatusCode::INTERNAL);
  EXPECT_TRUE(Call("ok").ok());
}

TEST_F(UnaryCallTest, ReplyBeyondTheLimitIsResourceExhausted) {
  grpc::ClientContext context;
  const grpc::Status status = Call("large", context);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(ReasonIn(DetailsOf(status)), "OVER_LIMIT");
  // The status tells clients not to retry.
  const auto& metadata = context.GetServerTrailingMetadata();
  const auto push_back = metadata.find("grpc-retry-pushback-ms");
  ASSERT_NE(push_back, metadata.end());
  EXPECT_EQ(push_back->second, "-1");
}

TEST_F(UnaryCallTest, FilesThatMayNotGrowAreLogged) {
  testing::internal::CaptureStderr();
  grpc::ClientContext context;
  const grpc::Status status = Call("no larger files", context);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(ReasonIn(DetailsOf(status)), kFileTooLarge);
  EXPECT_EQ(
      Events(testing::internal::GetCapturedStderr(), "call_failed").size(), 1u);
}

// The operator has to fix the rights: the caller does not retry automatically,
// and the log says so.
TEST_F(UnaryCallTest, FilesWithoutRightsAreLoggedAndNotTriedAgain) {
  testing::internal::CaptureStderr();
  grpc::ClientContext context;
  const grpc::Status status = Call("no rights", context);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(ReasonIn(DetailsOf(status)), kFilesNotAccessible);
  const auto& metadata = context.GetServerTrailingMetadata();
  const auto push_back = metadata.find("grpc-retry-pushback-ms");
  ASSERT_NE(push_back, metadata.end());
  EXPECT_EQ(push_back->second, "-1");
  const auto failed =
      Events(testing::internal::GetCapturedStderr(), "call_failed");
  ASSERT_EQ(failed.size(), 1u);
  EXPECT_EQ(failed[0]["code"], "UNAVAILABLE");
}

TEST_F(UnaryCallTest, WhatWaitsForAWriteHoldsNoWorker) {
  v1::AttendResponse reply;
  grpc::Status waited;
  std::thread waiter([&] {
    grpc::ClientContext context;
    v1::AttendRequest request;
    request.set_catalog("not visible yet");
    waited = stub_->Attend(&context, request, &reply);
  });
  script_.AwaitStarted(2);
  // There is one worker and one waiting place, which the call that waits for a
  // write takes for a moment each time it checks.
  grpc::Status other;
  do {
    other = Call("other");
  } while (other.error_code() == grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_TRUE(other.ok()) << other.error_message();
  script_.release = true;
  waiter.join();
  EXPECT_TRUE(waited.ok()) << waited.error_message();
  EXPECT_EQ(reply.unknown_example_ids_size(), 1);
}

TEST_F(UnaryCallTest, AWaitForAWriteEndsAtTheDeadline) {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() +
                       std::chrono::milliseconds(100));
  EXPECT_EQ(Call("not visible yet", context).error_code(),
            grpc::StatusCode::DEADLINE_EXCEEDED);
  // The server gives up too, after a last attempt that may fill the queue: its
  // only worker is free, and stays free.
  const SteadyTime give_up = SteadyAfter(absl::Seconds(30));
  while (!Call("other").ok()) ASSERT_LT(SteadyNow(), give_up);
  const int count = script_.started_count();
  absl::SleepFor(absl::Milliseconds(50));
  EXPECT_EQ(script_.started_count(), count);
}

TEST_F(UnaryCallTest, ACancelledCallStopsWaitingForAWrite) {
  grpc::ClientContext context;
  std::thread waiter([&] {
    EXPECT_EQ(Call("not visible yet", context).error_code(),
              grpc::StatusCode::CANCELLED);
  });
  script_.AwaitStarted(2);
  context.TryCancel();
  waiter.join();
  // A call that would run for 5 s more does not delay the shutdown.
  const SteadyTime start = SteadyNow();
  server_->Shutdown();
  EXPECT_LT(TimeSince(start), absl::Seconds(3));
}

}  // namespace
}  // namespace attendant
