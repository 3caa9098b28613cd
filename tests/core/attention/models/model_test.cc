#include "core/attention/models/model.h"

#include <cmath>
#include <functional>
#include <limits>

#include "core/base/status.h"
#include "tests/support/random_model.h"
#include "tests/support/status_matchers.h"

namespace attendant {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Optional;

TEST(ProjectTest, IsWeightTimesInputPlusBias) {
  const Projection projection = {{2, 3, {1, 2, 3, 4, 5, 6}}, {10, -20}};
  const std::vector<float> input = {1, 0, -1};
  std::vector<float> output(2);
  Project(projection, input, output);
  EXPECT_EQ(output, (std::vector<float>{8, -22}));
}

TEST(ProjectTest, RowsAreProjectedOneByOneLikeThePlainSum) {
  RandomFloats random(1);
  for (const std::int64_t dim : {1, 7, 16, 33}) {
    const Projection projection = random.Projection(5, dim);
    const Matrix inputs = random.Matrix(3, dim);
    std::vector<float> outputs(15);
    ProjectRows(projection, inputs.view(), outputs.data());
    std::vector<float> alone(5);
    for (std::int64_t n = 0; n < 3; ++n) {
      Project(projection, inputs.view().Row(n), alone);
      for (std::int64_t r = 0; r < 5; ++r) {
        double want = projection.bias[r];
        double magnitude = std::abs(want);
        for (std::int64_t c = 0; c < dim; ++c) {
          const double product =
              static_cast<double>(projection.weight.view().Row(r)[c]) *
              inputs.view().Row(n)[c];
          want += product;
          magnitude += std::abs(product);
        }
        // A product, dim - 1 additions and the bias, each off by 2^-24 of at
        // most the magnitude.
        const double tolerance =
            static_cast<double>(dim + 1) * 0x1p-24 * magnitude;
        EXPECT_NEAR(outputs[n * 5 + r], want, tolerance);
        EXPECT_EQ(alone[r], outputs[n * 5 + r]);
      }
    }
  }
}

TEST(AttentionModelTest, KnowsItsDimensions) {
  AttentionModel model = RandomMultiHeadModel(1);
  EXPECT_EQ(model.query_dim(), 5);
  EXPECT_EQ(model.key_dim(), 4);
  EXPECT_EQ(model.value_dim(), 6);
  EXPECT_EQ(model.head_count(), 2);
  auto& heads = std::get<MultiHeadProjections>(model.kind);
  EXPECT_EQ(heads.head_key_dim(), 3);
  EXPECT_EQ(heads.head_value_dim(6), 2);
  EXPECT_EQ(heads.output_dim(6), 7);
  // Without W_V each head pools values unprojected, so W_O determines their
  // length.
  heads.value.reset();
  EXPECT_EQ(model.value_dim(), 2);
  EXPECT_EQ(heads.head_value_dim(2), 2);
  heads.output.reset();
  EXPECT_EQ(model.value_dim(), 0);
  EXPECT_EQ(heads.output_dim(9), 18);

  EXPECT_EQ(RandomBilinearModel(1).query_dim(), 3);
  EXPECT_EQ(RandomBilinearModel(1).key_dim(), 5);
  EXPECT_EQ(RandomAdditiveModel(1).query_dim(), 3);
  EXPECT_EQ(RandomAdditiveModel(1).key_dim(), 5);
  EXPECT_EQ(RandomAdditiveModel(1).value_dim(), 0);
  EXPECT_EQ(RandomAdditiveModel(1).head_count(), 1);
}

TEST(ValidateModelTest, AcceptsEveryKind) {
  EXPECT_OK(ValidateModel(RandomMultiHeadModel(1)));
  EXPECT_OK(ValidateModel(RandomBilinearModel(1)));
  EXPECT_OK(ValidateModel(RandomAdditiveModel(1)));
}

// Head dimensions are free: they need not divide the model's dimension.
TEST(ValidateModelTest, HeadsNeedNotDivideAnyDimension) {
  RandomFloats random(1);
  MultiHeadProjections heads;
  heads.head_count = 3;
  heads.query = random.Projection(3 * 2, 8);
  heads.key = random.Projection(3 * 2, 8);
  heads.value = random.Projection(3 * 5, 8);
  heads.output = random.Projection(8, 3 * 5);
  EXPECT_OK(ValidateModel({heads}));
}

struct Fault {
  std::string field;
  std::string got;
  absl::StatusCode code = absl::StatusCode::kInvalidArgument;
};

template <typename Kind>
void ExpectFault(AttentionModel model, const std::function<void(Kind&)>& spoil,
                 const Fault& fault) {
  spoil(std::get<Kind>(model.kind));
  const absl::Status status = ValidateModel(model);
  EXPECT_THAT(status, StatusIs(fault.code, AllOf(HasSubstr(fault.field),
                                                 HasSubstr(fault.got))));
  EXPECT_THAT(FieldOf(status), Optional(fault.field));
}

TEST(ValidateModelTest, NamesWhatIsWrongWithHeads) {
  using Heads = MultiHeadProjections;
  const AttentionModel model = RandomMultiHeadModel(1);
  const auto over = absl::StatusCode::kResourceExhausted;
  ExpectFault<Heads>(model, [](Heads& heads) { heads.head_count = 0; },
                     {"multi_head.head_count", "got 0"});
  ExpectFault<Heads>(model, [](Heads& heads) { heads.head_count = 257; },
                     {"multi_head.head_count", "got 257", over});
  ExpectFault<Heads>(model, [](Heads& heads) { heads.head_count = 4; },
                     {"multi_head.query.weight.row_count", "got 6"});
  ExpectFault<Heads>(model,
                     [](Heads& heads) { heads.query.weight.row_count = 0; },
                     {"multi_head.query.weight.row_count", "got 0"});
  ExpectFault<Heads>(
      model, [](Heads& heads) { heads.query.weight.column_count = 65537; },
      {"multi_head.query.weight.column_count", "got 65537", over});
  ExpectFault<Heads>(
      model, [](Heads& heads) { heads.key.weight.data.pop_back(); },
      {"multi_head.key.weight.float32_le", "23 floats, want 24"});
  ExpectFault<Heads>(model,
                     [](Heads& heads) {
                       heads.key.weight.data[3] =
                           std::numeric_limits<float>::infinity();
                     },
                     {"multi_head.key.weight.float32_le[3]", "got inf"});
  ExpectFault<Heads>(model, [](Heads& heads) { heads.key.bias.push_back(0); },
                     {"multi_head.key.bias", "7 components, want 6"});
  ExpectFault<Heads>(model,
                     [](Heads& heads) { heads.key.bias[5] = std::nanf(""); },
                     {"multi_head.key.bias[5]", "got nan"});
  ExpectFault<Heads>(
      model, [](Heads& heads) { heads.key = RandomFloats(2).Projection(4, 4); },
      {"multi_head.key.weight.row_count", "got 4, want 6"});
  ExpectFault<Heads>(
      model,
      [](Heads& heads) { heads.value = RandomFloats(2).Projection(5, 6); },
      {"multi_head.value.weight.row_count", "got 5"});
  ExpectFault<Heads>(
      model,
      [](Heads& heads) { heads.output = RandomFloats(2).Projection(7, 6); },
      {"multi_head.output.weight.column_count", "got 6, want 4"});
  ExpectFault<Heads>(model,
                     [](Heads& heads) {
                       heads.value.reset();
                       heads.output = RandomFloats(2).Projection(7, 5);
                     },
                     {"multi_head.output.weight.column_count", "got 5"});
}

TEST(ValidateModelTest, NamesWhatIsWrongWithTheOtherKinds) {
  ExpectFault<BilinearForm>(
      RandomBilinearModel(1),
      [](BilinearForm& form) { form.weight.data.clear(); },
      {"bilinear.weight.float32_le", "0 floats, want 15"});
  const AttentionModel additive = RandomAdditiveModel(1);
  using Network = AdditiveNetwork;
  ExpectFault<Network>(
      additive, [](Network& network) { network.query_weight.data[0] = NAN; },
      {"additive.query_weight.float32_le[0]", "got nan"});
  ExpectFault<Network>(additive,
                       [](Network& network) {
                         network.key_weight = RandomFloats(2).Matrix(3, 5);
                       },
                       {"additive.key_weight.row_count", "got 3, want 4"});
  ExpectFault<Network>(
      additive, [](Network& network) { network.output_weight.pop_back(); },
      {"additive.output_weight", "got 3, want 4"});
  ExpectFault<Network>(additive,
                       [](Network& network) { network.output_weight[1] = NAN; },
                       {"additive.output_weight[1]", "got nan"});
}

TEST(ValidateModelFitsTest, KindsAndDimensionsMustAgree) {
  const AttentionModel heads = RandomMultiHeadModel(1);
  for (const ScoreKind kind :
       {ScoreKind::kDot, ScoreKind::kScaledDot, ScoreKind::kCosine}) {
    EXPECT_OK(ValidateModelFits(heads, kind, 4, 6, "field"));
    EXPECT_THAT(ValidateModelFits(RandomBilinearModel(1), kind, 5, 0, "field"),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr("want a multi-head model for ")));
  }
  EXPECT_OK(ValidateModelFits(RandomBilinearModel(1), ScoreKind::kBilinear, 5,
                              0, "field"));
  EXPECT_OK(ValidateModelFits(RandomAdditiveModel(1), ScoreKind::kAdditive, 5,
                              9, "field"));
  EXPECT_THAT(
      ValidateModelFits(heads, ScoreKind::kBilinear, 4, 6, "field"),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("bilinear")));
  EXPECT_THAT(
      ValidateModelFits(heads, ScoreKind::kAdditive, 4, 6, "field"),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("additive")));
  EXPECT_THAT(ValidateModelFits(heads, ScoreKind::kDot, 5, 6, "field"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("keys of 4, want 5")));
  EXPECT_THAT(ValidateModelFits(heads, ScoreKind::kDot, 4, 5, "field"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("values of 6, want 5")));
  // Without values, the keys are pooled.
  EXPECT_THAT(ValidateModelFits(heads, ScoreKind::kDot, 4, 0, "field"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("values of 6, want 4")));
}

TEST(CheckIndexableTest, ProjectedKeysAreNoLongerThanKeys) {
  const auto ones = [](std::int64_t rows) {
    return Matrix{rows, 1, std::vector<float>(static_cast<std::size_t>(rows))};
  };
  const auto heads = [&](std::int64_t count, std::int64_t head_dim) {
    MultiHeadProjections projections;
    projections.head_count = count;
    projections.query = projections.key = {ones(count * head_dim), {}};
    return AttentionModel{projections};
  };
  const auto additive = [&](std::int64_t hidden) {
    return AttentionModel{
        AdditiveNetwork{ones(hidden), ones(hidden), ones(hidden).data}};
  };
  const auto check = [](const AttentionModel& model) {
    EXPECT_OK(ValidateModel(model));
    return CheckIndexable(model, "field");
  };
  EXPECT_OK(check(heads(1, 8192)));
  EXPECT_OK(check(heads(8, 8192)));
  EXPECT_OK(check(additive(8192)));
  const auto refused =
      StatusIs(absl::StatusCode::kResourceExhausted,
               HasSubstr("field: got a model of projected keys of 8193, want "
                         "at most 8192"));
  EXPECT_THAT(check(heads(1, 8193)), refused);
  EXPECT_THAT(check(heads(2, 8193)), refused);
  EXPECT_THAT(check(additive(8193)), refused);
}

}  // namespace
}  // namespace attendant
