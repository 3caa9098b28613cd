// Values of flags, as text and as messages.
#ifndef ATTENDANT_CLIENT_COMMANDS_SHARED_FLAGS_H_
#define ATTENDANT_CLIENT_COMMANDS_SHARED_FLAGS_H_

#include <google/protobuf/timestamp.pb.h>

#include <CLI/CLI.hpp>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "attendant/v1/attention_service.pb.h"
#include "attendant/v1/catalog_service.pb.h"
#include "attendant/v1/model_service.pb.h"

namespace attendant {

// Flags give these names in lower case; replies show them so as well.
// Unspecified, and empty, where there is no such name or value.
v1::ScoreKind ScoreKindFromFlag(const std::string& flag);
v1::CombineKind CombineKindFromFlag(const std::string& flag);
v1::IndexKind IndexKindFromFlag(const std::string& flag);
v1::WeightScope WeightScopeFromFlag(const std::string& flag);
v1::ActivationKind ActivationKindFromFlag(const std::string& flag);
v1::MassMethod MassMethodFromFlag(const std::string& flag);
v1::AttributeType AttributeTypeFromFlag(const std::string& flag);
std::string FlagOf(v1::ScoreKind kind);
std::string FlagOf(v1::CombineKind kind);
std::string FlagOf(v1::IndexKind kind);
std::string FlagOf(v1::WeightScope scope);
std::string FlagOf(v1::ActivationKind kind);
std::string FlagOf(v1::MassMethod method);
std::string FlagOf(v1::AttributeType type);

// InvalidArgument "got 'FLAG', want WANT": the flag's name is said before it.
absl::Status Malformed(absl::string_view flag, absl::string_view want);

// "NAME:DIM[:KIND]", as in "events:64:cosine".
absl::StatusOr<v1::KeyField> ParseKeyField(const std::string& flag);
// "NAME:TYPE", as in "price:double".
absl::StatusOr<v1::AttributeField> ParseAttributeField(const std::string& flag);
// The name of a key field or attribute, as a catalog takes it.
absl::StatusOr<std::string> ParseFieldName(const std::string& flag);
// "NAME=REST", split at the first '='. Neither is empty.
absl::StatusOr<std::pair<std::string, std::string>> ParseAssignment(
    const std::string& flag);
// "ID" or "ID=WEIGHT", split at the last '=', since ids may contain it.
absl::StatusOr<v1::Example> ParseExample(const std::string& flag);
// "0.1,0.2,...": finite 32-bit floats.
absl::StatusOr<std::vector<float>> ParseVector(const std::string& flag);
// Of 64 bits, with a sign; what is beyond them is refused, not clamped.
absl::StatusOr<std::int64_t> ParseInteger(const std::string& text);
// A finite number > 0.
absl::StatusOr<double> ParsePositive(const std::string& text);
// A number in (0, 1].
absl::StatusOr<double> ParseShare(const std::string& text);
// "NAME" or "NAME:WEIGHT" with a weight > 0, default 1.
absl::StatusOr<std::pair<std::string, double>> ParseWeightedName(
    const std::string& flag);

// "NAME" or "NAME:VERSION" with a version from 1.
absl::StatusOr<v1::ModelReference> ParseModelReference(const std::string& flag);

// A time as ParseEventTime has it.
absl::StatusOr<google::protobuf::Timestamp> ParseTimeFlag(
    const std::string& flag);

// A check of a flag: the parser's message where it refuses.
template <typename Parser>
std::function<std::string(const std::string&)> Accepts(Parser parser) {
  return [parser](const std::string& flag) {
    const auto parsed = parser(flag);
    return parsed.ok() ? std::string() : std::string(parsed.status().message());
  };
}

// A flag that may be given many times, each time with one value.
CLI::Option* AddRepeated(CLI::App& app, const std::string& name,
                         std::vector<std::string>& values,
                         const std::string& description);

// The ids of items, at least one.
CLI::Option* AddItemIds(CLI::App& command, std::vector<std::string>& ids);

// Of an error whose path begins with the place of an item in a request, as in
// "items[2].keys" or "ids[2]", the same with the item's id in its place.
absl::Status NameItem(const absl::Status& status,
                      const std::vector<std::string>& ids);

// The flag --state-token of a command that reads.
void AddTokenFlag(CLI::App& app, std::string& token);

}  // namespace attendant

#endif  // ATTENDANT_CLIENT_COMMANDS_SHARED_FLAGS_H_
