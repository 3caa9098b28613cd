#include "service/watches/arrival_watch.h"

#include <gtest/gtest.h>

#include <chrono>

namespace attendant {
namespace {

// A connection may have 3 calls at once, and all connections together 12 in
// flight before any are counted.
class ArrivalWatchTest : public ::testing::Test {
 protected:
  // Returns how many of `count` calls may begin.
  int Begin(const std::string& connection, int count, int second = 0) {
    int begun = 0;
    for (int i = 0; i < count; ++i) {
      begun += watch_.Begin(connection, start_ + std::chrono::seconds(second));
    }
    return begun;
  }
  void Arrive(const std::string& connection, int count) {
    for (int i = 0; i < count; ++i) {
      watch_.Arrive();
      if (watch_.is_counting()) watch_.ArriveFrom(connection);
    }
  }

  const SteadyTime start_ = SteadyNow();
  ArrivalWatch watch_{/*max_stream_count=*/3};
};

TEST_F(ArrivalWatchTest, WhoeverSendsItsMessagesMayBeginMore) {
  for (int round = 0; round < 1000; ++round) {
    EXPECT_EQ(Begin("a", 12), 12);
    Arrive("a", 12);
  }
  EXPECT_FALSE(watch_.is_counting());
  EXPECT_EQ(watch_.refused_count(), 0);
}

TEST_F(ArrivalWatchTest, OneThatSendsNoneIsRefusedAndNoOther) {
  // Calls that began before counting starts are forgotten.
  EXPECT_EQ(Begin("a", 13), 13);
  EXPECT_EQ(Begin("a", 14), 14);
  EXPECT_EQ(Begin("a", 100), 5);
  EXPECT_EQ(watch_.refused_count(), 95);
  for (int round = 0; round < 100; ++round) {
    EXPECT_EQ(Begin("b", 3), 3);
    Arrive("b", 3);
  }
  EXPECT_EQ(Begin("a", 1), 0);
  Arrive("a", 2);
  EXPECT_EQ(Begin("a", 3), 2);
}

TEST_F(ArrivalWatchTest, CallsOfWhichNobodyIsToldAreForgotten) {
  EXPECT_EQ(Begin("a", 200), 32);
  EXPECT_EQ(Begin("a", 1, 59), 0);
  EXPECT_EQ(Begin("a", 5, 60), 5);
  EXPECT_FALSE(watch_.is_counting());
  // Late arrivals do not make the count negative.
  Arrive("a", 100);
  EXPECT_EQ(Begin("b", 13, 61), 13);
  EXPECT_FALSE(watch_.is_counting());
}

}  // namespace
}  // namespace attendant
