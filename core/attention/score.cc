#include "core/attention/score.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "core/base/status.h"

namespace attendant {
namespace {

constexpr ScoreKind kScoreKinds[] = {ScoreKind::kDot, ScoreKind::kScaledDot,
                                     ScoreKind::kCosine, ScoreKind::kBilinear,
                                     ScoreKind::kAdditive};
constexpr CombineKind kCombineKinds[] = {
    CombineKind::kSum, CombineKind::kSumOverSqrtCount, CombineKind::kUnit};

void Multiply(double factor, std::span<float> vector) {
  for (float& component : vector) {
    component = static_cast<float>(component * factor);
  }
}

}  // namespace

absl::string_view Name(ScoreKind kind) {
  switch (kind) {
    case ScoreKind::kDot:
      return "DOT";
    case ScoreKind::kScaledDot:
      return "SCALED_DOT";
    case ScoreKind::kCosine:
      return "COSINE";
    case ScoreKind::kBilinear:
      return "BILINEAR";
    case ScoreKind::kAdditive:
      return "ADDITIVE";
  }
  return "";
}

std::optional<ScoreKind> ScoreKindFromName(absl::string_view name) {
  for (const ScoreKind kind : kScoreKinds) {
    if (Name(kind) == name) return kind;
  }
  return std::nullopt;
}

absl::string_view Name(CombineKind kind) {
  switch (kind) {
    case CombineKind::kSum:
      return "SUM";
    case CombineKind::kSumOverSqrtCount:
      return "SUM_OVER_SQRT_COUNT";
    case CombineKind::kUnit:
      return "UNIT";
  }
  return "";
}

std::optional<CombineKind> CombineKindFromName(absl::string_view name) {
  for (const CombineKind kind : kCombineKinds) {
    if (Name(kind) == name) return kind;
  }
  return std::nullopt;
}

double LogitFactor(ScoreKind kind, std::int64_t dim, double temperature) {
  const double scale = kind == ScoreKind::kScaledDot
                           ? 1 / std::sqrt(static_cast<double>(dim))
                           : 1;
  return scale / temperature;
}

absl::Status ValidateTemperature(double temperature, absl::string_view field) {
  if (std::isfinite(temperature) && temperature > 0) return absl::OkStatus();
  return InvalidField(field, absl::StrCat(temperature),
                      "a finite number above 0");
}

absl::Status ValidateFinite(std::span<const float> vector,
                            absl::string_view field) {
  for (std::size_t i = 0; i < vector.size(); ++i) {
    if (!std::isfinite(vector[i])) {
      return InvalidField(absl::StrCat(field, "[", i, "]"),
                          absl::StrCat(vector[i]), "a finite number");
    }
  }
  return absl::OkStatus();
}

double Norm(std::span<const float> vector) {
  double sum = 0;
  for (const float component : vector) sum += double{component} * component;
  return std::sqrt(sum);
}

void Combine(CombineKind kind, std::int64_t example_count,
             std::span<float> sum) {
  switch (kind) {
    case CombineKind::kSum:
      return;
    case CombineKind::kSumOverSqrtCount:
      if (example_count > 0) {
        Multiply(1 / std::sqrt(static_cast<double>(example_count)), sum);
      }
      return;
    case CombineKind::kUnit:
      if (const double norm = Norm(sum); norm > 0) Multiply(1 / norm, sum);
      return;
  }
}

}  // namespace attendant
