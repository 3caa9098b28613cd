// Calls every RPC at once, on catalogs, models and snapshots that come and go
// meanwhile. Whatever meets, each call is answered or refused for what it asks.
//
// every_rpc_stress_test --seconds=1800 --seed=1     the long form
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "core/base/clock.h"
#include "service/calls/methods.h"
#include "tests/durability/flags.h"
#include "tests/fuzz/rpc_answers.h"
#include "tests/fuzz/rpc_requests.h"
#include "tests/service/raw_call.h"
#include "tests/service/server_fixture.h"
#include "tests/support/split_mix.h"

namespace attendant {
namespace {

using google::protobuf::MethodDescriptor;

constexpr int kCallerCount = 6;

struct Request {
  const MethodDescriptor* method = nullptr;
  std::string bytes;
};

// The seeds of rpc_fuzz, each the method's name, a newline, and the body; in
// the order of their files' names.
std::vector<Request> Seeds() {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(RPC_SEEDS)) {
    paths.push_back(entry.path());
  }
  std::ranges::sort(paths);
  std::vector<Request> seeds;
  for (const std::filesystem::path& path : paths) {
    std::ifstream file(path, std::ios::binary);
    std::string method;
    std::getline(file, method);
    std::ostringstream body;
    body << file.rdbuf();
    const MethodDescriptor* found = FindRpc(method);
    EXPECT_NE(found, nullptr) << path;
    if (found != nullptr) seeds.push_back({found, body.str()});
  }
  return seeds;
}

class EveryRpcStressTest : public ServerFixture {
 protected:
  // Restores what others delete, and leaves few versions of models.
  void Restore() {
    for (const auto& model : catalogs_->models().List({}, 1000)) {
      catalogs_->DeleteModel(model->name).IgnoreError();  // one may be in use
    }
    for (const RpcRequest& request : kRpcWorld) {
      const MethodDescriptor* method = FindRpc(request.method);
      const RpcAnswer answer =
          CallRpc(channel_, *method, RpcBytes(request.method, request.text));
      CheckAnswer(*method, answer);
    }
  }

  // Sends a request and gives up before or while it is handled.
  void CallAndCancel(const Request& request, std::uint64_t wait_us) {
    RawCall call(channel_, RpcPath(*request.method));
    call.Write(request.bytes);
    call.WritesDone();
    // This sleep does not synchronise: the moment is random input.
    std::this_thread::sleep_for(std::chrono::microseconds(wait_us));
    call.Cancel();
  }

  void CallAny(const std::vector<Request>& requests, std::uint64_t seed) {
    SplitMix random(seed);
    while (SteadyNow() < end_) {
      const Request& request = requests[random.Next() % requests.size()];
      if (random.Next() % 8 == 0) {
        CallAndCancel(request, random.Next() % 2000);
        continue;
      }
      const RpcAnswer answer =
          CallRpc(channel_, *request.method, request.bytes);
      CheckAnswer(*request.method, answer);
      if (answer.status.ok()) ++answered_.at(request.method);
    }
  }

  // How many calls of each method were answered; the keys never change.
  std::map<const MethodDescriptor*, std::atomic<int>> answered_;

  const SteadyTime end_ = SteadyAfter(absl::Seconds(Flag("seconds", 5)));
};

TEST_F(EveryRpcStressTest, EachCallIsAnsweredOrRefused) {
  const std::vector<Request> requests = Seeds();
  for (const Method& method : AllMethods()) {
    const MethodDescriptor* found = FindRpc(method.name);
    answered_[found] = 0;
    EXPECT_TRUE(std::ranges::any_of(
        requests,
        [&](const Request& request) { return request.method == found; }))
        << method.name << " has no seed";
  }
  const std::int64_t seed = Flag("seed", 1);
  SCOPED_TRACE(absl::StrCat("seed ", seed));
  std::vector<std::thread> threads;
  for (int i = 0; i < kCallerCount; ++i) {
    threads.emplace_back([&, i] {
      CallAny(requests, static_cast<std::uint64_t>(seed * kCallerCount + i));
    });
  }
  while (SteadyNow() < end_) Restore();
  for (std::thread& thread : threads) thread.join();
  // Some can only be answered once, and one seed not at all.
  EXPECT_GE(std::ranges::count_if(
                answered_, [](const auto& entry) { return entry.second > 0; }),
            static_cast<std::ptrdiff_t>(AllMethods().size()) * 3 / 4);
}

}  // namespace
}  // namespace attendant
