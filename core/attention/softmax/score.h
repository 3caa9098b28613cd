// From a query and a key to a logit.
//
// similarity = q . k (DOT, SCALED_DOT), q . k / (|q| |k|) (COSINE), q W k
// (BILINEAR) or v . tanh(W q + U k) (ADDITIVE), W, U and v being a model's;
// logit = similarity x scale / temperature + bias, with scale 1 but for
// SCALED_DOT, which has 1 / sqrt(dim) (Vaswani et al. 2017, sec. 3.2.1).
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

// "DOT", "SCALED_DOT", "COSINE", "BILINEAR", "ADDITIVE"; and back, or nothing.
absl::string_view Name(ScoreKind kind);
std::optional<ScoreKind> ScoreKindFromName(absl::string_view name);
// "SUM", "SUM_OVER_SQRT_COUNT", "UNIT"; and back, or nothing.
absl::string_view Name(CombineKind kind);
std::optional<CombineKind> CombineKindFromName(absl::string_view name);

// scale / temperature. dim >= 1, temperature finite and > 0.
double LogitFactor(ScoreKind kind, std::int64_t dim, double temperature);

// OK if temperature is finite and > 0, else InvalidArgument naming `field`.
absl::Status ValidateTemperature(double temperature, absl::string_view field);

// InvalidArgument of reason LOGIT_OVERFLOW: a logit of the query that `field`
// names is beyond the floats.
absl::Status LogitOverflows(absl::string_view field);

bool AllFinite(std::span<const float> vector);

// OK if they are, else InvalidArgument naming `field` and the first position
// that is not.
absl::Status ValidateFinite(std::span<const float> vector,
                            absl::string_view field);

// The Euclidean norm, summed in doubles: no overflow for finite floats.
double Norm(std::span<const float> vector);

// `vector` / its norm, or zeros if that is 0: what has the order of its
// products, where those of huge components would not be finite. Reuses
// `direction`'s memory.
void DirectionOf(std::span<const float> vector, std::vector<float>& direction);

// The least norm of a key that is written under COSINE: the inverse of less may
// be beyond a float, and the similarity then 0.
inline constexpr double kMinCosineNorm = 1e-38;
// And the greatest: products of more with a query of norm 1 may not be floats.
inline constexpr double kMaxCosineNorm = 1e38;

// Turns the sum of `example_count` weighted examples (repetitions counted) into
// a query, in place. kUnit leaves a zero sum as it is.
void Combine(CombineKind kind, std::int64_t example_count,
             std::span<float> sum);

}  // namespace attendant

#endif  // ATTENDANT_CORE_ATTENTION_SOFTMAX_SCORE_H_
