// Choosing how sharp attention should be: by the likelihood of known choices.
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

// A history, and the item chosen next.
struct Choice {
  std::vector<std::int32_t> history;    // rows of keys; masked from the choice
  std::vector<double> history_weights;  // empty: all 1; else one each
  std::vector<float> query;  // if not empty, used in place of the history's sum
  std::int32_t target = 0;   // row of keys, not in history
};

// What a fit suggests as a catalog's defaults.
struct AttentionDefaults {
  ScoreKind score_kind = ScoreKind::kDot;
  CombineKind combine_kind = CombineKind::kSum;
  double temperature = 1;
  // Mean of -log weight(target) in nats; absent if there was no choice.
  std::optional<double> negative_log_likelihood;
  // log(number of items): what a uniform guess would score.
  std::optional<double> uniform_negative_log_likelihood;
  std::int64_t choice_count = 0;
};

// What the search may vary; an unset part ranges over all of its kinds.
struct DefaultsSearch {
  std::optional<ScoreKind> score_kind;
  std::optional<CombineKind> combine_kind;
};

// The score kind, combine kind and temperature of least mean negative log
// likelihood of the targets under the softmax over all keys [n, dim] but the
// history, and of one more choice, made at random: of any item, by any of the
// queries. Where each target is the best item, so that ever smaller
// temperatures would be ever likelier, that leaves others about one share in
// the number of choices (Laplace's rule of succession; as label smoothing,
// Szegedy et al. 2016). Hundreds of choices outweigh it: it moves the
// temperature by less than chance does.
// SCALED_DOT is DOT at another temperature and is tried only if asked for.
// Temperature is found to 1 % by golden-section search over log temperature,
// bracketed by a grid; of equals, the higher. COSINE is left out of a search
// where a key or query has norm 0. InvalidArgument: no choices, a row out of
// range, a target in its history, a zero norm under COSINE if asked for, a
// number that is not finite or a similarity beyond 1e37.
absl::StatusOr<AttentionDefaults> FitDefaults(MatrixView keys,
                                              std::span<const Choice> choices,
                                              const DefaultsSearch& search);

}  // namespace attendant

#endif  // ATTENDANT_CORE_ENCODE_TEMPERATURE_H_
