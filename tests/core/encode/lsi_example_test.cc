// The worked LSI example of examples/lsi, to the digits it was published with.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "core/encode/lsi.h"
#include "core/encode/svd.h"
#include "tests/support/reference.h"
#include "tests/support/status_matchers.h"

namespace attendant {
namespace {

using Vector = std::vector<double>;

constexpr double kTolerance = 1e-9;
constexpr std::size_t kDim = 2;

double Dot(const Vector& a, const Vector& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

double Cosine(const Vector& a, const Vector& b) {
  return Dot(a, b) / std::sqrt(Dot(a, a) * Dot(b, b));
}

// The tolerance is relative, so that small weights count too.
void ExpectNear(const Vector& got, const Vector& want) {
  ASSERT_EQ(got.size(), want.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    EXPECT_NEAR(got[i], want[i], kTolerance * std::abs(want[i])) << i;
  }
}

// The parameter selects the columns of V whose sign is flipped.
class LsiExampleTest : public ::testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    std::ifstream file(LSI_EXAMPLE_PATH);
    ASSERT_TRUE(file) << LSI_EXAMPLE_PATH;
    example_ = nlohmann::json::parse(file);
    rows_ = example_["X"].get<std::vector<Vector>>();
    log_.item_ids = {"F1", "F2", "F3", "F4", "F5"};
    for (std::size_t row = 0; row < rows_.size(); ++row) {
      log_.customer_ids.push_back(absl::StrCat("P", row + 1));
      for (std::size_t column = 0; column < 5; ++column) {
        if (rows_[row][column] == 0) continue;
        log_.events.push_back({static_cast<std::int32_t>(row),
                               static_cast<std::int32_t>(column),
                               rows_[row][column]});
      }
    }
    LsiOptions options;
    options.dim = kDim;
    options.rating_kind = RatingKind::kExplicit;
    options.temperature = 1;
    ASSERT_OK_AND_ASSIGN(model_, FitLsi(log_, options));
    ASSERT_EQ(model_.dim, 2);
    for (std::size_t i = 0; i < model_.keys.size(); ++i) {
      if ((GetParam() >> (i % kDim)) & 1) model_.keys[i] *= -1;
    }
  }

  // Returns a person's ratings times V_2, each dimension divided by s^power.
  Vector FoldIn(const Vector& ratings, int power = 0) const {
    Vector folded(kDim);
    for (std::size_t film = 0; film < ratings.size(); ++film) {
      for (std::size_t d = 0; d < kDim; ++d) {
        folded[d] += ratings[film] * model_.keys[film * kDim + d] /
                     std::pow(model_.singular_values[d], power);
      }
    }
    return folded;
  }

  Vector Person(const char* name) const { return example_[name].get<Vector>(); }

  nlohmann::json example_;
  std::vector<Vector> rows_;
  EventLog log_;
  LsiModel model_;
};

TEST_P(LsiExampleTest, SingularValues) {
  ASSERT_OK_AND_ASSIGN(
      const TruncatedSvd svd,
      ComputeTruncatedSvd(EventMatrix(log_, RatingKind::kExplicit), 5));
  ASSERT_EQ(svd.dim, 3);  // its rank
  const Vector published = {12.4810, 9.5086, 1.3456};
  for (std::size_t j = 0; j < 3; ++j) {
    EXPECT_NEAR(svd.s[j], published[j], .00005);
    EXPECT_NEAR(svd.s[j], example_["s"][j].get<double>(), kTolerance);
  }
  // Columns of U and V, up to a common sign.
  for (std::size_t j = 0; j < 3; ++j) {
    const double sign =
        svd.v[j] * example_["Vt"][j][0].get<double>() > 0 ? 1 : -1;
    for (std::size_t i = 0; i < 7; ++i) {
      EXPECT_NEAR(svd.u[i * 3 + j], sign * example_["U"][i][j].get<double>(),
                  kTolerance);
    }
    for (std::size_t i = 0; i < 5; ++i) {
      EXPECT_NEAR(svd.v[i * 3 + j], sign * example_["Vt"][j][i].get<double>(),
                  kTolerance);
    }
  }
}

TEST_P(LsiExampleTest, KeysAreTheRightSingularVectors) {
  const auto& want = example_["sign_invariant"]["VkVkT"];
  for (std::size_t a = 0; a < 5; ++a) {
    for (std::size_t b = 0; b < 5; ++b) {
      const double product =
          model_.keys[a * kDim] * model_.keys[b * kDim] +
          model_.keys[a * kDim + 1] * model_.keys[b * kDim + 1];
      EXPECT_NEAR(product, want[a][b].get<double>(), kTolerance);
    }
  }
}

TEST_P(LsiExampleTest, FoldingInFindsWhatTheRatingsHide) {
  const Vector p8 = Person("P8");
  const Vector p9 = Person("P9");
  EXPECT_EQ(Cosine(p8, p9), 0);
  EXPECT_NEAR(Cosine(FoldIn(p8), FoldIn(p9)), 0.9925794247632609, kTolerance);
  EXPECT_NEAR(Cosine(FoldIn(p8, 1), FoldIn(p9, 1)), 0.9877037969111454,
              kTolerance);
  EXPECT_NEAR(Dot(FoldIn(p8), FoldIn(p9)),
              example_["sign_invariant"]["dot_hat"].get<double>(),
              kTolerance * 15);
}

TEST_P(LsiExampleTest, AttentionOverThePeople) {
  ReferenceMatrix keys{.row_count = 7, .dim = 2, .data = {}};
  ReferenceMatrix values{.row_count = 7, .dim = 5, .data = {}};
  for (const Vector& row : rows_) {
    const Vector key = FoldIn(row);
    keys.data.insert(keys.data.end(), key.begin(), key.end());
    values.data.insert(values.data.end(), row.begin(), row.end());
  }
  for (const char* name : {"P8", "P9"}) {
    const ReferenceAnswer answer = AttendReference(
        FoldIn(Person(name)), keys, values, ScoreKind::kScaledDot, 1);
    const auto& want = example_["attention"][name];
    ExpectNear(answer.logits, want["logits"].get<Vector>());
    ExpectNear(answer.weights, want["weights"].get<Vector>());
    ExpectNear(answer.pooled, want["out"].get<Vector>());
    EXPECT_NEAR(answer.log_partition, want["logsumexp"].get<double>(),
                kTolerance);
  }
}

TEST_P(LsiExampleTest, AttentionOverTheFilms) {
  const ReferenceMatrix keys{.row_count = 5, .dim = 2, .data = model_.keys};
  const auto weights = [&](const char* name) {
    return AttendReference(FoldIn(Person(name)), keys, keys, ScoreKind::kDot, 1)
        .weights;
  };
  const Vector p8 = {.302767098227, .299042489005, .302767098227, .047711657270,
                     .047711657270};
  const Vector p9 = {.313059026997, .338481127780, .313059026997, .017700409113,
                     .017700409113};
  for (std::size_t film = 0; film < 5; ++film) {
    EXPECT_NEAR(weights("P8")[film], p8[film], kTolerance);
    EXPECT_NEAR(weights("P9")[film], p9[film], kTolerance);
  }
}

INSTANTIATE_TEST_SUITE_P(AllSigns, LsiExampleTest, ::testing::Range(0, 4));

}  // namespace
}  // namespace attendant
