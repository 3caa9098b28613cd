#include "service/connections/poller_reserve.h"

#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <functional>
#include <latch>
#include <memory>
#include <optional>
#include <utility>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "core/base/clock.h"

namespace attendant {
namespace {

// Calls that keep gRPC's callback threads busy.
class Work {
 public:
  // Each call does `work`.
  explicit Work(PollerReserve& reserve, std::function<void()> work = nullptr)
      : reserve_(reserve), work_(std::move(work)) {}

  // Makes `count` concurrent calls.
  void AllAtOnce(int count) {
    std::latch done(count);
    for (int i = 0; i < count; ++i) Call([&] { done.count_down(); });
    done.wait();
  }

  // Makes one call after another until `is_so` holds; returns false after 30 s.
  bool OneByOneUntil(const std::function<bool()>& is_so) {
    const SteadyTime end = SteadyAfter(absl::Seconds(30));
    while (!is_so()) {
      if (SteadyNow() >= end) return false;
      AllAtOnce(1);
      // Gives the thread that ran the callback time to fall asleep.
      absl::SleepFor(absl::Microseconds(200));
    }
    return true;
  }

 private:
  void Call(std::function<void()> done) {
    struct State {
      grpc::ClientContext context;
      grpc::ByteBuffer request{nullptr, 0};
      grpc::ByteBuffer reply;
    };
    auto* state = new State;
    stub_.UnaryCall(&state->context, "/", grpc::StubOptions(), &state->request,
                    &state->reply,
                    [this, state, done = std::move(done)](const grpc::Status&) {
                      // Owns the channel, which may be destroyed after `done`.
                      delete state;
                      reserve_.BeginWork();
                      if (work_) work_();
                      reserve_.EndWork();
                      done();
                    });
  }

  PollerReserve& reserve_;
  const std::function<void()> work_;
  // All calls on it fail at once.
  grpc::GenericStub stub_{grpc::CreateChannel("", nullptr)};
};

TEST(PollerReserveTest, ThreadsRestWhileCallsComeOneByOne) {
  PollerReserve reserve;
  Work work(reserve);
  EXPECT_TRUE(work.OneByOneUntil([&] { return reserve.resting_count() > 0; }));
}

// Longer than any test: resting threads must be woken.
constexpr absl::Duration kForEver = absl::Hours(1);

// Makes many concurrent calls until no thread rests; returns false after 30 s.
bool WakeAll(PollerReserve& reserve, Work& work) {
  const SteadyTime end = SteadyAfter(absl::Seconds(30));
  while (reserve.resting_count() > 0) {
    if (SteadyNow() >= end) return false;
    work.AllAtOnce(100);
  }
  return true;
}

TEST(PollerReserveTest, CallsThatWaitForOthersWakeThem) {
  PollerReserve reserve(kForEver);
  Work work(reserve);
  for (int i = 0; i < 5; ++i) {
    ASSERT_TRUE(
        work.OneByOneUntil([&] { return reserve.resting_count() > 0; }));
    ASSERT_TRUE(WakeAll(reserve, work));
  }
}

TEST(PollerReserveTest, ToSleepAtWorkIsNotToWaitForACall) {
  PollerReserve reserve(kForEver);
  Work work(reserve, [] { absl::SleepFor(absl::Microseconds(50)); });
  ASSERT_TRUE(work.OneByOneUntil([&] { return reserve.resting_count() > 0; }));
  EXPECT_TRUE(WakeAll(reserve, work));
}

TEST(PollerReserveTest, WithoutCallsNobodyRestsForLong) {
  PollerReserve reserve;
  Work work(reserve);
  ASSERT_TRUE(work.OneByOneUntil([&] { return reserve.resting_count() > 0; }));
  const SteadyTime end = SteadyAfter(absl::Seconds(30));
  while (reserve.resting_count() > 0 && SteadyNow() < end) {
    absl::SleepFor(absl::Milliseconds(10));
  }
  EXPECT_LT(SteadyNow(), end);
}

TEST(PollerReserveTest, ItsEndWakesThoseThatRest) {
  std::optional<PollerReserve> reserve(kForEver);
  std::optional<Work> work(std::in_place, *reserve);
  ASSERT_TRUE(
      work->OneByOneUntil([&] { return reserve->resting_count() > 0; }));
  work.reset();
  reserve.reset();
  // The threads remain for the next one.
  reserve.emplace();
  work.emplace(*reserve);
  work->AllAtOnce(100);
}

TEST(PollerReserveTest, IsOneForAllServersOfAProcess) {
  const auto reserve = PollerReserve::OfProcess();
  EXPECT_EQ(PollerReserve::OfProcess(), reserve);
}

}  // namespace
}  // namespace attendant
