#include "client/commands/models/lsi_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <sstream>

#include "client/commands/fits/model_directory.h"
#include "client/files/npy.h"
#include "core/attention/heads/multi_head.h"
#include "core/attention/models/asymmetry.h"
#include "nlohmann/json.hpp"
#include "service/convert/model.h"
#include "tests/client/temporary_file.h"
#include "tests/support/reference.h"
#include "tests/support/status_matchers.h"

namespace attendant {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr std::int64_t kDim = 2;
constexpr std::int64_t kFilmCount = 5;

// The worked example of 7 people and 5 films.
nlohmann::json Example() {
  std::ifstream file(LSI_EXAMPLE_PATH);
  std::stringstream text;
  text << file.rdbuf();
  return nlohmann::json::parse(text.str());
}

// Writes what `attendant fit lsi --scale` writes for the example. `exponent` is
// that of s in the keys for this scale.
void WriteFit(const ScratchDirectory& directory, const std::string& scale,
              int exponent) {
  const nlohmann::json example = Example();
  std::vector<float> keys;
  for (int film = 0; film < kFilmCount; ++film) {
    for (int d = 0; d < kDim; ++d) {
      keys.push_back(static_cast<float>(
          example["Vt"][d][film].get<double>() *
          std::pow(example["s"][d].get<double>(), exponent)));
    }
  }
  Model model;
  model.key_field.set_name("films");
  model.key_field.set_dimension(kDim);
  model.key_field.set_score_kind(v1::SCORE_KIND_DOT);
  model.key_field.set_combine_kind(v1::COMBINE_KIND_SUM);
  model.key_field.set_temperature(1);
  model.fit["kind"] = "lsi";
  model.fit["scale"] = scale;
  WriteIn(directory, kKeysFile, NpyBytes(keys, kDim));
  WriteIn(directory, kSingularValuesFile,
          NpyBytes(std::vector<double>{example["s"][0].get<double>(),
                                       example["s"][1].get<double>()}));
  WriteIn(directory, kModelFile, ModelJson(model));
}

absl::StatusOr<AttentionModel> FromLsi(const ScratchDirectory& directory,
                                       bool scaled) {
  const auto wire = LsiAttentionModel(directory.path(), scaled);
  if (!wire.ok()) return wire.status();
  auto model = ModelFromProto(*wire);
  if (!model.ok()) return model.status();
  const absl::Status valid = ValidateModel(*model);
  if (!valid.ok()) return valid;
  return model;
}

std::vector<float> Row(const nlohmann::json& row) {
  return row.get<std::vector<float>>();
}

std::vector<double> Projected(const Projection& projection,
                              const std::vector<float>& row) {
  std::vector<float> output(static_cast<std::size_t>(projection.output_dim()));
  Project(projection, row, output);
  return {output.begin(), output.end()};
}

// A bound on how far a weight may be from the example's: products of a
// projection carry the rounding of V and their own and 4 of the sum, so that q
// and k are off by 6 u of |V| |x| <= |x| a component, and a logit by some
// (2 x 6 + 4) u |q| |k|, doubled for second order; a weight w then by twice
// that times w (1 - w).
double WeightTolerance(double logit, double weight) {
  return 2 * weight * (1 - weight) * 2 * 16 * 0x1p-24 * 2 * std::abs(logit) +
         0x1p-23;
}

// P1 to P7 are raw rows of ratings, as keys and as values. P8 shares no film
// but the first with any of them.
TEST(LsiModelTest, RawRowsAttendAsInTheWorkedExample) {
  const ScratchDirectory directory;
  WriteFit(directory, "none", 0);
  ASSERT_OK_AND_ASSIGN(const AttentionModel model, FromLsi(directory, false));
  const MultiHeadProjections& heads = *model.multi_head();
  const nlohmann::json example = Example();
  ReferenceMatrix keys = {7, kDim, {}};
  ReferenceMatrix values = {7, kFilmCount, {}};
  for (const nlohmann::json& row : example["X"]) {
    const auto key = Projected(heads.key, Row(row));
    keys.data.insert(keys.data.end(), key.begin(), key.end());
    for (const float rating : Row(row)) values.data.push_back(rating);
  }
  for (const char* person : {"P8", "P9"}) {
    const auto query = Projected(heads.query, Row(example[person]));
    const ReferenceAnswer answer =
        AttendReference(query, keys, values, ScoreKind::kScaledDot, 1);
    const nlohmann::json& want = example["attention"][person];
    for (std::size_t p = 0; p < 7; ++p) {
      const auto weight = want["weights"][p].get<double>();
      EXPECT_NEAR(answer.weights[p], weight,
                  WeightTolerance(want["logits"][3].get<double>(), weight))
          << person << " over P" << p + 1;
    }
    for (std::size_t film = 0; film < kFilmCount; ++film) {
      EXPECT_NEAR(answer.pooled[film], want["out"][film].get<double>(),
                  // Ratings are at most 5, and one weight's error is
                  // another's.
                  2 * 5 * WeightTolerance(want["logits"][3].get<double>(), .5));
    }
  }
  EXPECT_NEAR(example["attention"]["P8"]["weights"][3].get<double>(),
              .9702611228774861, 1e-15);
  EXPECT_NEAR(example["attention"]["P9"]["weights"][3].get<double>(),
              .9982980905399841, 1e-15);
}

// The same by multi-head attention, in one call.
TEST(LsiModelTest, AttendsOverRawRowsThroughTheModel) {
  const ScratchDirectory directory;
  WriteFit(directory, "none", 0);
  ASSERT_OK_AND_ASSIGN(const AttentionModel model, FromLsi(directory, false));
  const nlohmann::json example = Example();
  std::vector<float> rows;
  for (const nlohmann::json& row : example["X"]) {
    for (const float rating : Row(row)) rows.push_back(rating);
  }
  std::vector<float> queries = Row(example["P8"]);
  for (const float rating : Row(example["P9"])) queries.push_back(rating);
  MultiHeadInput input;
  input.heads = model.multi_head();
  input.queries = {queries.data(), 2, kFilmCount};
  input.keys = {rows.data(), 7, kFilmCount};
  input.values = input.keys;
  std::vector<float> outputs(2 * kFilmCount);
  std::vector<float> weights(2 * 7);
  ASSERT_OK(AttendMultiHead(input, outputs.data(), weights.data()));
  EXPECT_NEAR(weights[3], .9702611228774861,
              WeightTolerance(17.6, .9702611228774861));
  EXPECT_NEAR(weights[7 + 3], .9982980905399841,
              WeightTolerance(31.9, .9982980905399841));
}

TEST(LsiModelTest, TiedProjectionsAreSymmetric) {
  const ScratchDirectory directory;
  WriteFit(directory, "none", 0);
  ASSERT_OK_AND_ASSIGN(const AttentionModel model, FromLsi(directory, false));
  EXPECT_EQ(model.multi_head()->query, model.multi_head()->key);
  EXPECT_EQ(*Asymmetry(model), 0.0);
  EXPECT_EQ(model.value_dim(), 0);
}

// The scale of the fit's keys makes no difference.
TEST(LsiModelTest, EveryScaleOfTheFitGivesTheSameProjection) {
  const nlohmann::json example = Example();
  for (const auto& [scale, exponent] :
       {std::pair{"none", 0}, std::pair{"singular", 1},
        std::pair{"inverse", -1}}) {
    const ScratchDirectory directory;
    WriteFit(directory, scale, exponent);
    for (const bool scaled : {false, true}) {
      ASSERT_OK_AND_ASSIGN(const AttentionModel model,
                           FromLsi(directory, scaled));
      const Matrix& weight = model.multi_head()->query.weight;
      for (int d = 0; d < kDim; ++d) {
        const double s = scaled ? example["s"][d].get<double>() : 1;
        for (int film = 0; film < kFilmCount; ++film) {
          const double want = example["Vt"][d][film].get<double>() / s;
          // Roundings of the key, of the singular value and of the weight.
          EXPECT_NEAR(weight.view().Row(d)[film], want,
                      4 * 0x1p-24 * std::abs(want));
        }
      }
    }
  }
}

// P8's fold-in with diag(1/s), up to the sign of a column.
TEST(LsiModelTest, ScaledFoldsInAsPublished) {
  const ScratchDirectory directory;
  WriteFit(directory, "none", 0);
  ASSERT_OK_AND_ASSIGN(const AttentionModel model, FromLsi(directory, true));
  const nlohmann::json example = Example();
  for (const char* person : {"P8", "P9"}) {
    const auto folded =
        Projected(model.multi_head()->query, Row(example[person]));
    for (std::size_t d = 0; d < kDim; ++d) {
      const double want =
          example[absl::StrCat(person, "_hat_scaled")][d].get<double>();
      // |x| <= 7, |V| <= 1, s >= 9: seven roundings of less than 1.
      EXPECT_NEAR(folded[d], want, 7 * 0x1p-24) << person;
    }
  }
}

TEST(LsiModelTest, NamesWhatIsWrong) {
  const ScratchDirectory directory;
  EXPECT_THAT(FromLsi(directory, false),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr(kModelFile)));
  WriteFit(directory, "cubic", 0);
  EXPECT_THAT(FromLsi(directory, false),
              StatusIs(kInvalid, HasSubstr("fit.scale: got 'cubic'")));
  WriteFit(directory, "none", 0);
  WriteIn(directory, kSingularValuesFile, NpyBytes(std::vector<double>{1, 0}));
  EXPECT_OK(FromLsi(directory, false));
  EXPECT_THAT(
      FromLsi(directory, true),
      StatusIs(kInvalid, AllOf(HasSubstr(kSingularValuesFile),
                               HasSubstr("got a singular value of 0"))));
  WriteIn(directory, kSingularValuesFile, NpyBytes(std::vector<double>{1}));
  EXPECT_THAT(FromLsi(directory, true),
              StatusIs(kInvalid, HasSubstr("want 2 singular values")));
  WriteIn(directory, kKeysFile, NpyBytes(std::vector<float>{1, 2, 3}, 3));
  EXPECT_THAT(FromLsi(directory, false),
              StatusIs(kInvalid, HasSubstr("got rows of 3, want 2")));
  Model text;
  text.key_field.set_name("text");
  text.key_field.set_dimension(3);
  text.key_field.set_score_kind(v1::SCORE_KIND_DOT);
  text.key_field.set_combine_kind(v1::COMBINE_KIND_SUM);
  text.key_field.set_temperature(1);
  text.fit["kind"] = "text";
  WriteIn(directory, kModelFile, ModelJson(text));
  EXPECT_THAT(FromLsi(directory, false),
              StatusIs(kInvalid, HasSubstr("attendant fit lsi")));
}

}  // namespace
}  // namespace attendant
