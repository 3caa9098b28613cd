#include "client/api/batches.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/api/grpc_status.h"
#include "core/base/status.h"
#include "tests/support/status_matchers.h"

namespace attendant {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

using Batches = std::vector<std::pair<std::int64_t, std::int64_t>>;

// Sends to a server that accepts at most `most` items and names `field` when it
// refuses more. Appends the accepted ranges to `taken`.
absl::Status Send(std::int64_t count, std::int64_t most,
                  absl::string_view field, Batches& taken) {
  return SendInBatches(count, [&](std::int64_t begin, std::int64_t end) {
    const absl::Status status = CheckCount(end - begin, 1, most, field);
    if (status.ok()) taken.emplace_back(begin, end);
    return status;
  });
}

TEST(BatchesTest, AreAsLargeAsTheServerTakes) {
  Batches taken;
  ASSERT_OK(Send(600, 256, "ids", taken));
  EXPECT_THAT(taken, ElementsAre(Pair(0, 256), Pair(256, 512), Pair(512, 600)));
  for (const absl::string_view field : {"ids", "items"}) {
    taken.clear();
    ASSERT_OK(Send(300, 100, field, taken));
    EXPECT_THAT(taken, ElementsAre(Pair(0, 64), Pair(64, 128), Pair(128, 192),
                                   Pair(192, 256), Pair(256, 300)));
  }
  taken.clear();
  ASSERT_OK(Send(3, 1, "ids", taken));
  EXPECT_THAT(taken, ElementsAre(Pair(0, 1), Pair(1, 2), Pair(2, 3)));
  taken.clear();
  ASSERT_OK(Send(0, 1, "ids", taken));
  EXPECT_THAT(taken, IsEmpty());
}

TEST(BatchesTest, AReplyThatWouldBeTooLargeHalvesThemToo) {
  std::int64_t greatest = 0;
  ASSERT_OK(SendInBatches(256, [&](std::int64_t begin, std::int64_t end) {
    if (end - begin > 10) {
      return StatusWithReason(absl::StatusCode::kResourceExhausted,
                              "the reply would take more", kOverLimit);
    }
    greatest = std::max(greatest, end - begin);
    return absl::OkStatus();
  }));
  EXPECT_EQ(greatest, 8);
}

TEST(BatchesTest, AMessageThatIsTooLargeHalvesThemAsMuchAsItHeld) {
  Batches taken;
  ASSERT_OK(SendInBatches(30, [&](std::int64_t begin, std::int64_t& end) {
    end = std::min(end, begin + 12);
    if (end - begin > 6) {
      return StatusWithReason(absl::StatusCode::kResourceExhausted,
                              "more than the server takes", kMessageTooLarge);
    }
    taken.emplace_back(begin, end);
    return absl::OkStatus();
  }));
  EXPECT_THAT(taken, ElementsAre(Pair(0, 6), Pair(6, 12), Pair(12, 18),
                                 Pair(18, 24), Pair(24, 30)));
}

TEST(BatchesTest, MayEndSooner) {
  Batches taken;
  ASSERT_OK(SendInBatches(5, [&](std::int64_t begin, std::int64_t& end) {
    end = std::min(end, begin + 2);
    taken.emplace_back(begin, end);
    return absl::OkStatus();
  }));
  EXPECT_THAT(taken, ElementsAre(Pair(0, 2), Pair(2, 4), Pair(4, 5)));
}

TEST(BatchesTest, OtherErrorsEndThem) {
  Batches taken;
  // A limit that no batch size meets, as of one id that is too long.
  EXPECT_EQ(FieldOf(Send(300, 0, "items", taken)), "items");
  EXPECT_EQ(FieldOf(Send(300, 100, "items[3].id", taken)), "items[3].id");
  EXPECT_THAT(taken, IsEmpty());
}

}  // namespace
}  // namespace attendant
