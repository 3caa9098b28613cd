#include "core/catalog/query/query_vector.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "core/base/status.h"
#include "core/base/status_details.h"
#include "core/kernels/kernels.h"

namespace attendant {
namespace {

// Scales to norm 1, after dividing by the greatest component; zeros stay.
void ScaleToUnit(std::vector<double>& vector) {
  double greatest = 0;
  for (const double component : vector) {
    greatest = std::max(greatest, std::abs(component));
  }
  if (greatest == 0) return;
  double square_sum = 0;
  for (double& component : vector) {
    component /= greatest;
    square_sum += component * component;
  }
  const double norm = std::sqrt(square_sum);
  for (double& component : vector) component /= norm;
}

// Like Combine of core/attention/softmax/score.h, but in doubles: no sum of
// floats is too small or too large to be scaled.
void CombineSum(CombineKind kind, std::int64_t example_count,
                std::vector<double>& sum) {
  switch (kind) {
    case CombineKind::kSum:
      return;
    case CombineKind::kSumOverSqrtCount:
      for (double& component : sum) {
        component /= std::sqrt(static_cast<double>(example_count));
      }
      return;
    case CombineKind::kUnit:
      ScaleToUnit(sum);
      return;
  }
}

absl::StatusOr<QueryVector> VectorOfExamples(const Snapshot& snapshot,
                                             const ExamplesQuery& query,
                                             int field, absl::string_view path,
                                             const Interrupt& interrupt) {
  const KeyFieldSchema& schema = snapshot.schema->key_fields[field];
  ATTENDANT_RETURN_IF_ERROR(
      CheckCount(static_cast<std::int64_t>(query.examples.size()), 1,
                 kMaxExampleCount, absl::StrCat(path, ".examples.examples")));
  QueryVector resolved;
  std::vector<double> sum(static_cast<std::size_t>(schema.dim));
  std::int64_t count = 0;
  // Keys may have to be read from disk.
  constexpr std::size_t kExamplesBetweenChecks = 16;
  for (std::size_t i = 0; i < query.examples.size(); ++i) {
    if (i % kExamplesBetweenChecks == 0) {
      ATTENDANT_RETURN_IF_ERROR(interrupt.Check());
    }
    const Example& example = query.examples[i];
    const auto part_path = [&](absl::string_view part) {
      return absl::StrCat(path, ".examples.examples[", i, "].", part);
    };
    const std::optional<RowAddress> address = snapshot.Find(example.id);
    // An id that was found is valid.
    if (!address) {
      ATTENDANT_RETURN_IF_ERROR(ValidateItemId(example.id, part_path("id")));
    }
    if (!std::isfinite(example.weight)) {
      return InvalidField(part_path("weight"), absl::StrCat(example.weight),
                          "a finite number");
    }
    std::span<const float> key;
    if (address) {
      resolved.example_rows.push_back(*address);
      key = snapshot.KeyOf(*address, field);
    }
    if (key.empty()) {
      if (query.require_all) {
        return WithDetails(
            StatusWithReason(
                absl::StatusCode::kNotFound,
                absl::StrCat(part_path("id"), ": no item '", example.id,
                             "' with a key in '", schema.name, "'"),
                "EXAMPLE_NOT_FOUND"),
            {{"item", example.id}, {"key_field", schema.name}});
      }
      resolved.unknown_example_ids.push_back(example.id);
      continue;
    }
    ActiveKernels().AddScaled(example.weight, key.data(), schema.dim,
                              sum.data());
    ++count;
  }
  if (count == 0) {
    const ItemId& first = query.examples.front().id;
    const absl::string_view lacks =
        snapshot.Find(first) ? "has no key there" : "is not in the catalog";
    return WithDetails(
        StatusWithReason(
            absl::StatusCode::kNotFound,
            absl::StrCat(path, ".examples: none of ", query.examples.size(),
                         " is an item with a key in '", schema.name, "'; '",
                         first, "' ", lacks),
            "EXAMPLE_NOT_FOUND"),
        {{"item", first}, {"key_field", schema.name}});
  }
  CombineSum(query.combine_kind.value_or(schema.combine_kind), count, sum);
  resolved.vector.assign(sum.begin(), sum.end());
  const std::string examples_path = absl::StrCat(path, ".examples");
  if (!ValidateFinite(resolved.vector, examples_path).ok()) {
    return InvalidField(examples_path,
                        "examples whose weighted sum is infinite",
                        "smaller weights, or items of smaller keys");
  }
  return resolved;
}

}  // namespace

absl::StatusOr<QueryVector> ResolveQueryVector(const Snapshot& snapshot,
                                               const QueryForm& query,
                                               int field, std::int64_t dim,
                                               absl::string_view path,
                                               const Interrupt& interrupt) {
  const KeyFieldSchema& schema = snapshot.schema->key_fields[field];
  if (const auto* vector = std::get_if<std::vector<float>>(&query)) {
    const std::string vector_path = absl::StrCat(path, ".vector");
    if (static_cast<std::int64_t>(vector->size()) != dim) {
      return InvalidField(
          vector_path, absl::StrCat(vector->size(), " components"),
          dim == schema.dim
              ? absl::StrCat(dim, ", the dimension of '", schema.name, "'")
              : absl::StrCat(dim, ", what the model of '", schema.name,
                             "' takes"));
    }
    ATTENDANT_RETURN_IF_ERROR(ValidateFinite(*vector, vector_path));
    return QueryVector{*vector, {}, {}};
  }
  const auto* text = std::get_if<TextQuery>(&query);
  if (dim != schema.dim) {
    return InvalidField(
        absl::StrCat(path, text != nullptr ? ".text" : ".examples"),
        absl::StrCat("a query of ", schema.dim, " components"),
        absl::StrCat("a vector: the model of '", schema.name, "' takes ", dim));
  }
  if (text == nullptr) {
    return VectorOfExamples(snapshot, std::get<ExamplesQuery>(query), field,
                            path, interrupt);
  }
  const TextEncoder* encoder = snapshot.encoders[field].get();
  if (encoder == nullptr) {
    return InvalidField(absl::StrCat(path, ".text"), "text",
                        absl::StrCat("a vector or examples: key field '",
                                     schema.name, "' has no text encoder"));
  }
  absl::StatusOr<std::vector<float>> vector = encoder->Encode(text->text);
  if (!vector.ok()) {
    return PrefixField(vector.status(), absl::StrCat(path, "."));
  }
  return QueryVector{*std::move(vector), {}, {}};
}

}  // namespace attendant
