#include "core/shortlist/keys/key_codes.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "core/attention/softmax/score.h"
#include "core/shortlist/keys/coded_query.h"
#include "tests/core/shortlist/scan_fixture.h"
#include "tests/support/dot.h"
#include "tests/support/status_matchers.h"
#include "tests/support/string_stream.h"

namespace attendant {
namespace {

MatrixView ViewOf(const KeyTable& table) {
  return {table.floats.data(), table.row_count(), table.dim};
}

// Returns the logits of all keys by code.
std::vector<float> LogitsOf(const KeyCodes& codes, const CodedQuery& query,
                            CodeBits bits) {
  const std::int64_t blocks = (codes.key_count() + 15) / 16;
  std::vector<float> logits(static_cast<std::size_t>(16 * blocks));
  const CodeQuery view = query.view();
  codes.Logits({&view, 1}, bits, 0, blocks, 16 * blocks, logits.data());
  return logits;
}

struct Shape {
  std::int64_t dim;
  float norm_spread;
  float key_size = 1;
};

class KeyCodesOfShapeTest : public ::testing::TestWithParam<Shape> {
 protected:
  // Returns keys multiplied by key_size, followed by unscaled queries.
  static KeyTable KeysAndQueries(std::int64_t key_count,
                                 std::int64_t query_count,
                                 std::int64_t cluster_count) {
    const auto [dim, norm_spread, key_size] = GetParam();
    KeyTable table = ClusteredKeys(key_count + query_count, dim, cluster_count,
                                   4, norm_spread);
    for (std::int64_t i = 0; i < key_count * dim; ++i) {
      table.floats[i] *= key_size;
    }
    return table;
  }
};

TEST_P(KeyCodesOfShapeTest, NoLogitErrsByMoreThanItsBound) {
  const std::int64_t dim = GetParam().dim;
  const std::int64_t row_count = dim > 1000 ? 60 : 500;
  const KeyTable table = KeysAndQueries(row_count, 5, 9);
  const KeyCodes codes({table.floats.data(), row_count, dim}, {}, 11);
  ASSERT_TRUE(codes.usable());
  CodedQuery query;
  for (std::int64_t q = row_count; q < table.row_count(); ++q) {
    const auto vector = table.keys[q];
    constexpr double kFactor = 2.5;
    ASSERT_TRUE(query.Encode(codes, vector, kFactor, QueryBits::k8));
    for (const CodeBits bits : {CodeBits::k4, CodeBits::k8}) {
      const std::vector<float> logits = LogitsOf(codes, query, bits);
      for (std::int64_t p = 0; p < row_count; ++p) {
        const double scale = codes.scales()[p];
        EXPECT_NEAR(
            logits[p], kFactor * Dot(vector, table.keys[p]),
            query.LogitErrorPerScale(bits) * scale + query.logit_error());
      }
    }
    const double error_of_8 = query.logit_error();
    ASSERT_TRUE(query.Encode(codes, vector, kFactor));
    EXPECT_LE(query.logit_error(), (dim < 32 ? 1 : 0.05) * error_of_8);
    for (const CodeBits bits : {CodeBits::k4, CodeBits::k8}) {
      const std::vector<float> logits = LogitsOf(codes, query, bits);
      double square_sum = 0;
      double variance_sum = 0;
      for (std::int64_t p = 0; p < row_count; ++p) {
        const double error = logits[p] - kFactor * Dot(vector, table.keys[p]);
        const double scale = codes.scales()[p];
        EXPECT_LE(std::abs(error),
                  query.LogitErrorPerScale(bits) * scale + query.logit_error());
        square_sum += error * error;
        variance_sum += query.LogitVariancePerSquareScale(bits) * scale * scale;
      }
      // Errors of few components don't behave like random numbers.
      if (dim < 32) continue;
      EXPECT_GT(square_sum, 0.5 * variance_sum) << (bits == CodeBits::k4);
      EXPECT_LT(square_sum, 2 * variance_sum) << (bits == CodeBits::k4);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, KeyCodesOfShapeTest,
    ::testing::Values(Shape{1, 1}, Shape{3, 1}, Shape{32, 1}, Shape{100, 10},
                      Shape{128, 1}, Shape{128, 10}, Shape{4100, 1},
                      Shape{64, 10, 1e-15f}, Shape{64, 10, 1e-22f},
                      Shape{64, 10, 1e-26f}, Shape{64, 10, 1e18f}));

// A query of 16 bits read by 8. The stated deviation assumes a random rotation
// of the error: the mean square over 40 queries of differing keys is at most
// twice that of the longest key.
TEST_P(KeyCodesOfShapeTest, AQueryMayBeReadByItsHighBits) {
  const std::int64_t dim = GetParam().dim;
  constexpr std::int64_t kQueries = 40;
  const std::int64_t row_count = dim > 1000 ? 60 : 200;
  const KeyTable table = KeysAndQueries(row_count, kQueries, row_count);
  const KeyCodes codes({table.floats.data(), row_count, dim}, {}, 11);
  CodedQuery query;
  double square_sum = 0, variance_sum = 0;
  for (std::int64_t q = row_count; q < table.row_count(); ++q) {
    const auto vector = table.keys[q];
    ASSERT_TRUE(query.Encode(codes, vector, 2.5));
    const double deviation = query.LogitDeviation(QueryBits::k8);
    const double error_of_16 = query.logit_error();
    EXPECT_LE(query.LogitDeviation(), deviation);
    const std::vector<float> whole = LogitsOf(codes, query, CodeBits::k8);
    query.Read(QueryBits::k8);
    EXPECT_EQ(query.view().low, nullptr);
    EXPECT_EQ(query.LogitDeviation(), deviation);
    EXPECT_GE(query.logit_error(), error_of_16);
    const std::vector<float> high = LogitsOf(codes, query, CodeBits::k8);
    for (std::int64_t p = 0; p < row_count; ++p) {
      const auto i = static_cast<std::size_t>(p);
      const double off = double{high[i]} - whole[i];
      EXPECT_LE(std::abs(off), query.logit_error() + error_of_16);
      square_sum += off * off;
      variance_sum += deviation * deviation;
    }
    query.Read(QueryBits::k16);
    EXPECT_EQ(query.logit_error(), error_of_16);
    EXPECT_EQ(LogitsOf(codes, query, CodeBits::k8), whole);
  }
  EXPECT_LE(square_sum, 2 * variance_sum);
}

// A product of two norms bounds any single error. Four bits must be far better
// than that, and eight bits sixteen times better again.
TEST(KeyCodesTest, BitsHalveTheError) {
  const KeyTable table = ClusteredKeys(200, 128, 9, 4);
  const KeyCodes codes(ViewOf(table), {}, 11);
  const double per_norm =
      codes.max_scale() * codes.ErrorPerScale(CodeBits::k4) / codes.max_norm();
  EXPECT_LT(per_norm, 0.2);
  EXPECT_NEAR(
      codes.ErrorPerScale(CodeBits::k4) / codes.ErrorPerScale(CodeBits::k8), 16,
      2);
}

TEST(KeyCodesTest, WhatIsLeftOfTheMeanHasSmallerErrors) {
  // One list, far from 0.
  KeyTable table = ClusteredKeys(300, 64, 1, 4);
  for (float& component : table.floats) component += 20;
  std::vector<float> mean(64);
  for (std::int64_t p = 0; p < 300; ++p) {
    for (std::size_t d = 0; d < 64; ++d) {
      mean[d] += table.keys[p][d] / 300;
    }
  }
  const std::vector<std::int64_t> offsets = {0, 300};
  const KeyCodes plain(ViewOf(table), {}, 11);
  const KeyCodes centred(ViewOf(table), {}, {mean.data(), 1, 64}, offsets, 11,
                         1);
  EXPECT_LT(5 * centred.max_scale(), plain.max_scale());
  CodedQuery query;
  ASSERT_TRUE(query.Encode(centred, table.keys[7], 1));
  const std::vector<float> logits = LogitsOf(centred, query, CodeBits::k8);
  const double of_mean = Dot(table.keys[7], mean);
  for (std::size_t p = 0; p < 300; ++p) {
    EXPECT_NEAR(logits[p] + of_mean, Dot(table.keys[7], table.keys[p]),
                query.LogitErrorPerScale(CodeBits::k8) * centred.scales()[p] +
                    query.logit_error());
  }
}

TEST(KeyCodesTest, ZeroKeysAndQueriesScoreZero) {
  const KeyTable table = TableOf(4, {0, 0, 0, 0, 1, 2, 3, 4});
  const KeyCodes codes(ViewOf(table), {}, 1);
  ASSERT_TRUE(codes.usable());
  CodedQuery query;
  ASSERT_TRUE(query.Encode(codes, table.keys[1], 1));
  EXPECT_EQ(LogitsOf(codes, query, CodeBits::k8)[0], 0);
  EXPECT_EQ(LogitsOf(codes, query, CodeBits::k4)[0], 0);
  ASSERT_TRUE(query.Encode(codes, table.keys[0], 1));
  EXPECT_EQ(LogitsOf(codes, query, CodeBits::k8)[1], 0);
}

TEST(KeyCodesTest, KeysNearZeroKeepNoOtherFromBeingCoded) {
  constexpr std::int64_t kDim = 16;
  const KeyTable drawn = ClusteredKeys(60, kDim, 5, 3);
  std::vector<float> floats = drawn.floats;
  for (std::size_t i = 0; i < floats.size(); ++i) {
    const std::size_t row = i / kDim;
    floats[i] *= row % 3 == 1 ? 1e-29f : row % 3 == 2 ? 1e-38f : 1;
  }
  const KeyTable table = TableOf(kDim, std::move(floats));
  const KeyCodes codes(ViewOf(table), {}, 1);
  ASSERT_TRUE(codes.usable());
  CodedQuery query;
  ASSERT_TRUE(query.Encode(codes, table.keys[0], 1));
  for (const CodeBits bits : {CodeBits::k4, CodeBits::k8}) {
    const std::vector<float> logits = LogitsOf(codes, query, bits);
    for (std::size_t p = 0; p < table.keys.size(); ++p) {
      const double error =
          std::abs(logits[p] - Dot(table.keys[0], table.keys[p]));
      const double of_scale =
          query.LogitErrorPerScale(bits) * codes.scales()[p];
      EXPECT_LE(error, of_scale + query.logit_error());
      if (p % 3 == 0) continue;
      EXPECT_LT(of_scale, 1e-24);
    }
  }
}

TEST(KeyCodesTest, SaysWhereFloatsDoNotReach) {
  EXPECT_FALSE(KeyCodes(ViewOf(TableOf(2, {1, 2, 3e38f, 1})), {}, 1).usable());
  EXPECT_FALSE(KeyCodes(MatrixView{nullptr, 0, 2}, {}, 1).usable());
  const KeyTable table = TableOf(2, {1, 2, 3, 4});
  const KeyCodes codes(ViewOf(table), {}, 1);
  CodedQuery query;
  EXPECT_FALSE(query.Encode(codes, table.keys[0], 1e35));
  EXPECT_FALSE(query.Encode(codes, table.keys[0], 1e-35));
  EXPECT_FALSE(query.Encode(codes, TableOf(2, {2e38f, 2e38f}).keys[0], 1));
  EXPECT_TRUE(query.Encode(codes, table.keys[0], 1e10));
}

// Two lists: one of twenty different keys, and one of ten different keys and
// another that is there ten times.
TEST(KeyCodesTest, CountsKeysThatAreThereAgain) {
  const KeyTable table = ClusteredKeys(40, 8, 3, 5);
  std::vector<float> floats = table.floats;
  for (std::size_t i = 31 * 8; i < 40 * 8; ++i) {
    floats[i] = floats[30 * 8 + i % 8];
  }
  const std::vector<float> means(2 * 8, 0.5f);
  const std::vector<std::int64_t> offsets = {0, 20, 40};
  const KeyCodes codes({floats.data(), 40, 8}, {}, {means.data(), 2, 8},
                       offsets, 11, 1);
  ASSERT_TRUE(codes.has_repeats());
  EXPECT_EQ(codes.RepeatsOf(0), 1);
  EXPECT_EQ(codes.RepeatsOf(1), (10. * 10 + 10) / 20);
  StringSink sink;
  codes.Save(sink);
  StringSource source(sink.bytes);
  const KeyCodes loaded = KeyCodes::Load(source, 11);
  ASSERT_OK(source.status());
  EXPECT_EQ(loaded.RepeatsOf(1), codes.RepeatsOf(1));
  EXPECT_TRUE(loaded.TellsRepeatsOf(2));
  EXPECT_FALSE(loaded.TellsRepeatsOf(3));

  const KeyCodes once({table.floats.data(), 40, 8}, {}, {means.data(), 2, 8},
                      offsets, 11, 1);
  EXPECT_FALSE(once.has_repeats());
  EXPECT_EQ(once.RepeatsOf(1), 1);
}

TEST(KeyCodesTest, KnowsHowFarAListsKeysAre) {
  const KeyTable table = ClusteredKeys(40, 8, 3, 5);
  const std::vector<float> means(3 * 8, 0.5f);
  const std::vector<std::int64_t> offsets = {0, 25, 25, 40};
  const std::vector<float> factors(40, 2.0f);
  const KeyCodes codes(ViewOf(table), factors, {means.data(), 3, 8}, offsets,
                       11, 2);
  StringSink sink;
  codes.Save(sink);
  StringSource source(sink.bytes);
  const KeyCodes loaded = KeyCodes::Load(source, 11);
  ASSERT_OK(source.status());
  ASSERT_TRUE(codes.KnowsLists(3));
  ASSERT_TRUE(loaded.KnowsLists(3));
  EXPECT_FALSE(loaded.KnowsLists(2));
  for (int list = 0; list < 3; ++list) {
    double greatest = 0;
    for (std::int64_t p = offsets[list]; p < offsets[list + 1]; ++p) {
      double square = 0;
      for (const float component : table.keys[p]) {
        square += std::pow(2.0 * component - 0.5, 2);
      }
      greatest = std::max(greatest, std::sqrt(square));
    }
    EXPECT_GE(codes.MaxNormOf(list), greatest);
    EXPECT_LE(codes.MaxNormOf(list), 1.001 * greatest);
    EXPECT_EQ(loaded.MaxNormOf(list), codes.MaxNormOf(list));
  }
  const KeyCodes without_lists(ViewOf(table), {}, 11);
  EXPECT_FALSE(without_lists.KnowsLists(1));
}

}  // namespace
}  // namespace attendant
