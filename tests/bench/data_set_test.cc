// Checks the vectors and exact answers that benchmark figures are measured
// against.
#include "bench/data/data_set.h"

#include <gmock/gmock.h>

#include <cmath>
#include <vector>

#include "bench/data/ground_truth.h"
#include "tests/support/reference.h"
#include "tests/support/scratch_directory.h"
#include "tests/support/status_matchers.h"

namespace attendant {
namespace {

using ::testing::HasSubstr;

std::vector<double> Doubles(std::span<const float> floats) {
  return {floats.begin(), floats.end()};
}

TEST(DataSetTest, SmallerMixturesAreTheFirstOfLarger) {
  const ScratchDirectory directory;
  const auto small = LoadDataSet("mixture-200", directory.path());
  const auto large = LoadDataSet("mixture-1k", directory.path());
  ASSERT_TRUE(small.ok());
  ASSERT_TRUE(large.ok());
  EXPECT_EQ(small->keys.row_count(), 200);
  EXPECT_EQ(large->keys.row_count(), 1000);
  EXPECT_EQ(small->queries.row_count(), 2000);
  for (const std::int64_t row : {0, 199}) {
    EXPECT_EQ(Doubles(small->keys.Row(row)), Doubles(large->keys.Row(row)));
  }
  EXPECT_EQ(Doubles(small->queries.Row(1999)),
            Doubles(large->queries.Row(1999)));
}

TEST(DataSetTest, NormsAreSpreadTenfold) {
  const ScratchDirectory directory;
  const auto data = LoadDataSet("norms", directory.path());
  ASSERT_TRUE(data.ok());
  double least = 1;
  double most = 0;
  for (std::int64_t row = 0; row < 10000; ++row) {
    least = std::min(least, Norm(data->keys.Row(row)));
    most = std::max(most, Norm(data->keys.Row(row)));
  }
  // Of 10,000 draws, log-uniform from 0.1 to 1, none is within 1 % of an end
  // with a probability of e^-43.
  EXPECT_GE(least, 0.1 - 1e-6);
  EXPECT_LT(least, 0.101);
  EXPECT_LE(most, 1 + 1e-6);
  EXPECT_GT(most, 0.99);
}

TEST(DataSetTest, UnknownNamesAreNotFound) {
  const ScratchDirectory directory;
  EXPECT_THAT(LoadDataSet("mixture-x", directory.path()).status(),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("mixture-x")));
}

TEST(GroundTruthTest, IsThatOfPlainLoops) {
  const ScratchDirectory directory;
  // More than a block of keys, and not a multiple of one.
  const auto data = LoadDataSet("mixture-3k", directory.path());
  ASSERT_TRUE(data.ok());
  const auto truth = LoadGroundTruth(*data, directory.path());
  ASSERT_TRUE(truth.ok());
  const ReferenceMatrix keys = {
      data->keys.row_count(), data->dim,
      Doubles({data->keys.data(), 3000 * static_cast<std::size_t>(data->dim)})};
  // A product's sum of 128 terms of size at most 1 has an error of at most 128
  // epsilon; divided by the temperature, that is the error of a logit and of a
  // log partition.
  for (const std::int64_t q : {0, 1, 999, 1000, 1999}) {
    for (std::size_t t = 0; t < kTemperatures.size(); ++t) {
      const double tolerance = 128 * 2.3e-16 / kTemperatures[t] + 1e-12;
      const ReferenceAnswer answer =
          AttendReference(Doubles(data->queries.Row(q)), keys, keys,
                          ScoreKind::kDot, kTemperatures[t]);
      EXPECT_NEAR(truth->log_partitions.Row(q)[t], answer.log_partition,
                  tolerance);
      std::int64_t better = 0;
      const auto best = truth->neighbours.Row(q);
      const double last = answer.similarities[best[kTruthCount - 1]];
      for (const double similarity : answer.similarities) {
        if (similarity > last + 1e-12) ++better;
      }
      EXPECT_EQ(better, kTruthCount - 1);
      EXPECT_NEAR(truth->similarities.Row(q)[0], answer.similarities[best[0]],
                  1e-12);
      EXPECT_GE(truth->similarities.Row(q)[0], truth->similarities.Row(q)[1]);
    }
  }
}

}  // namespace
}  // namespace attendant
