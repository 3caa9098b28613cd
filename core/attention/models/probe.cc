#include "core/attention/models/probe.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <span>

#include "absl/strings/str_cat.h"
#include "core/base/status.h"

namespace attendant {
namespace {

// A matrix of a model, or its transpose.
struct Oriented {
  const Matrix* matrix = nullptr;  // null: the model has no such projection
  bool transposed = false;
  std::span<const float> bias = {};

  std::int64_t input_dim() const {
    return transposed ? matrix->row_count : matrix->column_count;
  }
  std::int64_t output_dim() const {
    return transposed ? matrix->column_count : matrix->row_count;
  }
};

Oriented Of(const Projection& projection) {
  return {&projection.weight, false, projection.bias};
}

Oriented Of(const std::optional<Projection>& projection) {
  return projection ? Of(*projection) : Oriented();
}

Oriented Find(const AttentionModel& model, ProjectionKind kind) {
  if (const MultiHeadProjections* heads = model.multi_head()) {
    switch (kind) {
      case ProjectionKind::kQuery:
        return Of(heads->query);
      case ProjectionKind::kKey:
        return Of(heads->key);
      case ProjectionKind::kValue:
        return Of(heads->value);
      case ProjectionKind::kOutput:
        return Of(heads->output);
    }
  }
  const bool is_query = kind == ProjectionKind::kQuery;
  if (!is_query && kind != ProjectionKind::kKey) return {};
  if (const BilinearForm* form = model.bilinear()) {
    return {&form->weight, is_query};
  }
  const AdditiveNetwork& network = *model.additive();
  return {is_query ? &network.query_weight : &network.key_weight};
}

absl::string_view Name(ProjectionKind kind) {
  switch (kind) {
    case ProjectionKind::kQuery:
      return "query";
    case ProjectionKind::kKey:
      return "key";
    case ProjectionKind::kValue:
      return "value";
    case ProjectionKind::kOutput:
      return "output";
  }
  return "";
}

bool Fits(const Oriented& projection, const ProjectionProbe& probe) {
  return static_cast<std::int64_t>(probe.input.size()) ==
             projection.input_dim() &&
         static_cast<std::int64_t>(probe.output.size()) ==
             projection.output_dim();
}

// Returns the greatest |projection of the input - output|. Shapes must agree.
double Difference(const Oriented& projection, const ProjectionProbe& probe) {
  const std::int64_t row_step =
      projection.transposed ? 1 : projection.matrix->column_count;
  const std::int64_t column_step =
      projection.transposed ? projection.matrix->column_count : 1;
  double greatest = 0;
  for (std::size_t r = 0; r < probe.output.size(); ++r) {
    double sum = projection.bias.empty() ? 0 : projection.bias[r];
    for (std::size_t c = 0; c < probe.input.size(); ++c) {
      const auto at = static_cast<std::int64_t>(r) * row_step +
                      static_cast<std::int64_t>(c) * column_step;
      sum += static_cast<double>(projection.matrix->data[at]) * probe.input[c];
    }
    greatest = std::max(greatest, std::abs(sum - probe.output[r]));
  }
  return greatest;
}

// Returns what to try if the projection does not match.
absl::string_view Hint(const Oriented& projection, const ProjectionProbe& probe,
                       double tolerance) {
  Oriented other = projection;
  other.transposed = !other.transposed;
  // The bias belongs to the output, and may fit both orientations.
  if (static_cast<std::int64_t>(other.bias.size()) != other.output_dim()) {
    other.bias = {};
  }
  if (!Fits(other, probe) || Difference(other, probe) > tolerance) return "";
  return "; the transposed matrix gives it: transpose the weight";
}

absl::Status CheckSize(std::size_t got, std::int64_t want,
                       const std::string& field, absl::string_view hint) {
  if (static_cast<std::int64_t>(got) == want) return absl::OkStatus();
  return InvalidField(field, absl::StrCat(got, " components"),
                      absl::StrCat(want, ", as the projection has", hint));
}

}  // namespace

absl::Status CheckProbe(const AttentionModel& model,
                        const ProjectionProbe& probe, absl::string_view field) {
  const Oriented projection = Find(model, probe.projection);
  if (projection.matrix == nullptr) {
    return InvalidField(absl::StrCat(field, ".projection"),
                        Name(probe.projection),
                        "a projection that the model has");
  }
  ATTENDANT_RETURN_IF_ERROR(
      ValidateFinite(probe.input, absl::StrCat(field, ".input")));
  ATTENDANT_RETURN_IF_ERROR(
      ValidateFinite(probe.output, absl::StrCat(field, ".output")));
  const double tolerance = kProbeTolerance * Norm(probe.output);
  double difference = 0;
  if (Fits(projection, probe)) {
    difference = Difference(projection, probe);
    if (difference <= tolerance) return absl::OkStatus();
  }
  const absl::string_view hint = Hint(projection, probe, tolerance);
  ATTENDANT_RETURN_IF_ERROR(CheckSize(probe.input.size(),
                                      projection.input_dim(),
                                      absl::StrCat(field, ".input"), hint));
  ATTENDANT_RETURN_IF_ERROR(CheckSize(probe.output.size(),
                                      projection.output_dim(),
                                      absl::StrCat(field, ".output"), hint));
  return InvalidField(
      absl::StrCat(field, ".output"),
      absl::StrCat("a projection of ", Name(probe.projection),
                   " that differs from it by up to ", difference),
      absl::StrCat("at most ", tolerance, ", ", kProbeTolerance,
                   " of the output's norm", hint));
}

}  // namespace attendant
