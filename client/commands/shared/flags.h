// Converts values of flags between text and messages.
#ifndef ATTENDANT_CLIENT_COMMANDS_SHARED_FLAGS_H_
#define ATTENDANT_CLIENT_COMMANDS_SHARED_FLAGS_H_

#include <google/protobuf/descriptor.h>
#include <google/protobuf/generated_enum_reflection.h>
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

// As FromFlag and FlagOf, for numbers of the values of any wire enum.
int NumberFromFlag(const google::protobuf::EnumDescriptor& type,
                   absl::string_view flag);
std::string FlagOfNumber(const google::protobuf::EnumDescriptor& type,
                         int number);

// Converts between values of a wire enum and their names in flags and reports,
// which are in lower case without the enum's prefix. FromFlag returns
// UNSPECIFIED for an unknown name; FlagOf returns "" for UNSPECIFIED or an
// unknown value.
template <typename Enum>
Enum FromFlag(absl::string_view flag) {
  return static_cast<Enum>(
      NumberFromFlag(*google::protobuf::GetEnumDescriptor<Enum>(), flag));
}
template <typename Enum>
std::string FlagOf(Enum value) {
  return FlagOfNumber(*google::protobuf::GetEnumDescriptor<Enum>(), value);
}

// Returns InvalidArgument "got 'FLAG', want WANT". CLI11 puts the flag's name
// in front.
absl::Status Malformed(absl::string_view flag, absl::string_view want);

// Each parser below returns InvalidArgument for a text of another form.

// Parses "NAME:DIM[:KIND]", as in "events:64:cosine".
absl::StatusOr<v1::KeyField> ParseKeyField(const std::string& flag);
// Parses "NAME:TYPE", as in "price:double".
absl::StatusOr<v1::AttributeField> ParseAttributeField(const std::string& flag);
// Checks the name of a key field or attribute by a catalog's rules.
absl::StatusOr<std::string> ParseFieldName(const std::string& flag);
// Parses "NAME=REST", split at the first '='. Neither may be empty.
absl::StatusOr<std::pair<std::string, std::string>> ParseAssignment(
    const std::string& flag);
// Parses "ID" or "ID=WEIGHT", split at the last '=' since ids may contain one.
absl::StatusOr<v1::Example> ParseExample(const std::string& flag);
// Parses "0.1,0.2,...", finite 32-bit floats; also with spaces for the commas,
// and in square brackets as a JSON list.
absl::StatusOr<std::vector<float>> ParseVector(const std::string& flag);
// Parses a signed 64-bit integer. Larger numbers are refused, not clamped.
absl::StatusOr<std::int64_t> ParseInteger(const std::string& text);
// Parses a finite number > 0.
absl::StatusOr<double> ParsePositive(const std::string& text);
// Parses a number in (0, 1].
absl::StatusOr<double> ParseShare(const std::string& text);
// Parses "NAME" or "NAME:WEIGHT" with a weight > 0, default 1.
absl::StatusOr<std::pair<std::string, double>> ParseWeightedName(
    const std::string& flag);

// Parses "NAME" or "NAME:VERSION" with a version >= 1.
absl::StatusOr<v1::ModelReference> ParseModelReference(const std::string& flag);

// Parses a time by ParseEventTime.
absl::StatusOr<google::protobuf::Timestamp> ParseTimeFlag(
    const std::string& flag);

// Returns a check of a flag that reports the parser's error.
template <typename Parser>
std::function<std::string(const std::string&)> Accepts(Parser parser) {
  return [parser](const std::string& flag) {
    const auto parsed = parser(flag);
    return parsed.ok() ? std::string() : std::string(parsed.status().message());
  };
}

// Adds a flag that may be given many times, each time with one value.
CLI::Option* AddRepeated(CLI::App& app, const std::string& name,
                         std::vector<std::string>& values,
                         const std::string& description);

// Adds the positional argument ID..., 1 to kMaxBatchSize item ids.
CLI::Option* AddItemIds(CLI::App& command, std::vector<std::string>& ids);

// Returns `status` with the item's id in place of its position in the request,
// if its field begins with one: "item 'x'.keys" for "items[2].keys", likewise
// for "ids[2]".
absl::Status NameItem(const absl::Status& status,
                      const std::vector<std::string>& ids);

// Adds --filter to a command on items; `description` tells what becomes of
// those that match.
CLI::Option* AddFilterFlag(CLI::App& app, std::string& filter,
                           const std::string& description);

// Adds --state-token to a command that reads.
void AddTokenFlag(CLI::App& app, std::string& token);

}  // namespace attendant

#endif  // ATTENDANT_CLIENT_COMMANDS_SHARED_FLAGS_H_
