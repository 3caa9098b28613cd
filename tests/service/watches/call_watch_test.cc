#include "service/watches/call_watch.h"

#include <gmock/gmock.h>

#include <chrono>
#include <limits>
#include <string>
#include <vector>

namespace attendant {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Connections = std::vector<CallWatch::Connection>;

// The largest messages get 2 s, after 10.
constexpr CallWatch::Options kOptions = {
    .stall_time = absl::Seconds(10),
    .max_message_bytes = 2 * CallWatch::kMinBytesPerSecond,
    .max_stream_count = 100};

TEST(CallWatchTest, AnEighthOfMemoryIsForCallsAndNeverLessThanForFour) {
  const CallWatch watch(kOptions);
  EXPECT_EQ(watch.MostCalls(0), std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ(watch.MostCalls(1), 400);
  EXPECT_EQ(watch.MostCalls(std::int64_t{1} << 30), 6553);
}

CallWatch::Connection HavingOpen(const char* peer, const char* host,
                                 std::int64_t count) {
  return {.peer = peer, .host = host, .open_count = count};
}

TEST(CallWatchTest, TheHostWithMostLosesItsConnectionWithMost) {
  const Connections connections = {
      HavingOpen("a1", "a", 50), HavingOpen("b1", "b", 20),
      HavingOpen("b2", "b", 30), HavingOpen("b3", "b", 25),
      HavingOpen("c1", "c", 0)};
  EXPECT_THAT(CallWatch::Crowding(connections, 125), IsEmpty());
  EXPECT_THAT(CallWatch::Crowding(connections, 124), ElementsAre("b2"));
  // Then it is the other connection's turn.
  EXPECT_THAT(CallWatch::Crowding(connections, 94), ElementsAre("b2", "a1"));
  EXPECT_THAT(CallWatch::Crowding(connections, 0),
              ElementsAre("b2", "a1", "b3", "b1"));
}

class SilenceTest : public ::testing::Test {
 protected:
  // Checks, at `second`, a connection with the given numbers of open and known
  // calls after the given messages and bytes.
  std::vector<std::string> Look(int second, std::int64_t open,
                                std::int64_t known, std::int64_t messages,
                                std::int64_t bytes) {
    return watch_.Silent(Connections{{.peer = "a",
                                      .host = "a",
                                      .open_count = open,
                                      .known_count = known,
                                      .message_count = messages,
                                      .received_bytes = bytes}},
                         start_ + std::chrono::seconds(second));
  }

  const SteadyTime start_ = SteadyNow();
  CallWatch watch_{kOptions};
};

TEST_F(SilenceTest, WhoseCallsDoNotComeGoes) {
  EXPECT_THAT(Look(0, 5, 4, 3, 0), IsEmpty());
  EXPECT_THAT(Look(12, 9, 4, 3, 1000), IsEmpty());
  EXPECT_THAT(Look(13, 9, 4, 3, 1000), ElementsAre("a"));
}

TEST_F(SilenceTest, WhoSendsMessagesOrBytesIsWaitedFor) {
  for (int i = 0; i < 10; ++i) {
    EXPECT_THAT(Look(10 * i, 5, 4, i, 0), IsEmpty());
  }
  // Many large messages at once over a slow line; then nothing.
  constexpr std::int64_t kRate = CallWatch::kMinBytesPerSecond;
  for (int i = 0; i < 100; ++i) {
    EXPECT_THAT(Look(100 + i, 5, 4, 10, i * kRate), IsEmpty());
  }
  EXPECT_THAT(Look(209, 5, 4, 10, 99 * kRate + 1000), IsEmpty());
  EXPECT_THAT(Look(210, 5, 4, 10, 99 * kRate + 2000), ElementsAre("a"));
}

TEST_F(SilenceTest, WhoSentMuchAtOnceIsNotWaitedForLonger) {
  EXPECT_THAT(Look(0, 5, 4, 3, 0), IsEmpty());
  EXPECT_THAT(Look(1, 5, 4, 3, std::int64_t{1} << 30), IsEmpty());
  EXPECT_THAT(Look(12, 5, 4, 3, std::int64_t{1} << 30), IsEmpty());
  EXPECT_THAT(Look(13, 5, 4, 3, std::int64_t{1} << 30), ElementsAre("a"));
}

TEST_F(SilenceTest, CallsThatHaveComeMayTakeTheirTime) {
  EXPECT_THAT(Look(0, 5, 5, 5, 0), IsEmpty());
  EXPECT_THAT(Look(1000, 5, 5, 5, 0), IsEmpty());
  // Counts from the time when one more had begun.
  EXPECT_THAT(Look(1001, 6, 5, 5, 0), IsEmpty());
  EXPECT_THAT(Look(1013, 6, 5, 5, 0), IsEmpty());
  // A call was reset, and another has begun.
  EXPECT_THAT(Look(1014, 5, 5, 5, 0), IsEmpty());
  EXPECT_THAT(Look(1015, 6, 5, 5, 0), IsEmpty());
  EXPECT_THAT(Look(1027, 6, 5, 5, 0), IsEmpty());
  EXPECT_THAT(Look(1028, 6, 5, 5, 0), ElementsAre("a"));
}

}  // namespace
}  // namespace attendant
