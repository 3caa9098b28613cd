// Overloads the real server and stops it meanwhile.
//   --restarts=N  restarts of two nodes in turn (5)
#include <gmock/gmock.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <gtest/gtest.h>
#include <httplib.h>
#include <signal.h>

#include <array>
#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "attendant/v1/attention_service.grpc.pb.h"
#include "core/base/clock.h"
#include "core/base/mutex.h"
#include "tests/durability/flags.h"
#include "tests/integration/requests.h"
#include "tests/integration/server_process.h"
#include "tests/service/raw_call.h"
#include "tests/support/sanitized.h"
#include "tests/support/scratch_directory.h"
#include "tests/support/split_mix.h"
#include "tests/support/status_matchers.h"

namespace attendant {
namespace {

using ::testing::Gt;
using ::testing::IsSubsetOf;
using ::testing::Optional;

constexpr int kDim = 16;
constexpr int kItemCount = 2560;
constexpr char kHealthCheck[] = "/grpc.health.v1.Health/Check";
constexpr absl::string_view kServing("\x08\x01", 2);

std::vector<double> RandomKey(std::uint64_t seed) {
  const std::vector<float> floats = SplitMix(seed).Floats(kDim);
  return {floats.begin(), floats.end()};
}

// Creates the catalog "shop", identical each time.
void FillShop(const ServerProcess& server) {
  ASSERT_OK_AND_ASSIGN(const auto client, server.Connect());
  ASSERT_OK(CreateCatalog(*client, "shop",
                          {KeyFieldOf("k", kDim, v1::SCORE_KIND_DOT)}));
  constexpr int kBatch = 256;
  for (int begin = 0; begin < kItemCount; begin += kBatch) {
    std::vector<v1::Item> items;
    for (int i = begin; i < begin + kBatch; ++i) {
      items.push_back(ItemOf(absl::StrCat("item", i), "k",
                             RandomKey(static_cast<std::uint64_t>(i))));
    }
    ASSERT_OK(client->BatchUpsertItems(UpsertOf("shop", items)));
  }
}

// Returns a draw without replacement, which keeps every logit and cannot share
// a pass with others.
v1::AttendRequest HeavyRequest(std::uint64_t seed) {
  v1::AttendRequest request;
  request.set_catalog("shop");
  *request.mutable_query()->mutable_vector() = VectorOf(RandomKey(seed));
  request.set_select_kind(v1::SELECT_KIND_SAMPLE);
  request.set_seed(static_cast<std::int64_t>(seed));
  return request;
}

// Returns a request for attention of many tokens over each other, which takes
// about a second.
v1::ContextualizeRequest LongRequest() {
  constexpr int kTokenCount = 4096;
  constexpr std::size_t kTokenDim = 512;
  v1::ContextualizeRequest request;
  for (int i = 0; i < kTokenCount; ++i) {
    const std::vector<float> token =
        SplitMix(static_cast<std::uint64_t>(i)).Floats(kTokenDim);
    request.mutable_sequence()
        ->mutable_vectors()
        ->add_vectors()
        ->mutable_floats()
        ->mutable_values()
        ->Add(token.begin(), token.end());
  }
  return request;
}

httplib::Result Get(const ServerProcess& server, const std::string& path) {
  return httplib::Client("http://" + server.http_address()).Get(path);
}

// Returns how many queries wait for a worker or to continue; nullopt if the
// server does not report it.
std::optional<int> QueueDepth(const ServerProcess& server) {
  const auto page = Get(server, "/metrics");
  if (!page) return std::nullopt;
  const std::vector<absl::string_view> parts = absl::StrSplit(
      page->body,
      absl::MaxSplits("\nattendant_queue_depth{pool=\"attend\"} ", 1));
  int depth = 0;
  if (parts.size() < 2 ||
      !absl::SimpleAtoi(parts[1].substr(0, parts[1].find('\n')), &depth)) {
    return std::nullopt;
  }
  return depth;
}

bool IsReady(const ServerProcess& server) {
  const auto page = Get(server, "/readyz");
  return page && page->status == 200;
}

// Callers that send the next request immediately, whatever the server tells
// them, and do not retry internally.
class Callers {
 public:
  Callers(const std::string& address, int count) {
    for (int c = 0; c < count; ++c) {
      threads_.emplace_back([this, address, c] { Ask(address, c); });
    }
  }
  ~Callers() { Stop(); }

  void Stop() {
    stopped_ = true;
    for (std::thread& thread : threads_) {
      if (thread.joinable()) thread.join();
    }
  }
  int answered_count() const { return answered_; }
  int refused_count() const { return refused_; }
  // Codes of the failures.
  std::set<grpc::StatusCode> codes() {
    MutexLock lock(&mutex_);
    return codes_;
  }

 private:
  void Ask(const std::string& address, int number) {
    // A separate connection, without the client's retries.
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    const auto stub = v1::AttentionService::NewStub(grpc::CreateCustomChannel(
        address, grpc::InsecureChannelCredentials(), arguments));
    for (int i = 0; !stopped_.load(); ++i) {
      grpc::ClientContext context;
      v1::AttendResponse response;
      const grpc::Status status = stub->Attend(
          &context, HeavyRequest(static_cast<std::uint64_t>(number * 1000 + i)),
          &response);
      if (status.ok()) {
        ++answered_;
        continue;
      }
      ++refused_;
      MutexLock lock(&mutex_);
      codes_.insert(status.error_code());
    }
  }

  std::atomic<bool> stopped_ = false;
  std::atomic<int> answered_ = 0;
  std::atomic<int> refused_ = 0;
  Mutex mutex_;
  std::set<grpc::StatusCode> codes_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::thread> threads_;
};

template <typename Condition>
void Await(const Condition& condition) {
  const SteadyTime give_up = SteadyAfter(absl::Seconds(60));
  while (!condition()) {
    ASSERT_LT(SteadyNow(), give_up);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

TEST(OverloadTest, OthersAreAnsweredWhileQueriesAreRefused) {
  const ScratchDirectory data;
  // A queue so small that a few callers overload it.
  ASSERT_OK_AND_ASSIGN(
      const auto server,
      ServerProcess::Start(data.path(),
                           {"--workers", "1", "--max-waiting", "4"}));
  FillShop(*server);
  const auto time_to_answer = [](const Callers& callers) {
    const std::int64_t enough = callers.answered_count() + Short(2000);
    const SteadyTime begin = SteadyNow();
    Await([&] { return callers.answered_count() >= enough; });
    return TimeSince(begin);
  };
  absl::Duration alone;
  {
    const Callers caller(server->address(), 1);
    alone = time_to_answer(caller);
  }
  Callers callers(server->address(), 12);
  Await([&] { return callers.refused_count() > 20; });
  const absl::Duration crowded = time_to_answer(callers);
  // Takes as long as alone, apart from the cost of refusals and other load on
  // the machine.
  EXPECT_LT(crowded, 10 * alone + absl::Seconds(5));
  const int answered_before = callers.answered_count();
  ASSERT_OK_AND_ASSIGN(const auto client, server->Connect());
  for (int i = 0; i < 5; ++i) {
    RawCall health(grpc::CreateChannel(server->address(),
                                       grpc::InsecureChannelCredentials()),
                   kHealthCheck);
    health.Write("");
    health.WritesDone();
    EXPECT_THAT(health.Read(), Optional(kServing));
    EXPECT_TRUE(health.Finish().ok());
    EXPECT_OK(client->ListCatalogs(v1::ListCatalogsRequest()));
    EXPECT_OK(client->BatchUpsertItems(
        UpsertOf("shop", {ItemOf("new", "k", RandomKey(7))})));
  }
  Await([&] { return callers.answered_count() > answered_before + 20; });
  callers.Stop();
  EXPECT_THAT(callers.codes(),
              IsSubsetOf({grpc::StatusCode::RESOURCE_EXHAUSTED}));
  // No after-effects remain.
  const SteadyTime end = SteadyNow();
  EXPECT_OK(client->Attend(HeavyRequest(1)));
  EXPECT_LT(TimeSince(end), absl::Seconds(kSanitized ? 10 : 2));
}

TEST(DrainTest, WhatWasTakenIsAnsweredAndTheRestIsSentElsewhere) {
  const ScratchDirectory data;
  // Allows time for both calls, however slow sanitizers are.
  ASSERT_OK_AND_ASSIGN(
      const auto server,
      ServerProcess::Start(data.path(),
                           {"--workers", "1", "--grace-seconds", "120"}));
  // The calls take longer than the shutdown and take turns, so they end
  // together.
  std::vector<std::thread> taken;
  constexpr int kTaken = 3;
  for (int i = 0; i < kTaken; ++i) {
    taken.emplace_back([&] {
      const auto client = Client::Connect(
          {.server = server->address(), .deadline = absl::Minutes(2)});
      ASSERT_OK(client);
      EXPECT_OK((*client)->Contextualize(LongRequest()));
    });
  }
  // One call is running, or is about to.
  Await([&] { return QueueDepth(*server) >= kTaken - 1; });
  server->Signal(SIGTERM);
  // Load balancers learn of the shutdown before calls are refused.
  Await([&] { return !IsReady(*server); });
  ASSERT_OK_AND_ASSIGN(const auto client, server->Connect());
  Await([&] {
    return absl::IsUnavailable(
        client->ListCatalogs(v1::ListCatalogsRequest()).status());
  });
  // Some of the accepted calls are still waiting.
  EXPECT_THAT(QueueDepth(*server), Optional(Gt(0)));
  Callers callers(server->address(), 8);
  EXPECT_EQ(server->Wait(absl::Minutes(2)), 0);
  callers.Stop();
  for (std::thread& thread : taken) thread.join();
  EXPECT_EQ(callers.answered_count(), 0);
  // UNAVAILABLE is the only code that makes a client try another server.
  EXPECT_THAT(callers.codes(), IsSubsetOf({grpc::StatusCode::UNAVAILABLE}));
}

TEST(DrainTest, ASecondSignalDoesNotWait) {
  const ScratchDirectory data;
  ASSERT_OK_AND_ASSIGN(
      const auto server,
      ServerProcess::Start(data.path(), {"--grace-seconds", "3600"}));
  FillShop(*server);
  // A stream that the client never closes.
  const auto channel = grpc::CreateChannel(server->address(),
                                           grpc::InsecureChannelCredentials());
  RawCall stream(channel, "/attendant.v1.ItemService/ImportItems");
  v1::ImportItemsRequest request;
  request.set_catalog("shop");
  ASSERT_TRUE(stream.Write(request.SerializeAsString()));
  ASSERT_TRUE(stream.Read().has_value());
  server->Signal(SIGTERM);
  Await(
      [&] { return server->log().find("\"stopping\"") != std::string::npos; });
  server->Signal(SIGTERM);
  EXPECT_EQ(server->Wait(absl::Minutes(1)), 128 + SIGTERM);
}

// Stops and restarts two nodes with the same items in turn, while callers that
// know both retry as the client does.
TEST(DrainTest, RollingRestartsAreNotNoticed) {
  std::array<ScratchDirectory, 2> data;
  std::array<std::unique_ptr<ServerProcess>, 2> nodes;
  for (std::size_t n = 0; n < nodes.size(); ++n) {
    ASSERT_OK_AND_ASSIGN(nodes[n], ServerProcess::Start(data[n].path()));
    FillShop(*nodes[n]);
  }
  const std::string both =
      absl::StrCat("ipv4:", nodes[0]->address(), ",", nodes[1]->address());
  std::atomic<bool> stopped = false;
  std::atomic<int> answered = 0;
  std::vector<std::thread> callers;
  for (int c = 0; c < 4; ++c) {
    callers.emplace_back([&, c] {
      const auto client = Client::Connect({.server = both});
      ASSERT_OK(client);
      for (int i = 0; !stopped.load(); ++i) {
        EXPECT_OK((*client)->Attend(
            HeavyRequest(static_cast<std::uint64_t>(c * 1000 + i))));
        ++answered;
      }
    });
  }
  const std::int64_t restarts = Flag("restarts", Short(5));
  for (std::int64_t r = 0; r < restarts && !HasFailure(); ++r) {
    const int before = answered;
    Await([&] { return answered > before + 20; });
    std::unique_ptr<ServerProcess>& node = nodes[r % nodes.size()];
    const std::string address = node->address();
    EXPECT_EQ(node->Stop(), 0);
    auto started = ServerProcess::Start(data[r % data.size()].path(),
                                        {"--listen", address});
    if (!started.ok()) {
      ADD_FAILURE() << started.status();
      break;
    }
    node = *std::move(started);
  }
  stopped = true;
  for (std::thread& caller : callers) caller.join();
}

}  // namespace
}  // namespace attendant
