#include "core/attention/softmax/top_k.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <limits>
#include <random>
#include <string>
#include <vector>

namespace attendant {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::IsEmpty;

// A row's id is its number written backwards, so that the order of ids differs
// from the order of rows. Counts how often ids are resolved.
class ReversedIds : public IdResolver {
 public:
  explicit ReversedIds(int row_count) {
    for (int row = 0; row < row_count; ++row) {
      std::string id = std::to_string(row);
      std::ranges::reverse(id);
      ids_.push_back(id + "/" + std::to_string(row));
    }
  }
  absl::string_view IdOf(std::int32_t, RowIndex row) const override {
    ++call_count;
    return ids_[row];
  }
  mutable std::int64_t call_count = 0;

 private:
  std::vector<std::string> ids_;
};

Candidate At(float logit, RowIndex row) {
  return {.logit = logit, .similarity = 2 * logit, .segment = 0, .row = row};
}

std::vector<RowIndex> RowsOf(const std::vector<Candidate>& candidates) {
  std::vector<RowIndex> rows;
  for (const Candidate& candidate : candidates) rows.push_back(candidate.row);
  return rows;
}

// The expected top k, by a full sort.
std::vector<RowIndex> Expected(std::vector<Candidate> all, std::size_t k,
                               const IdResolver& ids) {
  std::ranges::sort(all, [&ids](const Candidate& a, const Candidate& b) {
    if (a.logit != b.logit) return a.logit > b.logit;
    return ids.IdOf(0, a.row) < ids.IdOf(0, b.row);
  });
  all.resize(std::min(k, all.size()));
  return RowsOf(all);
}

TEST(TopKTest, KeepsTheBestInOrder) {
  const ReversedIds ids(10);
  TopK top(2, &ids);
  for (const Candidate& c : {At(1, 0), At(5, 1), At(-3, 2), At(4, 3)}) {
    top.Offer(c);
  }
  EXPECT_THAT(RowsOf(top.Sorted()), ElementsAre(1, 3));
  EXPECT_EQ(top.Sorted()[0].similarity, 10);
  EXPECT_EQ(ids.call_count, 0) << "ids are for ties only";
}

TEST(TopKTest, ZeroKeepsNothing) {
  const ReversedIds ids(1);
  TopK top(0, &ids);
  top.Offer(At(1, 0));
  EXPECT_THAT(top.Sorted(), IsEmpty());
}

TEST(TopKTest, FewerThanKAreAllKept) {
  const ReversedIds ids(3);
  TopK top(5, &ids);
  top.Offer(At(1, 0));
  top.Offer(At(2, 1));
  EXPECT_THAT(RowsOf(top.Sorted()), ElementsAre(1, 0));
  EXPECT_EQ(top.threshold(), -std::numeric_limits<float>::infinity());
}

TEST(TopKTest, TiesGoToTheLesserId) {
  constexpr int kRows = 5000;
  const ReversedIds ids(kRows);
  std::mt19937 random(3);
  for (const std::int64_t k : {1, 7, 100, 1000}) {
    TopK top(k, &ids);
    std::vector<Candidate> all;
    for (RowIndex row = 0; row < kRows; ++row) {
      all.push_back(At(static_cast<float>(random() % 8), row));
      top.Offer(all.back());
    }
    EXPECT_THAT(
        RowsOf(top.Sorted()),
        ElementsAreArray(Expected(all, static_cast<std::size_t>(k), ids)));
  }
}

TEST(TopKTest, TheThresholdRisesToTheBestAndNotAbove) {
  constexpr int kRows = 30000;
  constexpr float kNothing = -std::numeric_limits<float>::infinity();
  const ReversedIds ids(kRows);
  std::mt19937 random(6);
  std::normal_distribution<float> normal;
  for (const std::int64_t k : {1, 4, 100, 1000}) {
    TopK top(k, &ids);
    std::vector<Candidate> all;
    float last = kNothing;
    for (RowIndex row = 0; row < kRows; ++row) {
      // Some logits are kNothing, some zeros of either sign.
      const std::uint32_t kind = random() % 8;
      const float logit = kind == 0   ? kNothing
                          : kind == 1 ? 0.0F
                          : kind == 2 ? -0.0F
                                      : normal(random);
      all.push_back(At(logit, row));
      top.Offer(all.back());
      EXPECT_GE(top.threshold(), last);
      last = top.threshold();
    }
    const std::vector<RowIndex> expected =
        Expected(all, static_cast<std::size_t>(k), ids);
    EXPECT_THAT(RowsOf(top.Sorted()), ElementsAreArray(expected));
    EXPECT_LE(last, all[expected.back()].logit);
    EXPECT_GT(last, kNothing);
  }
}

TEST(TopKTest, AllEqualLogitsTakeLinearTime) {
  constexpr int kRows = 200000;
  const ReversedIds ids(kRows);
  TopK top(100, &ids);
  for (RowIndex row = 0; row < kRows; ++row) top.Offer(At(1, row));
  EXPECT_EQ(top.threshold(), 1);
  // Cutting 2k + block candidates back to k costs a few comparisons per
  // candidate; a sort or scan for each candidate would cost hundreds.
  EXPECT_LT(ids.call_count, 30 * kRows);
}

TEST(TopKTest, TwoThatAreEqualAreInTheOrderOfIds) {
  const ReversedIds ids(12);
  TopK top(3, &ids);
  // Ids "3/3" and "01/10": the later row has the smaller id.
  top.Offer(At(2, 3));
  top.Offer(At(2, 10));
  top.Offer(At(1, 5));
  EXPECT_THAT(RowsOf(top.Sorted()), ElementsAre(10, 3, 5));
}

}  // namespace
}  // namespace attendant
