#include "core/catalog/query/query_heads.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/status.h"
#include "core/catalog/segments/head_keys.h"
#include "core/kernels/kernels.h"

namespace attendant {
namespace {

absl::Status Normalise(std::vector<float>& vector, bool made_by_model,
                       absl::string_view path) {
  const double norm = Norm(vector);
  if (norm == 0) {
    return InvalidField(
        path,
        made_by_model ? "a query that its model makes 0" : "a query of norm 0",
        "a norm above 0 for COSINE");
  }
  for (float& component : vector) {
    component = static_cast<float>(component / norm);
  }
  return absl::OkStatus();
}

// Returns W^T q for W [query_dim, key_dim].
std::vector<float> ThroughBilinear(const BilinearForm& form,
                                   const std::vector<float>& query) {
  const std::int64_t key_dim = form.weight.column_count;
  std::vector<double> sum(static_cast<std::size_t>(key_dim));
  for (std::size_t i = 0; i < query.size(); ++i) {
    ActiveKernels().AddScaled(
        query[i],
        form.weight.data.data() + static_cast<std::int64_t>(i) * key_dim,
        key_dim, sum.data());
  }
  return {sum.begin(), sum.end()};
}

// Projects the query through the model: the concatenated inputs of all heads.
std::vector<float> ThroughModel(const AttentionModel& model,
                                const std::vector<float>& query) {
  if (const BilinearForm* form = model.bilinear()) {
    return ThroughBilinear(*form, query);
  }
  MatrixView weight;
  std::span<const float> bias;
  if (const AdditiveNetwork* network = model.additive()) {
    weight = network->query_weight.view();
  } else {
    weight = model.multi_head()->query.weight.view();
    bias = model.multi_head()->query.bias;
  }
  std::vector<float> projected(static_cast<std::size_t>(weight.row_count));
  ProjectRows(weight, bias, {query.data(), 1, weight.dim}, projected.data());
  return projected;
}

}  // namespace

absl::StatusOr<NamedModel> ChooseModel(const Snapshot& snapshot,
                                       const AttendQuery& query, int field,
                                       ScoreKind score_kind) {
  const KeyFieldSchema& schema = snapshot.schema->key_fields[field];
  const NamedModel& own = snapshot.models[field];
  if (query.model.model != nullptr) {
    ATTENDANT_RETURN_IF_ERROR(
        ValidateModelFits(*query.model.model, score_kind, schema.dim,
                          snapshot.schema->value_dim, "model"));
    const bool same = own.model != nullptr && query.model.name == own.name;
    return same ? own : query.model;
  }
  if (own.model != nullptr &&
      ValidateModelFits(*own.model, score_kind, schema.dim,
                        snapshot.schema->value_dim, "model")
          .ok()) {
    return own;
  }
  if (IsDotLike(score_kind)) return NamedModel();
  return InvalidField(
      "model", "none",
      absl::StrCat("a model for score_kind ", Name(score_kind)));
}

std::int64_t QueryDim(const Snapshot& snapshot, int field,
                      const NamedModel& model) {
  return model.model != nullptr ? model.model->query_dim()
                                : snapshot.schema->key_fields[field].dim;
}

bool IsForeign(const Snapshot& snapshot, int field, const NamedModel& model) {
  return model.model != nullptr && model.model != snapshot.models[field].model;
}

absl::StatusOr<ByHead<PlannedHead>> PlanHeads(
    const Snapshot& snapshot, int field, const NamedModel& model,
    ScoreKind score_kind, std::span<const double> temperatures,
    std::vector<float> vector, absl::string_view path) {
  const bool made_by_model = model.model != nullptr && Norm(vector) > 0;
  if (model.model != nullptr) vector = ThroughModel(*model.model, vector);
  if (!ValidateFinite(vector, path).ok()) {
    return InvalidField(path, "a query that its model makes infinite",
                        "a smaller one, or a model of smaller weights");
  }
  const bool stores_keys = StoredHeadCount(model.model.get()) > 0;
  const bool foreign = IsForeign(snapshot, field, model);
  const std::size_t head_dim = vector.size() / temperatures.size();
  ByHead<PlannedHead> heads;
  for (std::size_t h = 0; h < temperatures.size(); ++h) {
    PlannedHead head;
    head.field = field;
    head.query_path = std::string(path);
    head.score_kind = score_kind;
    head.temperature = temperatures[h];
    head.logit_factor = LogitFactor(
        score_kind, static_cast<std::int64_t>(head_dim), head.temperature);
    if (temperatures.size() == 1) {
      head.vector = std::move(vector);
    } else {
      const auto begin =
          vector.begin() + static_cast<std::ptrdiff_t>(h * head_dim);
      head.vector.assign(begin, begin + static_cast<std::ptrdiff_t>(head_dim));
    }
    if (score_kind == ScoreKind::kCosine) {
      ATTENDANT_RETURN_IF_ERROR(Normalise(head.vector, made_by_model, path));
    }
    if (score_kind == ScoreKind::kAdditive) {
      head.output_weight = model.model->additive()->output_weight;
    }
    if (stores_keys && foreign) {
      head.projection = HeadProjection(*model.model, static_cast<int>(h));
    } else if (stores_keys) {
      head.stored_head = static_cast<int>(h);
    }
    heads.push_back(std::move(head));
  }
  return heads;
}

absl::Status InQueryOf(const PlannedHead& head, const absl::Status& status) {
  if (FieldOf(status) != "query") return status;
  return ReplacePrefix(status, "query", head.query_path);
}

}  // namespace attendant
