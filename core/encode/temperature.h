// Chooses how sharp attention should be by the likelihood of known choices.
#ifndef ATTENDANT_CORE_ENCODE_TEMPERATURE_H_
#define ATTENDANT_CORE_ENCODE_TEMPERATURE_H_

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "core/attention/softmax/score.h"
#include "core/base/views.h"

namespace attendant {

// A history and the item that was chosen next.
struct Choice {
  std::vector<std::int32_t> history;    // rows of keys; masked from the choice
  std::vector<double> history_weights;  // empty: all 1; else one per row
  std::vector<float> query;  // if not empty, replaces the history's sum
  std::int32_t target = 0;   // row of keys, not in history
};

// The defaults that a fit suggests for a catalog.
struct AttentionDefaults {
  ScoreKind score_kind = ScoreKind::kDot;
  CombineKind combine_kind = CombineKind::kSum;
  double temperature = 1;
  // Mean of -log weight(target) in nats; unset if there was no choice.
  std::optional<double> negative_log_likelihood;
  // log(number of items), the score of a uniform guess.
  std::optional<double> uniform_negative_log_likelihood;
  std::int64_t choice_count = 0;
};

// Restricts the search; an unset member ranges over all of its kinds.
struct DefaultsSearch {
  std::optional<ScoreKind> score_kind;
  std::optional<CombineKind> combine_kind;
};

// Returns the score kind, combine kind and temperature with the least mean
// negative log likelihood of the targets. The likelihood is that of the softmax
// over all keys [n, dim] except the history. One more choice, made at random
// (any item, by any of the queries), is added: where each target is the best
// item, ever smaller temperatures would be ever likelier, and this choice
// leaves the other items about one share in the number of choices (Laplace's
// rule of succession; compare label smoothing, Szegedy et al. 2016). Hundreds
// of choices outweigh it: it moves the temperature by less than chance does.
//
// SCALED_DOT equals DOT at another temperature and is tried only if asked for.
// The temperature is found to 1 % by golden-section search over log
// temperature, bracketed by a grid; of equals, the higher. COSINE is left out
// of a search if a key or query has norm 0. InvalidArgument: no choices, a row
// out of range, a target in its history, a zero norm if COSINE is asked for, a
// number that is not finite, or a similarity beyond 1e37.
absl::StatusOr<AttentionDefaults> FitDefaults(MatrixView keys,
                                              std::span<const Choice> choices,
                                              const DefaultsSearch& search);

}  // namespace attendant

#endif  // ATTENDANT_CORE_ENCODE_TEMPERATURE_H_
