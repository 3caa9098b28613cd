#include "service/convert/model.h"

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/status.h"
#include "service/convert/enum.h"
#include "service/convert/time.h"
#include "service/convert/vector.h"

namespace attendant {
namespace {

absl::StatusOr<Matrix> MatrixFromProto(bool present, const v1::Matrix& wire,
                                       absl::string_view field) {
  if (!present) return InvalidField(field, "nothing", "a matrix");
  Matrix matrix;
  matrix.row_count = wire.row_count();
  matrix.column_count = wire.column_count();
  ATTENDANT_ASSIGN_OR_RETURN(
      matrix.data,
      FloatsFromBytes(wire.float32_le(), absl::StrCat(field, ".float32_le")));
  return matrix;
}

absl::StatusOr<std::vector<float>> FieldVector(bool present,
                                               const v1::Vector& wire,
                                               absl::string_view field) {
  if (!present) return InvalidField(field, "nothing", "a vector");
  return VectorFromProto(wire, field);
}

absl::StatusOr<Projection> ProjectionFromProto(bool present,
                                               const v1::Projection& wire,
                                               absl::string_view field) {
  if (!present) return InvalidField(field, "nothing", "a projection");
  Projection projection;
  ATTENDANT_ASSIGN_OR_RETURN(projection.weight,
                             MatrixFromProto(wire.has_weight(), wire.weight(),
                                             absl::StrCat(field, ".weight")));
  if (wire.has_bias()) {
    ATTENDANT_ASSIGN_OR_RETURN(
        projection.bias,
        FieldVector(true, wire.bias(), absl::StrCat(field, ".bias")));
  }
  return projection;
}

absl::StatusOr<MultiHeadProjections> HeadsFromProto(
    const v1::MultiHeadProjections& wire) {
  MultiHeadProjections heads;
  heads.head_count = wire.head_count();
  ATTENDANT_ASSIGN_OR_RETURN(
      heads.query,
      ProjectionFromProto(wire.has_query(), wire.query(), "multi_head.query"));
  ATTENDANT_ASSIGN_OR_RETURN(
      heads.key,
      ProjectionFromProto(wire.has_key(), wire.key(), "multi_head.key"));
  if (wire.has_value()) {
    ATTENDANT_ASSIGN_OR_RETURN(
        heads.value,
        ProjectionFromProto(true, wire.value(), "multi_head.value"));
  }
  if (wire.has_output()) {
    ATTENDANT_ASSIGN_OR_RETURN(
        heads.output,
        ProjectionFromProto(true, wire.output(), "multi_head.output"));
  }
  return heads;
}

absl::StatusOr<BilinearForm> BilinearFromProto(const v1::BilinearForm& wire) {
  BilinearForm form;
  ATTENDANT_ASSIGN_OR_RETURN(
      form.weight,
      MatrixFromProto(wire.has_weight(), wire.weight(), "bilinear.weight"));
  return form;
}

absl::StatusOr<AdditiveNetwork> AdditiveFromProto(
    const v1::AdditiveNetwork& wire) {
  AdditiveNetwork network;
  ATTENDANT_ASSIGN_OR_RETURN(
      network.query_weight,
      MatrixFromProto(wire.has_query_weight(), wire.query_weight(),
                      "additive.query_weight"));
  ATTENDANT_ASSIGN_OR_RETURN(
      network.key_weight,
      MatrixFromProto(wire.has_key_weight(), wire.key_weight(),
                      "additive.key_weight"));
  ATTENDANT_ASSIGN_OR_RETURN(
      network.output_weight,
      FieldVector(wire.has_output_weight(), wire.output_weight(),
                  "additive.output_weight"));
  return network;
}

void MatrixToProto(const Matrix& matrix, v1::Matrix* wire) {
  wire->set_row_count(static_cast<std::int32_t>(matrix.row_count));
  wire->set_column_count(static_cast<std::int32_t>(matrix.column_count));
  wire->set_float32_le(matrix.data.data(), matrix.data.size() * sizeof(float));
}

void ProjectionToProto(const Projection& projection, v1::Projection* wire) {
  MatrixToProto(projection.weight, wire->mutable_weight());
  if (!projection.bias.empty()) {
    VectorToProto(projection.bias, wire->mutable_bias());
  }
}

void KindToProto(const MultiHeadProjections& heads, v1::AttentionModel* wire) {
  v1::MultiHeadProjections* out = wire->mutable_multi_head();
  out->set_head_count(static_cast<std::int32_t>(heads.head_count));
  ProjectionToProto(heads.query, out->mutable_query());
  ProjectionToProto(heads.key, out->mutable_key());
  if (heads.value) ProjectionToProto(*heads.value, out->mutable_value());
  if (heads.output) ProjectionToProto(*heads.output, out->mutable_output());
}

void KindToProto(const BilinearForm& form, v1::AttentionModel* wire) {
  MatrixToProto(form.weight, wire->mutable_bilinear()->mutable_weight());
}

void KindToProto(const AdditiveNetwork& network, v1::AttentionModel* wire) {
  v1::AdditiveNetwork* out = wire->mutable_additive();
  MatrixToProto(network.query_weight, out->mutable_query_weight());
  MatrixToProto(network.key_weight, out->mutable_key_weight());
  VectorToProto(network.output_weight, out->mutable_output_weight());
}

// Sets the fields that depend on the kind.
void SummariseKind(const MultiHeadProjections& heads, v1::ModelSummary* wire) {
  wire->set_model_kind(v1::MODEL_KIND_MULTI_HEAD);
  wire->set_head_key_dimension(static_cast<std::int32_t>(heads.head_key_dim()));
  wire->set_head_value_dimension(
      static_cast<std::int32_t>(heads.head_value_dim(0)));
  wire->set_output_dimension(static_cast<std::int32_t>(heads.output_dim(0)));
}

void SummariseKind(const BilinearForm& /*form*/, v1::ModelSummary* wire) {
  wire->set_model_kind(v1::MODEL_KIND_BILINEAR);
}

void SummariseKind(const AdditiveNetwork& /*network*/, v1::ModelSummary* wire) {
  wire->set_model_kind(v1::MODEL_KIND_ADDITIVE);
}

}  // namespace

absl::StatusOr<AttentionModel> ModelFromProto(const v1::AttentionModel& wire) {
  AttentionModel model;
  switch (wire.kind_case()) {
    case v1::AttentionModel::kMultiHead: {
      ATTENDANT_ASSIGN_OR_RETURN(model.kind, HeadsFromProto(wire.multi_head()));
      return model;
    }
    case v1::AttentionModel::kBilinear: {
      ATTENDANT_ASSIGN_OR_RETURN(model.kind,
                                 BilinearFromProto(wire.bilinear()));
      return model;
    }
    case v1::AttentionModel::kAdditive: {
      ATTENDANT_ASSIGN_OR_RETURN(model.kind,
                                 AdditiveFromProto(wire.additive()));
      return model;
    }
    case v1::AttentionModel::KIND_NOT_SET:
      break;
  }
  return InvalidField("kind", "none", "multi_head, bilinear or additive");
}

absl::StatusOr<std::vector<ProjectionProbe>> ProbesFromProto(
    const google::protobuf::RepeatedPtrField<v1::ProjectionProbe>& wire) {
  // Checked before the probes are copied.
  ATTENDANT_RETURN_IF_ERROR(CheckCount(wire.size(), 0, kMaxProbes, "probes"));
  std::vector<ProjectionProbe> probes;
  for (int i = 0; i < wire.size(); ++i) {
    const std::string field = absl::StrCat("probes[", i, "]");
    ProjectionProbe& probe = probes.emplace_back();
    ATTENDANT_ASSIGN_OR_RETURN(
        probe.projection,
        RequiredEnumFromProto<ProjectionKind>(
            wire[i].projection(), absl::StrCat(field, ".projection")));
    ATTENDANT_ASSIGN_OR_RETURN(probe.input,
                               FieldVector(wire[i].has_input(), wire[i].input(),
                                           absl::StrCat(field, ".input")));
    ATTENDANT_ASSIGN_OR_RETURN(
        probe.output, FieldVector(wire[i].has_output(), wire[i].output(),
                                  absl::StrCat(field, ".output")));
  }
  return probes;
}

void ModelToProto(const ModelVersion& version, v1::AttentionModel* wire) {
  wire->set_name(version.name.name);
  wire->set_version(version.name.version);
  std::visit([&](const auto& kind) { KindToProto(kind, wire); },
             version.model.kind);
  TimeToProto(version.create_time, wire->mutable_create_time());
}

void SummaryToProto(const ModelVersion& version, v1::ModelSummary* wire) {
  const AttentionModel& model = version.model;
  wire->set_name(version.name.name);
  wire->set_version(version.name.version);
  wire->set_query_dimension(static_cast<std::int32_t>(model.query_dim()));
  wire->set_key_dimension(static_cast<std::int32_t>(model.key_dim()));
  wire->set_value_dimension(static_cast<std::int32_t>(model.value_dim()));
  wire->set_head_count(static_cast<std::int32_t>(model.head_count()));
  std::visit([&](const auto& kind) { SummariseKind(kind, wire); }, model.kind);
  wire->set_memory_bytes(WeightBytes(model));
  if (version.asymmetry) wire->set_asymmetry(*version.asymmetry);
  TimeToProto(version.create_time, wire->mutable_create_time());
}

}  // namespace attendant
