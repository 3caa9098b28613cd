#include "core/catalog/live/retried_work.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/status_matchers.h"

namespace attendant {
namespace {

using ::testing::AllOf;
using ::testing::Gt;
using ::testing::Le;
using ::testing::Optional;

// So long that a test ends within any fraction of it.
constexpr absl::Duration kFirst = absl::Hours(1);

const absl::Status& DiskFull() {
  static const auto* const status =
      new absl::Status(absl::ResourceExhaustedError("disk full"));
  return *status;
}

TEST(RetriedWorkTest, APauseDoublesWithEachFailureUpTo64Fold) {
  RetriedWork work;
  EXPECT_OK(work.status());
  EXPECT_FALSE(work.has_failed());
  EXPECT_EQ(work.PauseLeft(), std::nullopt);
  for (const int factor : {1, 2, 4, 8, 16, 32, 64, 64}) {
    work.Note(DiskFull(), kFirst);
    EXPECT_THAT(work.PauseLeft(), Optional(AllOf(Gt((factor - 0.5) * kFirst),
                                                 Le(factor * kFirst))));
  }
  EXPECT_EQ(work.status(), DiskFull());
  EXPECT_TRUE(work.has_failed());
}

TEST(RetriedWorkTest, ASuccessForgetsTheFailures) {
  RetriedWork work;
  work.Note(DiskFull(), kFirst);
  work.Note(DiskFull(), kFirst);
  work.Note(absl::OkStatus(), kFirst);
  EXPECT_OK(work.status());
  EXPECT_FALSE(work.has_failed());
  EXPECT_EQ(work.PauseLeft(), std::nullopt);
  work.Note(DiskFull(), kFirst);
  EXPECT_THAT(work.PauseLeft(), Optional(Le(kFirst)));
}

TEST(RetriedWorkTest, APauseThatIsOverIsNone) {
  RetriedWork work;
  work.Note(DiskFull(), absl::ZeroDuration());
  EXPECT_EQ(work.PauseLeft(), std::nullopt);
  EXPECT_TRUE(work.has_failed());
}

TEST(RetriedWorkTest, AnEndedPauseLeavesTheReason) {
  RetriedWork work;
  work.Note(DiskFull(), kFirst);
  work.EndPause();
  EXPECT_EQ(work.PauseLeft(), std::nullopt);
  EXPECT_FALSE(work.has_failed());
  EXPECT_EQ(work.status(), DiskFull());
}

TEST(RetriedWorkTest, ASetStatusLeavesThePause) {
  RetriedWork work;
  work.SetStatus(DiskFull());
  EXPECT_EQ(work.status(), DiskFull());
  EXPECT_EQ(work.PauseLeft(), std::nullopt);
  work.Note(DiskFull(), kFirst);
  work.SetStatus(absl::OkStatus());
  EXPECT_OK(work.status());
  EXPECT_NE(work.PauseLeft(), std::nullopt);
}

}  // namespace
}  // namespace attendant
