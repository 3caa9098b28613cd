#include "core/attention/softmax/score.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "core/base/number_text.h"
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
  return InvalidField(field, NumberText(temperature),
                      "a finite number above 0");
}

absl::Status LogitOverflows(absl::string_view field) {
  return FieldError(absl::StatusCode::kInvalidArgument, "LOGIT_OVERFLOW", field,
                    "a logit that overflows",
                    "a query of a lower norm, or a higher temperature");
}

// Without branches, so that several components are tested at once.
bool AllFinite(std::span<const float> vector) {
  constexpr std::uint32_t kExponent = 0x7f800000;  // all set: not finite
  std::uint32_t others = 0;
  for (const float component : vector) {
    const auto bits = std::bit_cast<std::uint32_t>(component);
    others |= (bits & kExponent) == kExponent ? 1 : 0;
  }
  return others == 0;
}

absl::Status ValidateFinite(std::span<const float> vector,
                            absl::string_view field) {
  if (AllFinite(vector)) return absl::OkStatus();
  for (std::size_t i = 0; i < vector.size(); ++i) {
    if (!std::isfinite(vector[i])) {
      return InvalidField(absl::StrCat(field, "[", i, "]"),
                          absl::StrCat(vector[i]), "a finite number");
    }
  }
  return absl::OkStatus();
}

double Norm(std::span<const float> vector) {
  // Four sums, as one sum would wait for each addition.
  double sums[4] = {};
  std::size_t d = 0;
  for (; d + 4 <= vector.size(); d += 4) {
    for (std::size_t j = 0; j < 4; ++j) {
      sums[j] += double{vector[d + j]} * vector[d + j];
    }
  }
  for (; d < vector.size(); ++d) sums[0] += double{vector[d]} * vector[d];
  return std::sqrt((sums[0] + sums[1]) + (sums[2] + sums[3]));
}

void DirectionOf(std::span<const float> vector, std::vector<float>& direction) {
  const double norm = Norm(vector);
  const double factor = norm > 0 ? 1 / norm : 0;
  direction.resize(vector.size());
  std::transform(vector.begin(), vector.end(), direction.begin(),
                 [factor](float component) {
                   return static_cast<float>(component * factor);
                 });
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
