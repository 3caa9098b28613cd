#include "service/log/trace_parent.h"

#include <gtest/gtest.h>

#include <string>

namespace attendant {
namespace {

constexpr char kValid[] =
    "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

TEST(TraceParentTest, NamesTheTraceAndTheSpanThatCalled) {
  const auto parsed = ParseTraceParent(kValid);
  ASSERT_TRUE(parsed.has_value());
  EXPECT_EQ(parsed->trace_id, "4bf92f3577b34da6a3ce929d0e0e4736");
  EXPECT_EQ(parsed->parent_id, "00f067aa0ba902b7");
}

TEST(TraceParentTest, LaterVersionsMayBeLonger) {
  std::string later = kValid;
  later[1] = '1';
  EXPECT_TRUE(ParseTraceParent(later).has_value());
  EXPECT_TRUE(ParseTraceParent(later + "-more").has_value());
  EXPECT_FALSE(ParseTraceParent(later + "more").has_value());
  EXPECT_FALSE(ParseTraceParent(std::string(kValid) + "-more").has_value());
}

TEST(TraceParentTest, WhatIsInvalidIsNothing) {
  for (const char* invalid :
       {"", "00", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7",
        // Upper case; not hex; zero ids; no version; other separators.
        "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
        "00-4bf92f3577b34da6a3ce929d0e0e473g-00f067aa0ba902b7-01",
        "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
        "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
        "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        "00_4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        "00-4bf92f3577b34da6a3ce929d0e0e4736_00f067aa0ba902b7-01",
        "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7_01",
        "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-0x"}) {
    EXPECT_FALSE(ParseTraceParent(invalid).has_value()) << invalid;
  }
}

}  // namespace
}  // namespace attendant
