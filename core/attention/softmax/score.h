// Computes a logit from a query and a key.
//
// similarity = q . k (DOT, SCALED_DOT), q . k / (|q| |k|) (COSINE), q W k
// (BILINEAR) or v . tanh(W q + U k) (ADDITIVE), with W, U and v from a model;
// logit = similarity x scale / temperature + bias. The scale is 1 / sqrt(dim)
// for SCALED_DOT (Vaswani et al. 2017, sec. 3.2.1) and 1 otherwise.
#ifndef ATTENDANT_CORE_ATTENTION_SOFTMAX_SCORE_H_
#define ATTENDANT_CORE_ATTENTION_SOFTMAX_SCORE_H_

#include <cstdint>
#include <optional>
#include <span>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace attendant {

enum class ScoreKind {
  kDot = 1,
  kScaledDot = 2,
  kCosine = 3,
  kBilinear = 4,
  kAdditive = 5,
};
enum class ActivationKind { kSoftmax = 1, kSigmoid = 2, kNone = 3 };
enum class CombineKind { kSum = 1, kSumOverSqrtCount = 2, kUnit = 3 };

// Converts to "DOT", "SCALED_DOT", "COSINE", "BILINEAR" or "ADDITIVE", and
// back; nothing for an unknown name.
absl::string_view Name(ScoreKind kind);
std::optional<ScoreKind> ScoreKindFromName(absl::string_view name);
// Converts to "SUM", "SUM_OVER_SQRT_COUNT" or "UNIT", and back; nothing for an
// unknown name.
absl::string_view Name(CombineKind kind);
std::optional<CombineKind> CombineKindFromName(absl::string_view name);

// Returns scale / temperature. dim >= 1; temperature finite and > 0.
double LogitFactor(ScoreKind kind, std::int64_t dim, double temperature);

// OK if temperature is finite and > 0, else InvalidArgument naming `field`.
absl::Status ValidateTemperature(double temperature, absl::string_view field);

// Returns InvalidArgument with reason LOGIT_OVERFLOW: a logit of the query that
// `field` names is beyond floats.
absl::Status LogitOverflows(absl::string_view field);

bool AllFinite(std::span<const float> vector);

// OK if all components are finite, else InvalidArgument naming `field` and the
// first position that is not.
absl::Status ValidateFinite(std::span<const float> vector,
                            absl::string_view field);

// Returns the Euclidean norm, summed in doubles: no overflow for finite floats.
double Norm(std::span<const float> vector);

// Stores `vector` / its norm to `direction`, or zeros if the norm is 0.
// Products with it have the same order as products with `vector`, but stay
// finite for huge components. Reuses `direction`'s memory.
void DirectionOf(std::span<const float> vector, std::vector<float>& direction);

// The least norm of a key that is written under COSINE: the inverse of a
// smaller norm may be beyond a float, which would make the similarity 0.
inline constexpr double kMinCosineNorm = 1e-38;
// The greatest norm: products of a longer key with a query of norm 1 may
// overflow a float.
inline constexpr double kMaxCosineNorm = 1e38;

// Turns the sum of `example_count` weighted examples (repetitions counted) into
// a query, in place. kUnit leaves a zero sum unchanged.
void Combine(CombineKind kind, std::int64_t example_count,
             std::span<float> sum);

}  // namespace attendant

#endif  // ATTENDANT_CORE_ATTENTION_SOFTMAX_SCORE_H_
