// Calls every RPC at once, on catalogs, models and snapshots that come and go
// meanwhile. Whatever meets, each call is answered or refused for what it asks.
//
// every_rpc_stress_test --seconds=1800 --seed=1     the long form
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
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

// The seeds of rpc_fuzz, each the method's name, a newline, and the body.
std::vector<Request> Seeds() {
  std::vector<Request> seeds;
  for (const auto& entry : std::filesystem::directory_iterator(RPC_SEEDS)) {
    std::ifstream file(entry.path(), std::ios::binary);
    std::string method;
    std::getline(file, method);
    std::ostringstream body;
    body << file.rdbuf();
    const MethodDescriptor* found = FindRpc(method);
    EXPECT_NE(found, nullptr) << entry.path();
    if (found != nullptr) seeds.push_back({found, body.str()});
  }
  return seeds;
}

class EveryRpcStressTest : public ServerFixture {
 protected:
  // Restores what others delete.
  void Restore() {
    for (const RpcRequest& request : kRpcWorld) {
      const MethodDescriptor* method = FindRpc(request.method);
      const RpcAnswer answer =
          CallRpc(channel_, *method, RpcBytes(request.method, request.text));
      CheckAnswer(*method, answer);
    }
  }

  // Sends a request and does not wait for the end of it.
  void CallAndCancel(const Request& request) {
    RawCall call(channel_, RpcPath(*request.method));
    call.Write(request.bytes);
    call.Cancel();
  }

  void CallAny(const std::vector<Request>& requests, std::uint64_t seed) {
    SplitMix random(seed);
    while (SteadyNow() < end_) {
      const Request& request = requests[random.Next() % requests.size()];
      if (random.Next() % 8 == 0) {
        CallAndCancel(request);
        continue;
      }
      CheckAnswer(*request.method,
                  CallRpc(channel_, *request.method, request.bytes));
    }
  }

  const SteadyTime end_ = SteadyAfter(absl::Seconds(Flag("seconds", 5)));
};

TEST_F(EveryRpcStressTest, EachCallIsAnsweredOrRefused) {
  const std::vector<Request> requests = Seeds();
  for (const Method& method : AllMethods()) {
    EXPECT_TRUE(std::ranges::any_of(requests,
                                    [&](const Request& request) {
                                      return request.method->name() ==
                                             method.name;
                                    }))
        << method.name << " has no seed";
  }
  const std::int64_t seed = Flag("seed", 1);
  std::vector<std::thread> threads;
  for (int i = 0; i < kCallerCount; ++i) {
    threads.emplace_back([&, i] {
      CallAny(requests, static_cast<std::uint64_t>(seed * kCallerCount + i));
    });
  }
  while (SteadyNow() < end_) Restore();
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace attendant
