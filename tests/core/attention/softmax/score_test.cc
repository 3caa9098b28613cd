#include "core/attention/softmax/score.h"

#include <gmock/gmock.h>

#include <cmath>
#include <limits>
#include <vector>

#include "core/base/status.h"
#include "tests/support/status_matchers.h"

namespace attendant {
namespace {

using ::testing::ElementsAre;
using ::testing::FloatEq;
using ::testing::HasSubstr;

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

TEST(ScoreTest, NamesGoThereAndBack) {
  for (const ScoreKind kind :
       {ScoreKind::kDot, ScoreKind::kScaledDot, ScoreKind::kCosine}) {
    EXPECT_EQ(ScoreKindFromName(Name(kind)), kind);
  }
  for (const CombineKind kind :
       {CombineKind::kSum, CombineKind::kSumOverSqrtCount,
        CombineKind::kUnit}) {
    EXPECT_EQ(CombineKindFromName(Name(kind)), kind);
  }
  EXPECT_EQ(Name(ScoreKind::kScaledDot), "SCALED_DOT");
  EXPECT_EQ(Name(CombineKind::kSumOverSqrtCount), "SUM_OVER_SQRT_COUNT");
  EXPECT_EQ(ScoreKindFromName("dot"), std::nullopt);
  EXPECT_EQ(CombineKindFromName(""), std::nullopt);
}

TEST(ScoreTest, OnlyScaledDotDependsOnTheDimension) {
  EXPECT_EQ(LogitFactor(ScoreKind::kDot, 64, 0.5), 2);
  EXPECT_EQ(LogitFactor(ScoreKind::kCosine, 64, 0.5), 2);
  EXPECT_EQ(LogitFactor(ScoreKind::kScaledDot, 64, 0.5), 0.25);
}

TEST(ScoreTest, TemperatureIsFiniteAndPositive) {
  EXPECT_OK(ValidateTemperature(1e-300, "temperature"));
  for (const double bad : {0.0, -1.0, double{kInfinity}, double{kNaN}}) {
    const absl::Status status = ValidateTemperature(bad, "temperature");
    EXPECT_THAT(status, StatusIs(absl::StatusCode::kInvalidArgument,
                                 HasSubstr("temperature")));
    EXPECT_EQ(FieldOf(status), "temperature");
  }
}

TEST(ScoreTest, TheFirstNumberThatIsNotFiniteIsNamed) {
  EXPECT_OK(ValidateFinite(std::vector<float>{1, -3e38f, 0}, "query"));
  EXPECT_OK(ValidateFinite({}, "query"));
  EXPECT_THAT(ValidateFinite(std::vector<float>{1, kNaN, kInfinity}, "query"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("query[1]: got nan")));
  EXPECT_THAT(ValidateFinite(std::vector<float>{-kInfinity}, "query"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("query[0]: got -inf")));
}

TEST(ScoreTest, NormDoesNotOverflow) {
  EXPECT_EQ(Norm(std::vector<float>{3, 4}), 5);
  EXPECT_EQ(Norm({}), 0);
  // The norm is sqrt(2) x 3e38, which overflows a float.
  const float huge = 3e38f;
  EXPECT_NEAR(Norm(std::vector<float>{huge, huge}) / huge, std::sqrt(2.0),
              1e-15);
}

TEST(ScoreTest, CombineScalesTheSum) {
  std::vector<float> sum = {3, -4};
  Combine(CombineKind::kSum, 4, sum);
  EXPECT_THAT(sum, ElementsAre(3, -4));
  Combine(CombineKind::kSumOverSqrtCount, 4, sum);
  EXPECT_THAT(sum, ElementsAre(1.5, -2));
  Combine(CombineKind::kUnit, 4, sum);
  EXPECT_THAT(sum, ElementsAre(FloatEq(0.6f), FloatEq(-0.8f)));
}

TEST(ScoreTest, UnitLeavesAZeroSum) {
  std::vector<float> sum = {0, 0};
  Combine(CombineKind::kUnit, 2, sum);
  EXPECT_THAT(sum, ElementsAre(0, 0));
}

}  // namespace
}  // namespace attendant
