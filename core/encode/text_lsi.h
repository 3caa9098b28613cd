// Latent semantic indexing of item texts: keys that text queries find.
#ifndef ATTENDANT_CORE_ENCODE_TEXT_LSI_H_
#define ATTENDANT_CORE_ENCODE_TEXT_LSI_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/encode/temperature.h"
#include "core/encode/text_encoder.h"

namespace attendant {

// One text column of the items, with the weight of its terms: finite, > 0. Each
// text is normalised before it is weighted, so a long column does not drown a
// short one; only the ratio of weights matters.
struct TextColumn {
  std::string name;
  double weight = 1;
  std::vector<std::string> texts;  // one an item
};

// The most bytes of a projection, terms x dim x 4: with its terms the encoder
// then fits a request of 16 MiB.
inline constexpr std::int64_t kMaxProjectionBytes = 14 << 20;

struct TextLsiOptions {
  std::int64_t dim = 128;
  // Terms kept: those in most texts, ties by term; fewer where the projection
  // would be larger than kMaxProjectionBytes.
  std::int64_t max_term_count = 20000;
  std::function<void(absl::string_view)> progress;
};

struct TextLsiModel {
  TextEncoder encoder;
  // X V_k, [items, dim] row-major; a zero row for an item without known terms.
  std::vector<float> keys;
  std::vector<double> singular_values;
  // COSINE, with a temperature chosen on the texts themselves: each item asked
  // for by half of its words should be found.
  AttentionDefaults defaults;
};

// InvalidArgument: no columns, columns of different lengths, no term at all, a
// text that is not UTF-8, a weight or an option out of range.
absl::StatusOr<TextLsiModel> FitTextLsi(const std::vector<TextColumn>& columns,
                                        const TextLsiOptions& options);

}  // namespace attendant

#endif  // ATTENDANT_CORE_ENCODE_TEXT_LSI_H_
