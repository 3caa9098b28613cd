#include "core/attention/models/probe.h"

#include <limits>

#include "core/base/status.h"
#include "tests/support/random_model.h"
#include "tests/support/status_matchers.h"

namespace attendant {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::Optional;

// Returns the probe with the output of `projection` for one input.
ProjectionProbe ProbeOf(ProjectionKind kind, const Projection& projection,
                        std::uint32_t seed) {
  ProjectionProbe probe;
  probe.projection = kind;
  probe.input = RandomFloats(seed).Vector(projection.input_dim());
  probe.output.resize(static_cast<std::size_t>(projection.output_dim()));
  Project(projection, probe.input, probe.output);
  return probe;
}

Matrix Transposed(const Matrix& matrix) {
  Matrix transposed = {matrix.column_count, matrix.row_count, {}};
  for (std::int64_t c = 0; c < matrix.column_count; ++c) {
    for (std::int64_t r = 0; r < matrix.row_count; ++r) {
      transposed.data.push_back(matrix.view().Row(r)[c]);
    }
  }
  return transposed;
}

TEST(CheckProbeTest, HoldsForEveryProjection) {
  const AttentionModel model = RandomMultiHeadModel(1);
  const MultiHeadProjections& heads = *model.multi_head();
  EXPECT_OK(CheckProbe(model, ProbeOf(ProjectionKind::kQuery, heads.query, 2),
                       "probes[0]"));
  EXPECT_OK(CheckProbe(model, ProbeOf(ProjectionKind::kKey, heads.key, 2),
                       "probes[0]"));
  EXPECT_OK(CheckProbe(model, ProbeOf(ProjectionKind::kValue, *heads.value, 2),
                       "probes[0]"));
  EXPECT_OK(CheckProbe(
      model, ProbeOf(ProjectionKind::kOutput, *heads.output, 2), "probes[0]"));
}

TEST(CheckProbeTest, HoldsForOtherKinds) {
  const AttentionModel additive = RandomAdditiveModel(1);
  EXPECT_OK(CheckProbe(additive,
                       ProbeOf(ProjectionKind::kQuery,
                               {additive.additive()->query_weight, {}}, 2),
                       "probes[0]"));
  EXPECT_OK(CheckProbe(
      additive,
      ProbeOf(ProjectionKind::kKey, {additive.additive()->key_weight, {}}, 2),
      "probes[0]"));
  // q W and W k.
  const AttentionModel bilinear = RandomBilinearModel(1);
  const Matrix& weight = bilinear.bilinear()->weight;
  EXPECT_OK(CheckProbe(
      bilinear, ProbeOf(ProjectionKind::kQuery, {Transposed(weight), {}}, 2),
      "probes[0]"));
  EXPECT_OK(CheckProbe(bilinear, ProbeOf(ProjectionKind::kKey, {weight, {}}, 2),
                       "probes[0]"));
}

TEST(CheckProbeTest, ToleranceIsOfTheOutputsNorm) {
  const AttentionModel model = RandomMultiHeadModel(1);
  const ProjectionProbe whole =
      ProbeOf(ProjectionKind::kKey, model.multi_head()->key, 2);
  const auto norm = static_cast<float>(Norm(whole.output));
  ProjectionProbe probe = whole;
  probe.output[1] += 0.9e-4f * norm;
  EXPECT_OK(CheckProbe(model, probe, "probes[3]"));
  probe.output[1] = whole.output[1] + 1.1e-4f * norm;
  const absl::Status status = CheckProbe(model, probe, "probes[3]");
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kInvalidArgument,
                               AllOf(HasSubstr("differs from it by up to"),
                                     Not(HasSubstr("transpose")))));
  EXPECT_THAT(FieldOf(status), Optional(std::string("probes[3].output")));
}

// The shape can't reveal the transposition here, and the bias is the same
// either way.
TEST(CheckProbeTest, SquareMatrixTheWrongWayRoundIsCaughtAndNamed) {
  MultiHeadProjections heads;
  RandomFloats random(1);
  heads.query = random.Projection(4, 4);
  heads.key = random.Projection(4, 4);
  const ProjectionProbe probe = ProbeOf(ProjectionKind::kQuery, heads.query, 2);
  EXPECT_OK(CheckProbe({heads}, probe, "probes[0]"));
  heads.query.weight = Transposed(heads.query.weight);
  ASSERT_OK(ValidateModel({heads}));
  EXPECT_THAT(CheckProbe({heads}, probe, "probes[0]"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("probes[0].output"),
                             HasSubstr("the transposed matrix gives it"))));
}

TEST(CheckProbeTest, OtherShapesTheWrongWayRoundAreNamedToo) {
  const AttentionModel model = RandomAdditiveModel(1);
  const ProjectionProbe probe = ProbeOf(
      ProjectionKind::kKey, {Transposed(model.additive()->key_weight), {}}, 2);
  const absl::Status status = CheckProbe(model, probe, "probes[0]");
  EXPECT_THAT(status,
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("got 4 components, want 5"),
                             HasSubstr("the transposed matrix gives it"))));
  EXPECT_THAT(FieldOf(status), Optional(std::string("probes[0].input")));
}

TEST(CheckProbeTest, MalformedProbesAreNamed) {
  const AttentionModel model = RandomMultiHeadModel(1);
  ProjectionProbe probe =
      ProbeOf(ProjectionKind::kKey, model.multi_head()->key, 2);
  ProjectionProbe spoilt = probe;
  spoilt.input.pop_back();
  EXPECT_THAT(CheckProbe(model, spoilt, "probes[0]"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("probes[0].input: got 3 components, want 4")));
  spoilt = probe;
  spoilt.output.push_back(0);
  EXPECT_THAT(
      CheckProbe(model, spoilt, "probes[0]"),
      StatusIs(absl::StatusCode::kInvalidArgument,
               HasSubstr("probes[0].output: got 7 components, want 6")));
  spoilt = probe;
  spoilt.input[2] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_THAT(CheckProbe(model, spoilt, "probes[0]"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("probes[0].input[2]")));
  spoilt = probe;
  spoilt.output[0] = std::numeric_limits<float>::infinity();
  EXPECT_THAT(CheckProbe(model, spoilt, "probes[0]"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("probes[0].output[0]")));
  spoilt.projection = ProjectionKind::kValue;
  EXPECT_THAT(CheckProbe(RandomBilinearModel(1), spoilt, "probes[0]"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("probes[0].projection: got value")));
  AttentionModel plain = model;
  std::get<MultiHeadProjections>(plain.kind).value.reset();
  EXPECT_THAT(CheckProbe(plain, spoilt, "probes[0]"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("a projection that the model has")));
}

}  // namespace
}  // namespace attendant
