// Latent semantic indexing of item texts: computes keys for text queries.
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

// A text column of the items, with the weight of its terms: finite, > 0. Each
// text is normalised before it is weighted, so a long column does not dominate
// a short one; only the ratio of weights matters.
struct TextColumn {
  std::string name;
  double weight = 1;
  std::vector<std::string> texts;  // one per item
};

// The most bytes of a projection, terms x dim x 4: the encoder, with its terms,
// then fits into a request of 16 MiB.
inline constexpr std::int64_t kMaxProjectionBytes = 14 << 20;

struct TextLsiOptions {
  std::int64_t dim = 128;
  // The most terms kept. Terms in the most texts are kept, ties by term; fewer
  // if the projection would exceed kMaxProjectionBytes.
  std::int64_t max_term_count = 20000;
  std::function<void(absl::string_view)> progress;
};

struct TextLsiModel {
  TextEncoder encoder;
  // X V_k, [items, dim] row-major; an item without known terms has a zero row.
  std::vector<float> keys;
  std::vector<double> singular_values;
  // COSINE, with a temperature chosen on the texts themselves so that a query
  // of half of an item's words finds the item.
  AttentionDefaults defaults;
};

// InvalidArgument: no columns, columns of different lengths, no term at all, a
// text that is not UTF-8, or a weight or option out of range.
absl::StatusOr<TextLsiModel> FitTextLsi(const std::vector<TextColumn>& columns,
                                        const TextLsiOptions& options);

}  // namespace attendant

#endif  // ATTENDANT_CORE_ENCODE_TEXT_LSI_H_
