#include "core/encode/golden_section.h"

#include <gtest/gtest.h>

#include <cmath>

namespace attendant {
namespace {

TEST(GoldenSectionTest, FindsTheMinimumOfAParabola) {
  const auto f = [](double at) { return (at - 2.3) * (at - 2.3); };
  GoldenSection search(1, 4, 2, f(2));
  int steps = 0;
  while (search.Width() > .01) {
    search.Tell(f(search.Next()));
    ++steps;
  }
  EXPECT_NEAR(search.best_at(), 2.3, .01);
  EXPECT_EQ(search.best(), f(search.best_at()));
  // Each step but the first narrows by .618: 3 x .618^12 = .0093.
  EXPECT_EQ(steps, 13);
}

TEST(GoldenSectionTest, KeepsTheBestSeenWhereTheFunctionIsMonotone) {
  GoldenSection search(0, 1, 0, 0);
  while (search.Width() > .01) search.Tell(search.Next());
  EXPECT_EQ(search.best_at(), 0);
  EXPECT_EQ(search.best(), 0);
}

}  // namespace
}  // namespace attendant
