#include "core/base/memory_budget.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "core/base/status.h"
#include "tests/support/status_matchers.h"

namespace attendant {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Optional;

MemoryBudget::Options LimitOf(std::int64_t bytes) {
  MemoryBudget::Options options;
  options.limit_bytes = bytes;
  return options;
}

TEST(MemoryBudgetTest, WithoutALimitAllFits) {
  MemoryBudget budget({});
  MemoryBudget::Account account = budget.OpenAccount();
  account.Set(std::int64_t{1} << 60);
  EXPECT_OK(budget.Check("a write", std::int64_t{1} << 60));
  EXPECT_EQ(budget.use().limit_bytes, 0);
  EXPECT_EQ(budget.use().counted_bytes, std::int64_t{1} << 60);
}

TEST(MemoryBudgetTest, RefusesWhatWouldPassTheLimitAndSaysWhatToDo) {
  MemoryBudget budget(LimitOf(1000));
  MemoryBudget::Account account = budget.OpenAccount();
  account.Set(900);
  EXPECT_OK(budget.Check("a write", 100));
  const absl::Status status = budget.Check("a write", 101);
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kResourceExhausted,
                               AllOf(HasSubstr("900 bytes of 1000"),
                                     HasSubstr("a write wants 101 more"),
                                     HasSubstr("--memory-limit"))));
  EXPECT_THAT(ReasonOf(status), Optional(std::string("MEMORY_LIMIT")));
}

TEST(MemoryBudgetTest, AccountsCountUntilTheyGo) {
  MemoryBudget budget(LimitOf(1000));
  {
    MemoryBudget::Account account = budget.OpenAccount();
    account.Set(600);
    MemoryBudget::Account moved = std::move(account);
    MemoryBudget::Account other = budget.OpenAccount();
    other.Set(300);
    EXPECT_EQ(budget.use().counted_bytes, 900);
    moved.Set(100);
    EXPECT_EQ(budget.use().counted_bytes, 400);
    other = budget.OpenAccount();
    EXPECT_EQ(budget.use().counted_bytes, 100);
  }
  EXPECT_EQ(budget.use().counted_bytes, 0);
}

TEST(MemoryBudgetTest, AnAccountOfNoBudgetCountsNowhere) {
  MemoryBudget budget(LimitOf(1000));
  MemoryBudget::Account account = budget.OpenAccount();
  account.Set(300);
  MemoryBudget::Account none;
  none.Set(100);
  EXPECT_EQ(budget.use().counted_bytes, 300);
  // The two accounts are swapped.
  none = std::move(account);
  none.Set(200);
  EXPECT_EQ(budget.use().counted_bytes, 200);
}

TEST(MemoryBudgetTest, WithoutABudgetAnythingCanBeReserved) {
  EXPECT_OK(MemoryBudget::ReserveIn(nullptr, "a merge", std::int64_t{1} << 60));
  MemoryBudget budget(LimitOf(1000));
  const auto room = MemoryBudget::ReserveIn(&budget, "a merge", 900);
  EXPECT_OK(room);
  EXPECT_EQ(budget.use().counted_bytes, 900);
  EXPECT_THAT(MemoryBudget::ReserveIn(&budget, "a merge", 101),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       HasSubstr("a merge wants 101 more")));
}

TEST(MemoryBudgetTest, WhatIsReservedIsUsed) {
  MemoryBudget budget(LimitOf(1000));
  {
    auto room = budget.Reserve("a rebuild", 800);
    ASSERT_OK(room);
    EXPECT_THAT(budget.Check("a write", 300),
                StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("")));
    EXPECT_THAT(budget.Reserve("another", 300).status(),
                StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("")));
  }
  EXPECT_OK(budget.Check("a write", 300));
}

TEST(MemoryBudgetTest, WhatIsSharedCounts) {
  std::int64_t shared = 400;
  MemoryBudget::Options options = LimitOf(1000);
  options.shared_bytes = [&] { return shared; };
  MemoryBudget budget(options);
  EXPECT_OK(budget.Check("a write", 600));
  shared = 401;
  EXPECT_THAT(budget.Check("a write", 600),
              StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("")));
}

TEST(MemoryBudgetTest, MemoryThatNobodyCountsIsUsedToo) {
  std::int64_t resident = 900;
  int released = 0;
  MemoryBudget budget({.limit_bytes = 1000,
                       .shared_bytes = nullptr,
                       .resident_bytes = [&] { return resident; },
                       .release = [&] { ++released; },
                       .sample_time = absl::InfiniteDuration()});
  EXPECT_OK(budget.Check("a write", 100));
  // Bytes accounted since the last look are added to what it found.
  MemoryBudget::Account account = budget.OpenAccount();
  account.Set(50);
  EXPECT_OK(budget.Check("a write", 50));
  EXPECT_EQ(released, 0);
  EXPECT_THAT(budget.Check("a write", 200),
              StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("")));
  EXPECT_EQ(released, 1);
  EXPECT_EQ(budget.use().used_bytes, 900);
  // Memory is not released on every refusal.
  EXPECT_FALSE(budget.Check("a write", 200).ok());
  EXPECT_EQ(released, 1);
  // Freed memory counts without a restart or a wait for the next look.
  resident = 100;
  EXPECT_OK(budget.Check("a write", 200));
}

TEST(MemoryBudgetTest, WhatNobodyCountsIsNotTakenForWhatIsReserved) {
  std::int64_t resident = 300;
  MemoryBudget budget({.limit_bytes = 1000,
                       .shared_bytes = nullptr,
                       .resident_bytes = [&] { return resident; },
                       .release = nullptr,
                       .sample_time = absl::ZeroDuration()});
  MemoryBudget::Account account = budget.OpenAccount();
  account.Set(100);
  ASSERT_EQ(budget.use().used_bytes, 300);
  {
    const auto room = budget.Reserve("a build", 400);
    ASSERT_OK(room);
    // 100 counted, 400 reserved and 200 uncounted, however much of the
    // reservation is in use.
    for (const std::int64_t built : {0, 250, 400}) {
      resident = 300 + built;
      EXPECT_EQ(budget.use().used_bytes, 700) << built;
      EXPECT_OK(budget.Check("a write", 300));
      EXPECT_FALSE(budget.Check("a write", 301).ok()) << built;
    }
    // Whatever counts and reservations can't explain is uncounted.
    resident = 800;
    EXPECT_EQ(budget.use().used_bytes, 800);
    // With less in use as well: 600, of which at least 100 and at most 500 are
    // counted.
    resident = 150;
    EXPECT_EQ(budget.use().used_bytes, 550);
  }
  EXPECT_EQ(budget.use().used_bytes, 150);
}

TEST(MemoryBudgetTest, MayBeUsedFromManyThreads) {
  MemoryBudget budget({.limit_bytes = 1 << 20,
                       .shared_bytes = nullptr,
                       .resident_bytes = [] { return 1000; },
                       .release = [] {},
                       .sample_time = absl::ZeroDuration()});
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 1000; ++i) {
        auto room = budget.Reserve("a thread", i);
        ASSERT_OK(room);
        room->Set(2 * i);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(budget.use().counted_bytes, 0);
  EXPECT_EQ(budget.use().used_bytes, 1000);
}

}  // namespace
}  // namespace attendant
