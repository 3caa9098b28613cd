// How long work takes.
#include "service/queue/service_time.h"

#include <gtest/gtest.h>

#include "tests/service/queue/fake_work.h"

namespace attendant {
namespace {

TEST(ServiceTimeTest, KnowsTheMeanOfAWorkAndTheTurnOfAQuickOne) {
  ServiceTime time;
  EXPECT_EQ(time.mean_ns(), 0);
  EXPECT_EQ(time.quick_ns(), 0);
  time.Add(8 * kMs, 4, false);
  EXPECT_EQ(time.mean_ns(), 2 * kMs);
  EXPECT_EQ(time.quick_ns(), 8 * kMs);
  // Every second work is slow.
  for (int i = 0; i < 200; ++i) {
    time.Add(100 * kMs, 1, false);
    time.Add(1 * kMs, 1, false);
  }
  EXPECT_GT(time.mean_ns(), 30 * kMs);
  EXPECT_LT(time.quick_ns(), 8 * kMs);
}

TEST(ServiceTimeTest, WhatWasCutShortWouldHaveTakenLonger) {
  ServiceTime time;
  for (int i = 0; i < 200; ++i) time.Add(20 * kMs, 1, true);
  EXPECT_GT(time.quick_ns(), 30 * kMs);
  for (int i = 0; i < 100; ++i) time.Doubt();
  EXPECT_LT(time.quick_ns(), 20 * kMs);
}

}  // namespace
}  // namespace attendant
