// What the fits share.
#ifndef ATTENDANT_CLIENT_COMMANDS_FITS_FIT_H_
#define ATTENDANT_CLIENT_COMMANDS_FITS_FIT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "client/commands/fits/model_directory.h"
#include "client/commands/shared/command.h"
#include "core/encode/temperature.h"
#include "nlohmann/json.hpp"

namespace attendant {

// From fewer choices a temperature is not set: with so many its logarithm's
// standard error, one over the root of the sum of the logits' variances, is
// about a fifth where they vary by a nat.
inline constexpr std::int64_t kMinChoices = 20;

// A step of a fit, for the person who waits.
void NoteStep(absl::string_view step);

// "score cosine, combine unit, temperature 0.21; negative log likelihood ...".
std::string DescribeDefaults(const AttentionDefaults& defaults);
nlohmann::json DefaultsJson(const AttentionDefaults& defaults);

// Prints what files have in snake_case and lower case as servers reply: members
// in lowerCamelCase, kinds and types as SCORE_KIND_COSINE.
void PrintCamelCase(const nlohmann::ordered_json& json);

// Each with a line end.
std::string Lines(const std::vector<std::string>& lines);

// Says what was chosen and written.
void ReportFit(const std::string& directory, std::int64_t item_count,
               const Model& model, const AttentionDefaults& defaults,
               const Context& context);

}  // namespace attendant

#endif  // ATTENDANT_CLIENT_COMMANDS_FITS_FIT_H_
