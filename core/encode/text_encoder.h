// Encodes a text as a query: TF-IDF of words and character 3-grams, folded in
// by the right singular vectors (Deerwester et al. 1990, "folding-in"; Salton,
// Buckley 1988 for TF-IDF).
#ifndef ATTENDANT_CORE_ENCODE_TEXT_ENCODER_H_
#define ATTENDANT_CORE_ENCODE_TEXT_ENCODER_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace attendant {

// The parts of an encoder.
struct TextEncoderParts {
  std::vector<std::string> terms;  // distinct, not empty
  std::vector<float> idf;          // one per term, finite, >= 0
  std::int64_t dim = 0;
  std::vector<float> projection;  // [terms, dim], row-major, finite

  bool operator==(const TextEncoderParts&) const = default;
};

// Returns the terms of a text in order, with repetitions: its words (letters
// and digits), case-folded and NFKC-normalised, and the 3-grams of each word
// between boundary marks, written "#" + 3 characters, as in "#_al" of "alarm".
// InvalidArgument for malformed UTF-8.
absl::StatusOr<std::vector<std::string>> TermsOf(absl::string_view text);

// Immutable, hence thread-safe.
class TextEncoder {
 public:
  // InvalidArgument if the parts break a rule above, naming the field of the
  // wire's TextEncoder.
  static absl::StatusOr<TextEncoder> Create(TextEncoderParts parts);

  // Returns the sum over the text's known terms of weight x projection row, dim
  // finite floats, where the weights (1 + log(count)) x idf are normalised to
  // Euclidean norm 1. InvalidArgument if the text is empty or not UTF-8, if no
  // term is known (the message says so), or if the sum is infinite;
  // ResourceExhausted if it has more than 16,384 bytes.
  absl::StatusOr<std::vector<float>> Encode(absl::string_view text) const;

  // Returns the known terms of a text as (term position, TF-IDF weight), by
  // ascending position, normalised to Euclidean norm 1; empty if no term is
  // known.
  absl::StatusOr<std::vector<std::pair<std::int32_t, double>>> Weigh(
      absl::string_view text) const;

  const TextEncoderParts& parts() const { return parts_; }

  // Estimates the bytes held: the projection, and the terms twice.
  std::int64_t memory_bytes() const;

  // Converts to bytes for the store, and back; DataLoss if they are damaged.
  std::string Serialize() const;
  static absl::StatusOr<TextEncoder> Deserialize(absl::string_view bytes);

 private:
  explicit TextEncoder(TextEncoderParts parts);

  TextEncoderParts parts_;
  absl::flat_hash_map<std::string, std::int32_t> positions_;
};

}  // namespace attendant

#endif  // ATTENDANT_CORE_ENCODE_TEXT_ENCODER_H_
