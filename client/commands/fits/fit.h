// Functions that all fits share.
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

// The fewest choices from which a temperature is set. At this count the
// standard error of its logarithm (one over the root of the summed variances of
// the logits) is about a fifth if the logits vary by one nat.
inline constexpr std::int64_t kMinChoices = 20;

// Prints a step of a fit on standard error.
void NoteStep(absl::string_view step);

// "score cosine, combine unit, temperature 0.21; on 1,200 known choices, as
// good as a guess among 4,045 items rather than all 5,000".
std::string DescribeDefaults(const AttentionDefaults& defaults);
// Notes it if keys predict the choices hardly better than a uniform guess.
void NoteSmallGain(const AttentionDefaults& defaults);
nlohmann::json DefaultsJson(const AttentionDefaults& defaults);

// Prints a file's JSON in the spelling of server replies: snake_case members
// become lowerCamelCase, and kinds and types become as SCORE_KIND_COSINE.
void PrintCamelCase(const nlohmann::ordered_json& json);

// Joins the lines, each with a line end.
std::string Lines(const std::vector<std::string>& lines);

// Prints what a fit has chosen and written, with the reason if its keys have
// fewer dimensions than `wanted_dim`.
void ReportFit(const std::string& directory, std::int64_t item_count,
               std::int64_t wanted_dim, const Model& model,
               const AttentionDefaults& defaults, const Context& context);

}  // namespace attendant

#endif  // ATTENDANT_CLIENT_COMMANDS_FITS_FIT_H_
