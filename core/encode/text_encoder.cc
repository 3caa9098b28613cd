#include "core/encode/text_encoder.h"

#include <cmath>
#include <limits>
#include <span>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "core/attention/softmax/score.h"
#include "core/base/ids.h"
#include "core/base/status.h"
#include "core/encode/tf_idf.h"

namespace attendant {
namespace {

constexpr std::int64_t kMaxTextBytes = 16384;
// Field names on the wire.
constexpr absl::string_view kTextField = "text";
constexpr absl::string_view kProjectionField = "projection_float32_le";

absl::Status Validate(const TextEncoderParts& parts) {
  const std::size_t term_count = parts.terms.size();
  if (term_count == 0 ||
      term_count > std::numeric_limits<std::int32_t>::max()) {
    return InvalidField("terms", absl::StrCat(term_count, " terms"),
                        "1 to 2147483647");
  }
  for (std::size_t i = 0; i < term_count; ++i) {
    if (!parts.terms[i].empty()) continue;
    return InvalidField(absl::StrCat("terms[", i, "]"), "nothing", "a term");
  }
  if (parts.idf.size() != term_count) {
    return InvalidField("idf", absl::StrCat(parts.idf.size(), " values"),
                        absl::StrCat(term_count, ", one a term"));
  }
  for (std::size_t i = 0; i < term_count; ++i) {
    if (std::isfinite(parts.idf[i]) && parts.idf[i] >= 0) continue;
    return InvalidField(absl::StrCat("idf[", i, "]"),
                        absl::StrCat(parts.idf[i]), "finite and >= 0");
  }
  if (parts.dim < 1) {
    return InvalidField(kProjectionField,
                        absl::StrCat(parts.dim, " dimensions"), "at least 1");
  }
  const std::size_t size = parts.projection.size();
  const auto dim = static_cast<std::size_t>(parts.dim);
  if (size % dim != 0 || size / dim != term_count) {
    return InvalidField(kProjectionField, absl::StrCat(size, " values"),
                        absl::StrCat(term_count, " x ", dim));
  }
  return ValidateFinite(parts.projection, kProjectionField);
}

}  // namespace

absl::StatusOr<TextEncoder> TextEncoder::Create(TextEncoderParts parts) {
  ATTENDANT_RETURN_IF_ERROR(Validate(parts));
  TextEncoder encoder(std::move(parts));
  const TextEncoderParts& kept = encoder.parts_;
  encoder.positions_.reserve(kept.terms.size());
  for (std::size_t i = 0; i < kept.terms.size(); ++i) {
    const auto position = static_cast<std::int32_t>(i);
    if (encoder.positions_.emplace(kept.terms[i], position).second) continue;
    return InvalidField(absl::StrCat("terms[", i, "]"), "a term seen before",
                        "distinct terms");
  }
  return encoder;
}

TextEncoder::TextEncoder(TextEncoderParts parts) : parts_(std::move(parts)) {}

std::int64_t TextEncoder::memory_bytes() const {
  std::size_t bytes =
      (parts_.idf.size() + parts_.projection.size()) * sizeof(float);
  for (const std::string& term : parts_.terms) {
    // Most terms are short enough to be stored within the string object.
    bytes += 2 * (sizeof(term) + (term.capacity() > 15 ? term.capacity() : 0));
  }
  return static_cast<std::int64_t>(bytes + positions_.capacity() *
                                               (sizeof(std::int32_t) + 1));
}

absl::StatusOr<std::vector<std::pair<std::int32_t, double>>> TextEncoder::Weigh(
    absl::string_view text) const {
  ATTENDANT_ASSIGN_OR_RETURN(const std::vector<std::string> terms,
                             TermsOf(text));
  return WeighTerms(terms, positions_, parts_.idf);
}

absl::StatusOr<std::vector<float>> TextEncoder::Encode(
    absl::string_view text) const {
  ATTENDANT_RETURN_IF_ERROR(CheckCount(static_cast<std::int64_t>(text.size()),
                                       1, kMaxTextBytes, kTextField, " bytes"));
  if (!IsValidUtf8(text)) {
    return InvalidField(kTextField, "malformed text", "UTF-8");
  }
  ATTENDANT_ASSIGN_OR_RETURN(const TermWeights weights, Weigh(text));
  if (weights.empty()) {
    return InvalidField(kTextField, "no known term",
                        "a word that some item's text has, or one like it");
  }
  std::vector<float> query = FoldIn(weights, parts_.projection, parts_.dim);
  if (!ValidateFinite(query, kTextField).ok()) {
    return InvalidField(kTextField, "a text whose vector is infinite",
                        "a text encoder of a smaller projection");
  }
  return query;
}

}  // namespace attendant
