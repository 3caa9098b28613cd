#include "core/attention/heads/head_rows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <vector>

#include "tests/support/status_matchers.h"

namespace attendant {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class HeadRowsTest : public ::testing::Test {
 protected:
  HeadRowsTest() {
    input_.queries = {nullptr, 0, 2};
    input_.keys = input_.values = rows_.view();
    input_.names.values = "history";
  }

  // Two heads of one component each.
  void Project() {
    heads_.head_count = 2;
    heads_.query = heads_.key = {{2, 2, {1, 0, 0, 1}}, {0, 10}};
    heads_.value = heads_.key;
    input_.heads = &heads_;
  }

  Matrix rows_ = {4, 2, {3, 4, 0, 0, 5, 6, 7, 8}};
  MultiHeadProjections heads_;
  MultiHeadInput input_;
};

TEST_F(HeadRowsTest, RowsThatLieTogetherStayInPlace) {
  const std::int32_t positions[] = {1, 2};
  const MatrixView gathered = GatherRows(rows_.view(), positions, nullptr);
  EXPECT_EQ(gathered.data, rows_.data.data() + 2);
  EXPECT_EQ(gathered.row_count, 2);
  EXPECT_EQ(gathered.dim, 2);
}

TEST_F(HeadRowsTest, OtherRowsAreCopiedInTheirOrder) {
  const std::int32_t positions[] = {3, 0};
  std::vector<float> copy(4);
  const MatrixView gathered = GatherRows(rows_.view(), positions, copy.data());
  EXPECT_EQ(gathered.data, copy.data());
  EXPECT_THAT(copy, ElementsAre(7, 8, 3, 4));
}

TEST_F(HeadRowsTest, KeysOfAHeadAreItsPartOfTheProjection) {
  Project();
  const std::int32_t positions[] = {0, 1, 2, 3};
  std::vector<float> keys(4);
  ASSERT_OK_AND_ASSIGN(
      const double max_norm,
      LoadHeadKeys(input_, 1, rows_.view(), positions, keys.data()));
  EXPECT_THAT(keys, ElementsAre(14, 10, 16, 18));
  EXPECT_EQ(max_norm, 18);
  ASSERT_OK(LoadHeadValues(input_, 0, rows_.view(), positions, keys.data()));
  EXPECT_THAT(keys, ElementsAre(3, 0, 5, 7));
}

TEST_F(HeadRowsTest, CosineKeysHaveNormOneOrZero) {
  input_.score_kind = ScoreKind::kCosine;
  const std::int32_t positions[] = {0, 1};
  std::vector<float> keys(4);
  ASSERT_OK_AND_ASSIGN(const double max_norm,
                       LoadHeadKeys(input_, 0, {rows_.data.data(), 2, 2},
                                    positions, keys.data()));
  EXPECT_THAT(keys, ElementsAre(0.6f, 0.8f, 0, 0));
  EXPECT_EQ(max_norm, 1);
}

TEST_F(HeadRowsTest, WhatIsNotFiniteIsNamedByItsPosition) {
  const std::int32_t positions[] = {8, 9};
  const float row[] = {1, 2, 3, std::nanf("")};
  const MatrixView rows = {row, 2, 2};
  const auto refuses = [](const char* name) {
    return StatusIs(kInvalid, HasSubstr(name));
  };
  EXPECT_THAT(LoadHeadKeys(input_, 0, rows, positions, nullptr),
              refuses("keys[9][1]"));
  EXPECT_THAT(LoadHeadValues(input_, 0, rows, positions, nullptr),
              refuses("history[9][1]"));
  Project();
  std::vector<float> projected(2);
  EXPECT_THAT(LoadHeadKeys(input_, 1, rows, positions, projected.data()),
              refuses("keys[9][1]"));
  EXPECT_THAT(LoadHeadValues(input_, 1, rows, positions, projected.data()),
              refuses("history[9][1]"));
}

}  // namespace
}  // namespace attendant
