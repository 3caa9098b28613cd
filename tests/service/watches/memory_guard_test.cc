#include "service/watches/memory_guard.h"

#include <gmock/gmock.h>

#include <chrono>
#include <optional>
#include <vector>

namespace attendant {
namespace {

using ::testing::Eq;
using ::testing::Optional;

constexpr std::int64_t kLimit = std::int64_t{1} << 30;
constexpr std::int64_t kGrowth = MemoryGuard::kGrowth;
const SteadyTime kNow = SteadyNow();

TEST(MemoryGuardTest, WhileThereIsRoomNobodyGoes) {
  MemoryGuard guard;
  for (std::int64_t i = 0; i < 10; ++i) {
    const std::vector<MemoryGuard::Received> received = {{4, i * kGrowth}};
    EXPECT_EQ(guard.Look(kLimit / 2 + i * kGrowth / 2, kLimit, received, kNow),
              std::nullopt);
    EXPECT_EQ(guard.Look(kLimit + i * kGrowth, 0, received, kNow),
              std::nullopt);
  }
}

TEST(MemoryGuardTest, WhoSentMostSinceThenGoes) {
  MemoryGuard guard;
  const auto look = [&](std::int64_t over,
                        std::vector<MemoryGuard::Received> received) {
    return guard.Look(kLimit + over, kLimit, received, kNow);
  };
  EXPECT_EQ(look(1, {{4, 50 * kGrowth}, {5, 0}}), std::nullopt);
  // Nothing is dropped while little has arrived since, or when memory is no
  // longer short.
  EXPECT_EQ(look(kGrowth / 2, {{4, 50 * kGrowth + 9}, {5, kGrowth / 2}}),
            std::nullopt);
  EXPECT_THAT(look(kGrowth + 1, {{4, 50 * kGrowth + 9}, {5, kGrowth}}),
              Optional(Eq(5)));
  // Growth is counted from zero, and the descriptor belongs to another
  // connection.
  EXPECT_EQ(look(kGrowth + 2, {{4, 50 * kGrowth + 9}, {5, 3}}), std::nullopt);
  EXPECT_THAT(look(2 * kGrowth + 1, {{4, 51 * kGrowth + 9}, {5, kGrowth / 2}}),
              Optional(Eq(4)));
}

// Together, each sending a tenth of the memory that they take.
TEST(MemoryGuardTest, OneOfSeveralWhoSendAsMuchGoes) {
  MemoryGuard guard;
  std::vector<MemoryGuard::Received> received;
  for (int i = 0; i < 5; ++i) received.push_back({i, 0});
  EXPECT_EQ(guard.Look(kLimit + 1, kLimit, received, kNow), std::nullopt);
  for (int i = 0; i < 5; ++i) received[i].bytes = kGrowth / 10;
  EXPECT_NE(guard.Look(kLimit + 1 + kGrowth, kLimit, received, kNow),
            std::nullopt);
}

TEST(MemoryGuardTest, WhatNobodySentCostsNobody) {
  MemoryGuard guard;
  for (std::int64_t i = 0; i < 10; ++i) {
    EXPECT_EQ(
        guard.Look(kLimit + 1 + i * kGrowth, kLimit, {{{4, i * 1000}}}, kNow),
        std::nullopt);
  }
}

// A merge takes memory while a client sends query after query.
TEST(MemoryGuardTest, WhatTookLongCostsNobody) {
  MemoryGuard guard;
  for (std::int64_t second = 0; second < 100; ++second) {
    const std::vector<MemoryGuard::Received> received = {
        {4, second * kGrowth / 10}};
    EXPECT_EQ(guard.Look(kLimit + 1 + second * kGrowth / 10, kLimit, received,
                         kNow + std::chrono::seconds(second)),
              std::nullopt);
  }
}

TEST(MemoryGuardTest, MemoryThatShrinksStartsAnew) {
  MemoryGuard guard;
  const auto look = [&](std::int64_t over, std::int64_t bytes) {
    const std::vector<MemoryGuard::Received> received = {{4, bytes}};
    return guard.Look(kLimit + over, kLimit, received, kNow);
  };
  EXPECT_EQ(look(3 * kGrowth, 0), std::nullopt);
  EXPECT_EQ(look(kGrowth, kGrowth), std::nullopt);
  EXPECT_EQ(look(2 * kGrowth - 1, 2 * kGrowth), std::nullopt);
  EXPECT_THAT(look(2 * kGrowth, 2 * kGrowth), Optional(Eq(4)));
  EXPECT_EQ(look(-1, 9 * kGrowth), std::nullopt);
  EXPECT_EQ(look(2 * kGrowth, 20 * kGrowth), std::nullopt);
}

}  // namespace
}  // namespace attendant
