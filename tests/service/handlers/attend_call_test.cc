// Attend calls that are answered together with others.
#include "service/handlers/attend_call.h"

#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <malloc.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "attendant/v1/attention_service.grpc.pb.h"
#include "core/base/clock.h"
#include "core/base/mutex.h"
#include "service/calls/call.h"
#include "service/handlers/handlers.h"
#include "service/metrics/metric_page.h"
#include "tests/durability/flags.h"
#include "tests/service/internal_errors.h"
#include "tests/support/sanitized.h"
#include "tests/support/scratch_directory.h"
#include "tests/support/status_matchers.h"

namespace attendant {
namespace {

constexpr int kItemCount = 2000;
constexpr int kDim = 8;

class CallService final
    : public v1::AttentionService::WithRawCallbackMethod_Attend<
          v1::AttentionService::Service> {
 public:
  CallService(Backend& backend, WorkerPool& pool)
      : backend_(backend), pool_(pool) {}

  grpc::ServerUnaryReactor* Attend(grpc::CallbackServerContext* context,
                                   const grpc::ByteBuffer* request,
                                   grpc::ByteBuffer* response) override {
    return StartAttendCall(backend_, pool_, light_queries_, context, request,
                           response);
  }

  LightQueries& light_queries() { return light_queries_; }

 private:
  Backend& backend_;
  WorkerPool& pool_;
  LightQueries light_queries_;
};

// Occupies a worker until released.
class Blocker final : public Work {
 public:
  Blocker() : Work(interrupt_) {}
  void Run() override {
    MutexLock lock(&mutex_);
    running_ = true;
    changed_.NotifyAll();
    while (!released_) changed_.Wait(&mutex_);
  }
  void Refuse(const absl::Status& status) override { ADD_FAILURE() << status; }
  void AwaitRunning() {
    MutexLock lock(&mutex_);
    while (!running_) changed_.Wait(&mutex_);
  }
  void Release() {
    MutexLock lock(&mutex_);
    released_ = true;
    changed_.NotifyAll();
  }

 private:
  const Interrupt interrupt_;
  Mutex mutex_;
  CondVar changed_;
  bool running_ ABSL_GUARDED_BY(mutex_) = false;
  bool released_ ABSL_GUARDED_BY(mutex_) = false;
};

std::vector<float> RandomVector(std::mt19937_64& random) {
  std::normal_distribution<float> normal;
  std::vector<float> vector(kDim);
  for (float& component : vector) component = normal(random);
  return vector;
}

v1::AttendRequest RandomRequest(std::mt19937_64& random) {
  v1::AttendRequest request;
  request.set_catalog("shop");
  const std::vector<float> vector = RandomVector(random);
  request.mutable_query()
      ->mutable_vector()
      ->mutable_floats()
      ->mutable_values()
      ->Add(vector.begin(), vector.end());
  return request;
}

// Returns everything that does not depend on the other calls.
std::string BytesOf(v1::AttendResponse response) {
  response.mutable_stats()->clear_compute_duration();
  response.mutable_stats()->clear_shared_query_count();
  return response.SerializeAsString();
}

// A catalog "shop" with an index, behind one worker.
class AttendCallTest : public ::testing::Test {
 protected:
  struct Call {
    v1::AttendRequest request;
    v1::AttendResponse response;
    grpc::ClientContext context;
    grpc::Status status;
    std::thread thread;
  };

  void SetUp() override {
    ASSERT_OK_AND_ASSIGN(catalogs_, CatalogSet::Open(directory_.path(), {}));
    backend_ = std::make_unique<Backend>(catalogs_.get(), 1 << 20);
    v1::CreateCatalogRequest create;
    ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(
        absl::StrCat("name: 'shop' schema { key_fields { name: 'k' dimension: ",
                     kDim, " index_kind: INDEX_KIND_IVF } }"),
        &create));
    v1::CreateCatalogResponse created;
    ASSERT_OK(CreateCatalog(*backend_, create, Interrupt(), &created));
    std::mt19937_64 random(1);
    for (int begin = 0; begin < kItemCount; begin += 250) {
      Upsert(random, "item", begin, 250);
    }
    ASSERT_OK_AND_ASSIGN(const auto catalog, catalogs_->Get("shop"));
    catalog->AwaitIndexes();
    Serve(1);
  }

  void TearDown() override {
    blocker_.Release();
    server_->Shutdown();
    server_->Wait();
    pool_->Stop();
    MetricPage page;
    backend_->metrics.Write(page);
    internal_errors_.Check(page);
  }

  void Upsert(std::mt19937_64& random, const std::string& prefix, int begin,
              int count) {
    v1::BatchUpsertItemsRequest request;
    request.set_catalog("shop");
    for (int i = begin; i < begin + count; ++i) {
      v1::Item* item = request.add_items();
      item->set_id(absl::StrCat(prefix, i));
      const std::vector<float> key = RandomVector(random);
      (*item->mutable_keys())["k"].mutable_floats()->mutable_values()->Add(
          key.begin(), key.end());
    }
    v1::BatchUpsertItemsResponse response;
    ASSERT_OK(BatchUpsertItems(*backend_, request, Interrupt(), &response));
  }

  // Adds `count` items, so that queries take milliseconds.
  void Grow(int count) {
    ASSERT_OK_AND_ASSIGN(const auto catalog, catalogs_->Get("shop"));
    std::mt19937_64 random(2);
    constexpr int kAtOnce = 10'000;
    for (int begin = 0; begin < count; begin += kAtOnce) {
      std::vector<Item> items(kAtOnce);
      for (int i = 0; i < kAtOnce; ++i) {
        items[i].id = absl::StrCat("more", begin + i);
        items[i].keys = {RandomVector(random)};
      }
      ASSERT_OK(catalog->Upsert(items, ""));
    }
    catalog->AwaitIndexes();
  }

  void Serve(int worker_count) {
    if (server_ != nullptr) {
      server_->Shutdown();
      server_->Wait();
      pool_->Stop();
    }
    pool_ = std::make_unique<WorkerPool>(
        WorkerPool::Options{.thread_count = worker_count});
    service_ = std::make_unique<CallService>(*backend_, *pool_);
    int port = 0;
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(),
                             &port);
    builder.RegisterService(service_.get());
    server_ = builder.BuildAndStart();
    ASSERT_NE(server_, nullptr);
    stub_ = v1::AttentionService::NewStub(grpc::CreateChannel(
        absl::StrCat("127.0.0.1:", port), grpc::InsecureChannelCredentials()));
  }

  // A worker's turn may end after its reply was read.
  void AwaitIdleWorkers() const {
    while (pool_->counts().busy_worker_count > 0) {
      absl::SleepFor(absl::Milliseconds(1));
    }
  }

  // Sets a deadline that only the server knows, so that the call arrives on a
  // busy machine too.
  static void SetServerDeadline(const char* timeout,
                                grpc::ClientContext& context) {
    context.AddMetadata("grpc-timeout", timeout);
  }
  void Ask(Call& call) {
    call.status = stub_->Attend(&call.context, call.request, &call.response);
  }

  // Sends all calls while the only worker is blocked, and releases it once all
  // of them wait and `while_waiting` was called.
  void AskTogether(
      std::vector<Call>& calls,
      const std::function<void()>& while_waiting = [] {}) {
    pool_->Add(&blocker_);
    blocker_.AwaitRunning();
    for (Call& call : calls) {
      call.thread = std::thread([this, &call] { Ask(call); });
    }
    while (pool_->counts().waiting_count < calls.size()) {
      std::this_thread::yield();
    }
    while_waiting();
    blocker_.Release();
    for (Call& call : calls) call.thread.join();
  }

  // Asks each request alone, and then all in one pass.
  void ExpectSameTogether(const std::vector<v1::AttendRequest>& requests) {
    std::vector<Call> alone(requests.size());
    std::vector<Call> together(requests.size());
    for (std::size_t i = 0; i < requests.size(); ++i) {
      alone[i].request = together[i].request = requests[i];
      Ask(alone[i]);
      ASSERT_TRUE(alone[i].status.ok()) << alone[i].status.error_message();
      EXPECT_EQ(alone[i].response.stats().shared_query_count(), 1);
    }
    AskTogether(together);
    for (std::size_t i = 0; i < requests.size(); ++i) {
      ASSERT_TRUE(together[i].status.ok());
      EXPECT_EQ(BytesOf(together[i].response), BytesOf(alone[i].response)) << i;
      EXPECT_EQ(together[i].response.stats().shared_query_count(),
                static_cast<int>(requests.size()));
    }
  }

  InternalErrors internal_errors_;
  ScratchDirectory directory_;
  std::unique_ptr<CatalogSet> catalogs_;
  std::unique_ptr<Backend> backend_;
  Blocker blocker_;
  std::unique_ptr<WorkerPool> pool_;
  std::unique_ptr<CallService> service_;
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<v1::AttentionService::Stub> stub_;
};

std::int64_t AllocatedBytes() {
  const struct mallinfo2 info = mallinfo2();
  return static_cast<std::int64_t>(info.uordblks + info.hblkhd);
}

// Two bytes each on the wire, but an object each once parsed.
TEST_F(AttendCallTest, WhatManyElementsTakeIsNotHeldWhileTheyWait) {
  if (kSanitized) GTEST_SKIP() << "the allocator is another one";
  std::vector<Call> calls(100);
  for (Call& call : calls) {
    call.request.set_catalog("shop");
    for (int i = 0; i < 8000; ++i) {
      call.request.mutable_query()->mutable_examples()->add_examples();
    }
  }
  const std::int64_t before = AllocatedBytes();
  std::int64_t waiting = 0;
  AskTogether(calls, [&] { waiting = AllocatedBytes(); });
  for (const Call& call : calls) {
    EXPECT_EQ(call.status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  }
  // The bytes of each call, twice on the client side and once on the server's,
  // and gRPC's state of a call.
  EXPECT_LT((waiting - before) / 100, 128 << 10);
}

TEST_F(AttendCallTest, APlanTellsWhyOneScanWasNotEnough) {
  std::mt19937_64 random(7);
  Call call;
  call.request = RandomRequest(random);
  call.request.set_shortlist_count(kItemCount - 100);
  call.request.set_probe_count(1);
  call.request.set_explain(true);
  call.context.AddMetadata("x-request-id", "checkout 7");
  Ask(call);
  ASSERT_TRUE(call.status.ok()) << call.status.error_message();
  const v1::QueryPlan& plan = call.response.plan();
  EXPECT_EQ(plan.request_id(), "checkout 7");
  EXPECT_EQ(plan.candidate_count(), kItemCount - 100);
  ASSERT_GE(plan.scans_size(), 2);
  std::int64_t scored_count = 0;
  for (int i = 0; i < plan.scans_size(); ++i) {
    const v1::ScanStep& scan = plan.scans(i);
    scored_count += scan.scored_count();
    const bool last = i == plan.scans_size() - 1;
    EXPECT_EQ(scan.not_enough_reason(), last ? "" : "it found too few items");
  }
  EXPECT_EQ(plan.scans(0).index_kind(), v1::INDEX_KIND_IVF);
  EXPECT_FALSE(plan.scans(0).exhaustive());
  EXPECT_GT(plan.scans(0).visited_list_count(), 0);
  EXPECT_EQ(plan.scans(0).probe_count(), 1);
  EXPECT_GT(plan.scans(1).probe_count(), 0);
  EXPECT_EQ(call.response.stats().scored_count(), scored_count);
}

TEST_F(AttendCallTest, ASlowQueryIsLoggedWithItsPlan) {
  backend_->records.slow_query_time = absl::ZeroDuration();
  std::mt19937_64 random(7);
  Call call;
  call.request = RandomRequest(random);
  testing::internal::CaptureStderr();
  Ask(call);
  const std::string log = testing::internal::GetCapturedStderr();
  ASSERT_TRUE(call.status.ok()) << call.status.error_message();
  const auto slow = nlohmann::json::parse(log, nullptr, false);
  ASSERT_FALSE(slow.is_discarded()) << log;
  EXPECT_EQ(slow["event"], "slow_query");
  EXPECT_EQ(slow["catalog"], "shop");
  const auto& plan = slow["plan"];
  EXPECT_EQ(plan["scans"][0]["index_kind"], "INDEX_KIND_IVF");
  EXPECT_EQ(plan["candidate_count"], "100");
  EXPECT_TRUE(plan.contains("kernel_level"));
  for (const char* time :
       {"queue_duration", "read_duration", "plan_duration", "scan_duration",
        "answer_duration", "reply_duration"}) {
    EXPECT_TRUE(plan.contains(time)) << time;
  }
  EXPECT_FALSE(call.response.has_plan());
}

TEST_F(AttendCallTest, ASlowFailureIsLoggedWithHowFarItCame) {
  backend_->records.slow_query_time = absl::ZeroDuration();
  std::mt19937_64 random(7);
  Call call;
  call.request = RandomRequest(random);
  call.request.set_scan_mode(v1::SCAN_MODE_INDEX);
  call.request.set_mass_method(v1::MASS_METHOD_EXACT);
  testing::internal::CaptureStderr();
  Ask(call);
  const auto slow = nlohmann::json::parse(
      testing::internal::GetCapturedStderr(), nullptr, false);
  EXPECT_EQ(call.status.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  ASSERT_FALSE(slow.is_discarded());
  EXPECT_EQ(slow["code"], "FAILED_PRECONDITION");
  const auto& plan = slow["plan"];
  EXPECT_GT(plan["segment_count"].get<int>(), 0);
  EXPECT_NE(plan["read_duration"], "0s");
  EXPECT_NE(plan["plan_duration"], "0s");
  EXPECT_EQ(plan["scan_duration"], "0s");
}

TEST_F(AttendCallTest, AQueryThatExpiresInTheQueueIsLoggedWithThatTime) {
  backend_->records.slow_query_time = absl::ZeroDuration();
  std::mt19937_64 random(7);
  Call call;
  call.request = RandomRequest(random);
  SetServerDeadline("500m", call.context);
  pool_->Add(&blocker_);
  blocker_.AwaitRunning();
  testing::internal::CaptureStderr();
  Ask(call);
  // The server may learn of the cancellation later.
  backend_->calls.AwaitNone(SteadyAfter(absl::Minutes(1)));
  const auto slow = nlohmann::json::parse(
      testing::internal::GetCapturedStderr(), nullptr, false);
  EXPECT_EQ(call.status.error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
  ASSERT_FALSE(slow.is_discarded());
  EXPECT_EQ(slow["catalog"], "shop");
  EXPECT_NE(slow["plan"]["queue_duration"], "0s");
  EXPECT_FALSE(slow["plan"].contains("scans"));
}

TEST_F(AttendCallTest, RepliesTogetherAreTheBytesOfThoseAlone) {
  std::mt19937_64 random(2);
  std::vector<v1::AttendRequest> requests(12);
  for (std::size_t i = 0; i < requests.size(); ++i) {
    requests[i] = RandomRequest(random);
    if (i % 4 == 1) requests[i].set_temperature(0.3);
    if (i % 4 == 2) requests[i].set_result_count(3);
  }
  ExpectSameTogether(requests);
}

TEST_F(AttendCallTest, ExactRepliesTogetherAreTheBytesOfThoseAlone) {
  std::mt19937_64 random(8);
  std::vector<v1::AttendRequest> requests(12);
  for (std::size_t i = 0; i < requests.size(); ++i) {
    requests[i] = RandomRequest(random);
    requests[i].set_scan_mode(v1::SCAN_MODE_EXACT);
    if (i % 4 == 1) requests[i].mutable_deny_list()->add_ids("item1");
    if (i % 4 == 2) requests[i].set_score_kind(v1::SCORE_KIND_COSINE);
  }
  ExpectSameTogether(requests);
}

TEST(EffortTest, TellsApartWhatTakesLonger) {
  const auto effort = [](int result_count, int shortlist_count,
                         std::optional<double> recall, int probe_count) {
    v1::AttendRequest request;
    request.set_result_count(result_count);
    request.set_shortlist_count(shortlist_count);
    if (recall) request.set_recall(*recall);
    request.set_probe_count(probe_count);
    return EffortOf(request);
  };
  const std::uint64_t usual = effort(10, 0, {}, 0);
  EXPECT_EQ(effort(12, 8, {}, 0), usual);
  EXPECT_NE(effort(1000, 0, {}, 0), usual);
  EXPECT_NE(effort(10, 1000, {}, 0), usual);
  EXPECT_NE(effort(10, 0, {}, 64), usual);
  EXPECT_NE(effort(10, 0, .5, 0), usual);
  EXPECT_NE(effort(10, 0, .99, 0), effort(10, 0, .9, 0));
  const auto effort_of = [](const auto& set) {
    v1::AttendRequest request;
    request.set_result_count(10);
    set(request);
    return EffortOf(request);
  };
  using Request = v1::AttendRequest;
  EXPECT_EQ(effort_of([](Request&) {}), usual);
  EXPECT_NE(effort_of([](Request& r) { r.set_key_field("large"); }), usual);
  EXPECT_NE(effort_of([](Request& r) { r.set_temperature(.01); }), usual);
  EXPECT_NE(effort_of([](Request& r) { r.set_temperature(1); }), usual);
  EXPECT_NE(effort_of([](Request& r) { r.set_omit_pooled_value(true); }),
            usual);
  EXPECT_NE(
      effort_of([](Request& r) { r.mutable_query()->set_text("a few words"); }),
      usual);
  EXPECT_NE(effort_of([](Request& r) { r.set_mass_precision(.2); }),
            effort_of([](Request& r) { r.set_mass_precision(.02); }));
  EXPECT_NE(effort_of([](Request& r) { r.set_min_mass(.99); }),
            effort_of([](Request& r) { r.set_min_mass(.999999); }));
  EXPECT_EQ(effort_of([](Request& r) { r.set_min_mass(.991); }),
            effort_of([](Request& r) { r.set_min_mass(.99); }));
  // Arguments that are refused later must not be counted wrongly.
  EXPECT_EQ(effort(10, 0, std::numeric_limits<double>::quiet_NaN(), 0), usual);
  EXPECT_EQ(effort(10, -5, 1e300, -1), usual);
}

TEST_F(AttendCallTest, ALightCallGetsTheSameAnswerAndWaitsWhereOthersRun) {
  std::mt19937_64 random(9);
  Call unknown;
  unknown.request = RandomRequest(random);
  Ask(unknown);
  ASSERT_TRUE(unknown.status.ok());
  for (int i = 0; i < 100; ++i) {
    service_->light_queries().Took(
        LightQueries::PlaceOf("near/shop", EffortOf(unknown.request)),
        absl::Microseconds(1));
  }
  AwaitIdleWorkers();
  Call light;
  light.request = unknown.request;
  Ask(light);
  ASSERT_TRUE(light.status.ok());
  EXPECT_EQ(BytesOf(light.response), BytesOf(unknown.response));
  EXPECT_EQ(pool_->counts().offered_count, 2);
  EXPECT_EQ(pool_->counts().elsewhere_turn_count, 1);

  std::vector<Call> waiting(1);
  waiting[0].request = unknown.request;
  AskTogether(waiting);
  ASSERT_TRUE(waiting[0].status.ok());
  EXPECT_EQ(BytesOf(waiting[0].response), BytesOf(unknown.response));
  EXPECT_EQ(pool_->counts().elsewhere_turn_count, 1);
}

TEST_F(AttendCallTest, BesideOthersOnlyTheLightestRunWhereTheyArrive) {
  std::mt19937_64 random(9);
  Serve(2);
  pool_->Add(&blocker_);
  blocker_.AwaitRunning();
  const auto expect_elsewhere = [&](absl::Duration usual, int count) {
    Call call;
    call.request = RandomRequest(random);
    for (int i = 0; i < 1000; ++i) {
      service_->light_queries().Took(
          LightQueries::PlaceOf("near/shop", EffortOf(call.request)), usual);
    }
    Ask(call);
    EXPECT_TRUE(call.status.ok());
    EXPECT_EQ(pool_->counts().elsewhere_turn_count, count) << usual;
  };
  expect_elsewhere(LightQueries::kMost / 2, 1);
  expect_elsewhere((LightQueries::kMost + LightQueries::kMaxAlone) / 2, 1);
  blocker_.Release();
  AwaitIdleWorkers();
  expect_elsewhere((LightQueries::kMost + LightQueries::kMaxAlone) / 2, 2);
  expect_elsewhere(2 * LightQueries::kMaxAlone, 2);
}

TEST_F(AttendCallTest, OnlyWhatSharesPassesIsTakenAlong) {
  std::mt19937_64 random(3);
  std::vector<Call> calls(9);
  for (Call& call : calls) call.request = RandomRequest(random);
  calls[2].request.set_select_kind(v1::SELECT_KIND_SAMPLE);
  calls[3].request.mutable_deny_list()->add_ids("item1");
  // The other calls read all codes.
  calls[4].request.set_mass_precision(0.1);
  calls[5].request.set_mass_precision(0.1);
  // Or all floats, where masks that exclude little do not matter.
  for (const std::size_t i : {6, 7, 8}) {
    calls[i].request.set_scan_mode(v1::SCAN_MODE_EXACT);
  }
  calls[7].request.mutable_deny_list()->add_ids("item1");
  calls[8].request.mutable_allow_list()->add_ids("item1");
  AskTogether(calls);
  std::vector<int> shared;
  for (const Call& call : calls) {
    ASSERT_TRUE(call.status.ok()) << call.status.error_message();
    shared.push_back(call.response.stats().shared_query_count());
  }
  EXPECT_THAT(shared, ::testing::ElementsAre(2, 2, 1, 1, 2, 2, 2, 2, 1));
}

TEST_F(AttendCallTest, ErrorsAreEachCallsOwn) {
  std::mt19937_64 random(4);
  std::vector<Call> calls(5);
  for (Call& call : calls) call.request = RandomRequest(random);
  calls[1]
      .request.mutable_query()
      ->mutable_vector()
      ->mutable_floats()
      ->add_values(1);
  calls[2].request.set_temperature(-1);
  calls[3]
      .request.mutable_query()
      ->mutable_vector()
      ->mutable_floats()
      ->set_values(0, 3e38f);
  calls[3].request.set_temperature(1e-30);
  AskTogether(calls);
  for (const std::size_t i : {1, 2, 3}) {
    EXPECT_EQ(calls[i].status.error_code(), grpc::StatusCode::INVALID_ARGUMENT)
        << i;
  }
  EXPECT_THAT(calls[1].status.error_message(),
              ::testing::HasSubstr("query.vector"));
  EXPECT_THAT(calls[2].status.error_message(),
              ::testing::HasSubstr("temperature"));
  EXPECT_TRUE(calls[0].status.ok());
  EXPECT_TRUE(calls[4].status.ok());

  Call unknown;
  unknown.request = RandomRequest(random);
  unknown.request.set_catalog("nowhere");
  Ask(unknown);
  EXPECT_EQ(unknown.status.error_code(), grpc::StatusCode::NOT_FOUND);
}

TEST_F(AttendCallTest, CancelledAndLateMembersHoldNobodyUp) {
  std::mt19937_64 random(5);
  std::vector<Call> calls(6);
  for (Call& call : calls) call.request = RandomRequest(random);
  pool_->Add(&blocker_);
  blocker_.AwaitRunning();
  SetServerDeadline("500m", calls[2].context);
  for (Call& call : calls) {
    call.thread = std::thread([this, &call] { Ask(call); });
  }
  // One may expire before the last one waits.
  const auto has_all = [&](const WorkCounts& counts) {
    return counts.waiting_count +
               static_cast<std::size_t>(counts.ended_waiting_count) ==
           calls.size();
  };
  while (!has_all(pool_->counts())) std::this_thread::yield();
  calls[4].context.TryCancel();
  calls[2].thread.join();
  calls[4].thread.join();
  // Their places are free before any call has a turn.
  while (pool_->counts().waiting_count > calls.size() - 2) {
    std::this_thread::yield();
  }
  EXPECT_EQ(pool_->counts().ended_waiting_count, 2);
  blocker_.Release();
  for (const std::size_t i : {0, 1, 3, 5}) {
    calls[i].thread.join();
    EXPECT_TRUE(calls[i].status.ok()) << i;
  }
  EXPECT_EQ(calls[2].status.error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
  EXPECT_EQ(calls[4].status.error_code(), grpc::StatusCode::CANCELLED);
}

TEST_F(AttendCallTest, MalformedBytesAreRefusedWhereTheyArrive) {
  pool_->Add(&blocker_);
  blocker_.AwaitRunning();
  Call call;
  // Not UTF-8.
  call.request.set_catalog("\xff");
  Ask(call);
  EXPECT_EQ(call.status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
}

TEST_F(AttendCallTest, LargeRequestsAreReadWhenTheirTurnComes) {
  std::mt19937_64 random(6);
  std::vector<Call> calls(2);
  for (Call& call : calls) {
    call.request = RandomRequest(random);
    for (int i = 0; i < 3000; ++i) {
      call.request.mutable_deny_list()->add_ids(absl::StrCat("absent", i));
    }
  }
  AskTogether(calls);
  for (const Call& call : calls) {
    ASSERT_TRUE(call.status.ok()) << call.status.error_message();
    EXPECT_EQ(call.response.stats().shared_query_count(), 1);
  }
}

// Cancels calls at random moments: no call is left, and workers are free soon
// afterwards.
//   --cancels=N  (1000)
class CancelTest : public AttendCallTest {
 protected:
  // Cancels `cancels` calls and waits until none is left. Adds the times that
  // running calls took to stop to `overruns`, and returns the 99th percentile
  // of all that are in it in `p99`.
  void CancelAtAnyMoment(std::int64_t cancels,
                         std::vector<absl::Duration>& overruns,
                         absl::Duration& p99) {
    Serve(2);
    constexpr int kCallers = 8;
    const std::size_t before = overruns.size();
    // If several calls stopped since the last check, each took at most the
    // maximum so far and at most their total.
    Mutex mutex;
    WorkCounts last_counts;
    const auto note_overruns = [&] {
      MutexLock lock(&mutex);
      const WorkCounts counts = pool_->counts();
      overruns.insert(overruns.end(),
                      static_cast<std::size_t>(counts.cut_short_count -
                                               last_counts.cut_short_count),
                      absl::Nanoseconds(std::min(
                          counts.longest_overrun_ns,
                          counts.overrun_ns - last_counts.overrun_ns)));
      last_counts = counts;
    };
    std::vector<std::thread> callers;
    for (int c = 0; c < kCallers; ++c) {
      callers.emplace_back([&, c] {
        std::mt19937_64 random(200 + static_cast<std::uint64_t>(c));
        for (std::int64_t i = c; i < cancels; i += kCallers) {
          Call call;
          call.request = RandomRequest(random);
          // Some keep all logits, which takes longest; some share a pass; some
          // use the index.
          if (i % 2 == 0) {
            call.request.set_select_kind(v1::SELECT_KIND_SAMPLE);
          } else if (i % 3 != 0) {
            call.request.set_scan_mode(v1::SCAN_MODE_EXACT);
          }
          // Most are cancelled about when they run, some long after; some end
          // at their deadline.
          const int most_us = i % 7 == 0 ? 10'000 : 1'500;
          const auto after = absl::Microseconds(
              std::uniform_int_distribution<int>(0, most_us)(random));
          if (i % 5 == 0) {
            call.context.set_deadline(ToGrpcTime(SteadyAfter(after)));
          }
          call.thread = std::thread([this, &call] { Ask(call); });
          absl::SleepFor(after);
          call.context.TryCancel();
          call.thread.join();
          note_overruns();
        }
      });
    }
    for (std::thread& caller : callers) caller.join();
    const SteadyTime give_up = SteadyAfter(absl::Seconds(30));
    WorkCounts counts;
    do {
      counts = pool_->counts();
      ASSERT_LT(SteadyNow(), give_up);
    } while (counts.busy_worker_count > 0 || counts.waiting_count > 0);
    EXPECT_EQ(counts.run_count + counts.ended_waiting_count +
                  counts.refused_full_count + counts.refused_late_count,
              counts.offered_count);
    note_overruns();
    // Under a sanitizer there are fewer calls, on a smaller catalog.
    if (!kSanitized) {
      ASSERT_GE(overruns.size() - before, 20u);
    }
    if (overruns.empty()) return;
    const auto at =
        overruns.end() - 1 - static_cast<std::ptrdiff_t>(overruns.size() / 100);
    std::nth_element(overruns.begin(), at, overruns.end());
    p99 = *at;
    std::printf(
        "%d cut short, p99 %s, longest %s\n", static_cast<int>(overruns.size()),
        absl::FormatDuration(p99).c_str(),
        absl::FormatDuration(absl::Nanoseconds(counts.longest_overrun_ns))
            .c_str());
  }
};

TEST_F(CancelTest, CancelsAtAnyMomentLeaveNothingBehind) {
  // Makes queries take milliseconds.
  if (!kSanitized) Grow(100'000);
  // A worker that must stop may wait for a processor that other programs use,
  // up to 60 ms while two builds run; so there are up to three attempts, of
  // which all overruns count.
  constexpr absl::Duration kInTime = absl::Milliseconds(20);
  std::vector<absl::Duration> overruns;
  absl::Duration p99;
  for (int i = 0; i < 3 && !HasFailure() && (i == 0 || p99 > kInTime); ++i) {
    CancelAtAnyMoment(Flag("cancels", Short(1000)), overruns, p99);
  }
  if (!kSanitized) {
    EXPECT_LE(p99, kInTime);
  }
  Call last;
  std::mt19937_64 random(9);
  last.request = RandomRequest(random);
  Ask(last);
  EXPECT_TRUE(last.status.ok()) << last.status.error_message();
}

// For the thread sanitizer: callers, some of whom disconnect, and writes that
// change the snapshot under them.
TEST_F(AttendCallTest, ManyCallersAtOnceWhileItemsChange) {
  Serve(2);
  constexpr int kCallers = 8;
  constexpr int kCalls = 40;
  std::atomic<int> answered = 0;
  std::atomic<bool> done = false;
  std::thread writer([&] {
    std::mt19937_64 random(7);
    for (int i = 0; !done.load(); ++i) Upsert(random, "late", i % 100, 1);
  });
  std::vector<std::thread> callers;
  for (int c = 0; c < kCallers; ++c) {
    callers.emplace_back([&, c] {
      std::mt19937_64 random(100 + static_cast<std::uint64_t>(c));
      for (int i = 0; i < kCalls; ++i) {
        Call call;
        call.request = RandomRequest(random);
        if (i % 7 == 3) call.request.set_scan_mode(v1::SCAN_MODE_EXACT);
        if (i % 11 == 5) call.request.set_temperature(0);
        std::thread canceller;
        if (i % 13 == 6) {
          canceller = std::thread([&call] { call.context.TryCancel(); });
        }
        Ask(call);
        if (canceller.joinable()) canceller.join();
        if (call.status.ok()) {
          EXPECT_EQ(call.response.items_size(), 10);
          ++answered;
        } else if (i % 13 != 6) {
          EXPECT_EQ(i % 11, 5) << call.status.error_message();
        }
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  done = true;
  writer.join();
  EXPECT_GE(answered, kCallers * kCalls * 3 / 4);
}

}  // namespace
}  // namespace attendant
