#include "core/shortlist/builds/for_each_part.h"

#include <gmock/gmock.h>

#include <atomic>
#include <stdexcept>
#include <vector>

#include "tests/support/no_more_threads.h"

namespace attendant {
namespace {

TEST(ForEachPartTest, EveryPlaceIsWorkedOnOnce) {
  for (const std::int64_t count : {0, 1, 2, 3, 100}) {
    for (const std::int64_t thread_count : {1, 2, 3}) {
      std::vector<std::atomic<int>> visits(static_cast<std::size_t>(count));
      ForEachPart(count, thread_count,
                  [&](std::int64_t begin, std::int64_t end) {
                    for (; begin < end; ++begin) {
                      ++visits[begin];
                    }
                  });
      for (const std::atomic<int>& visit : visits) EXPECT_EQ(visit, 1);
    }
  }
}

TEST(ForEachPartTest, WhatAnyPartThrowsReachesTheCaller) {
  for (const std::int64_t thrower : {0, 1, 2}) {
    std::atomic<int> done = 0;
    EXPECT_THROW(ForEachPart(3, 3,
                             [&](std::int64_t begin, std::int64_t) {
                               if (begin == thrower) {
                                 throw std::runtime_error("part");
                               }
                               ++done;
                             }),
                 std::runtime_error);
    EXPECT_EQ(done, 2) << "the others are waited for";
  }
}

TEST(ForEachPartTest, WhereThereAreNoMoreThreadsTheCallingOneDoesAll) {
  const NoMoreThreads none;
  std::vector<int> visits(10);
  ForEachPart(10, 3, [&](std::int64_t begin, std::int64_t end) {
    for (; begin < end; ++begin) ++visits[begin];
  });
  EXPECT_THAT(visits, ::testing::Each(1));
}

}  // namespace
}  // namespace attendant
