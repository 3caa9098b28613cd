// Far lists, compared with their keys' logits in double precision.
#include "core/shortlist/mass/far_lists.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <vector>

#include "core/attention/softmax/log_add.h"
#include "core/shortlist/ivf/ivf_index.h"
#include "core/shortlist/ivf/ivf_training.h"
#include "core/shortlist/ivf/list_index.h"
#include "tests/core/shortlist/scan_fixture.h"
#include "tests/support/status_matchers.h"

namespace attendant {
namespace {

constexpr std::int64_t kDim = 16;
constexpr std::int64_t kRows = 4000;
constexpr std::int64_t kLists = 50;
constexpr double kLimit = kMaxFarShare;

class FarListsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    table_ = ClusteredKeys(kRows, kDim, 50, 3);
    for (std::int64_t r = 0; r < kRows; ++r) {
      float* key = table_.floats.data() + r * kDim;
      const double norm = Norm({key, static_cast<std::size_t>(kDim)});
      for (std::int64_t d = 0; d < kDim; ++d) {
        key[d] /= static_cast<float>(norm);
      }
    }
    auto built = IvfIndex::Build(table_.keys, kDim, ScoreKind::kDot,
                                 {.list_count = kLists});
    ASSERT_OK(built);
    index_ = *std::move(built);
    query_ = {table_.keys[7].begin(), table_.keys[7].end()};
    ASSERT_TRUE(coded_.Encode(lists().codes, query_, factor_));
    lists().means->ScoreLists(query_, scores_);
    for (std::int64_t l = 0; l < lists().list_count(); ++l) {
      of_means_.push_back(
          static_cast<float>(factor_ * Dot(query_, lists().means->Mean(l))));
    }
    // The list with the best mean was visited.
    visited_ = {static_cast<std::int32_t>(std::ranges::max_element(of_means_) -
                                          of_means_.begin())};
    known_ = LogMass(visited_[0]);
  }

  static double Dot(std::span<const float> a, std::span<const float> b) {
    double sum = 0;
    for (std::size_t d = 0; d < a.size(); ++d) sum += double{a[d]} * b[d];
    return sum;
  }
  const InvertedLists& lists() const {
    return static_cast<const ListIndex&>(*index_).lists();
  }
  std::vector<double> LogitsOf(std::int32_t list) const {
    std::vector<double> logits;
    for (std::int64_t p = lists().offsets[list]; p < lists().offsets[list + 1];
         ++p) {
      logits.push_back(factor_ * Dot(query_, lists().key_view().Row(p)));
    }
    return logits;
  }
  double LogMass(std::int32_t list) const {
    double log_sum = kMinusInfinity;
    for (const double logit : LogitsOf(list)) log_sum = LogAdd(log_sum, logit);
    return log_sum;
  }

  FarLists Find(double least_of_best, const DeadKeys* dead = nullptr,
                double square_distance = 0) const {
    const Bitmap none(kRows);
    ScanQuery query = QueryFor(query_, kRows);
    query.excluded = &none;
    const EligibleRows eligible(query);
    const ListPart part = {&lists(), dead != nullptr ? &eligible : nullptr,
                           dead};
    FarLists far;
    FindFarLists(*index_->training()->mass->Load(), part,
                 {.query = query_,
                  .logit_factor = factor_,
                  .coded = &coded_,
                  .scores = scores_,
                  .lists = visited_,
                  .log_sum = known_,
                  .square_distance = square_distance},
                 {.of_means = of_means_,
                  .per_norm = factor_ * Norm(query_),
                  .rounding = 1e-4,
                  .least_of_best = least_of_best},
                 far);
    return far;
  }

  KeyTable table_;
  std::unique_ptr<IvfIndex> index_;
  std::vector<float> query_;
  double factor_ = 30;
  CodedQuery coded_;
  std::vector<float> scores_;
  std::vector<float> of_means_;
  std::vector<std::int32_t> visited_;
  double known_ = 0;
};

constexpr double kNoBound = 1e9;

TEST_F(FarListsTest, HoldNoneOfTheBest) {
  const FarLists all = Find(kNoBound);
  ASSERT_FALSE(all.empty());
  double greatest = kMinusInfinity;
  for (const std::int32_t list : all.lists) {
    greatest = std::max(greatest, std::ranges::max(LogitsOf(list)));
  }
  // Nearer and nearer to the greatest logit of a far list.
  for (const double above : {4.0, 2.0, 1.0, 0.5, 0.0, -0.5, -2.0}) {
    for (const std::int32_t list : Find(greatest + above).lists) {
      EXPECT_LT(std::ranges::max(LogitsOf(list)), greatest + above);
    }
  }
}

// However little is known of the best.
TEST_F(FarListsTest, NoneOfTheirKeysIsHeavy) {
  for (const std::int32_t list : Find(kNoBound).lists) {
    EXPECT_LE(std::ranges::max(LogitsOf(list)), known_ + std::log(kLimit));
  }
}

TEST_F(FarListsTest, HoldWhatIsGuessed) {
  const FarLists far = Find(kNoBound);
  ASSERT_FALSE(far.empty());
  EXPECT_TRUE(std::ranges::is_sorted(far.lists));
  EXPECT_FALSE(std::ranges::binary_search(far.lists, visited_[0]));
  EXPECT_LE(far.guess.log_sum, known_ + std::log(kLimit) + 1e-5);
  double truth = kMinusInfinity;
  std::int64_t count = 0;
  for (const std::int32_t list : far.lists) {
    truth = LogAdd(truth, LogMass(list));
    count += lists().offsets[list + 1] - lists().offsets[list];
  }
  EXPECT_EQ(far.guess.count, count);
  const double deviation = std::exp(far.guess.log_variance / 2);
  EXPECT_LE(std::abs(std::exp(truth) - std::exp(far.guess.log_sum)),
            1.96 * deviation);
  const SoftmaxPartition partition = far.guess.partition();
  EXPECT_LE(partition.sum_gap, 0);
  EXPECT_GT(partition.sum_square, 0);
}

TEST_F(FarListsTest, DeadKeysHoldNothing) {
  const FarLists all = Find(kNoBound);
  ASSERT_GE(all.lists.size(), 2u);
  const std::unique_ptr<DeadKeys> dead = index_->NoneDead();
  for (RowIndex row = 0; row < kRows; ++row) {
    if (index_->ListOf(row) != all.lists[0]) index_->Kill(row, *dead);
  }
  const FarLists far = Find(kNoBound, dead.get());
  ASSERT_EQ(far.lists, all.lists);
  EXPECT_EQ(far.guess.count, LogitsOf(all.lists[0]).size());
  EXPECT_LT(far.guess.log_sum, all.guess.log_sum - 0.1);
}

TEST_F(FarListsTest, AreNotKnownWherePredictionsAreNot) {
  ASSERT_FALSE(Find(kNoBound).empty());
  // Keys twice as far from their lists' means as those of the training.
  EXPECT_TRUE(
      Find(kNoBound, nullptr, 4 * index_->trained_square_distance()).empty());
  known_ = kMinusInfinity;
  EXPECT_TRUE(Find(kNoBound).empty());
}

TEST_F(FarListsTest, WhatIsNoNumberIsNotLeftOut) {
  const FarLists all = Find(kNoBound);
  ASSERT_FALSE(all.empty());
  of_means_[all.lists[0]] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_FALSE(std::ranges::binary_search(Find(kNoBound).lists, all.lists[0]));
}

}  // namespace
}  // namespace attendant
