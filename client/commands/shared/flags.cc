#include "client/commands/shared/flags.h"

#include <cmath>
#include <cstdint>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "client/api/batches.h"
#include "client/commands/shared/command.h"
#include "client/commands/shared/event_time.h"
#include "core/base/brief.h"
#include "core/base/status.h"
#include "core/storage/records/item.h"

namespace attendant {
namespace {

// Returns what the names of all values begin with: that of value 0 is the
// prefix and UNSPECIFIED.
std::string PrefixOf(const google::protobuf::EnumDescriptor& type) {
  return std::string(
      absl::StripSuffix(type.FindValueByNumber(0)->name(), "UNSPECIFIED"));
}

// Returns the names of all values, separated by commas.
std::string AllFlags(const google::protobuf::EnumDescriptor& type) {
  std::vector<std::string> names;
  for (int i = 0; i < type.value_count(); ++i) {
    const int number = type.value(i)->number();
    if (number != 0) names.push_back(FlagOfNumber(type, number));
  }
  return absl::StrJoin(names, ", ");
}

}  // namespace

int NumberFromFlag(const google::protobuf::EnumDescriptor& type,
                   absl::string_view flag) {
  const google::protobuf::EnumValueDescriptor* const value =
      type.FindValueByName(
          absl::StrCat(PrefixOf(type), absl::AsciiStrToUpper(flag)));
  return value == nullptr ? 0 : value->number();
}

std::string FlagOfNumber(const google::protobuf::EnumDescriptor& type,
                         int number) {
  const google::protobuf::EnumValueDescriptor* const value =
      type.FindValueByNumber(number);
  if (value == nullptr || number == 0) return "";
  return absl::AsciiStrToLower(
      absl::StripPrefix(value->name(), PrefixOf(type)));
}

absl::Status Malformed(absl::string_view flag, absl::string_view want) {
  return absl::InvalidArgumentError(
      absl::StrCat("got '", Brief(flag), "', want ", want));
}

absl::StatusOr<v1::KeyField> ParseKeyField(const std::string& flag) {
  const std::vector<std::string> parts = absl::StrSplit(flag, ':');
  v1::KeyField field;
  std::int32_t dim = 0;
  if (parts.size() < 2 || parts.size() > 3 || parts[0].empty() ||
      !absl::SimpleAtoi(parts[1], &dim) || dim < 1) {
    return Malformed(flag, "NAME:DIM or NAME:DIM:KIND, as in events:64:cosine");
  }
  field.set_name(parts[0]);
  field.set_dimension(dim);
  if (parts.size() == 3) {
    field.set_score_kind(FromFlag<v1::ScoreKind>(parts[2]));
    if (field.score_kind() == v1::SCORE_KIND_UNSPECIFIED) {
      return Malformed(flag,
                       absl::StrCat("a score kind among ",
                                    AllFlags(*v1::ScoreKind_descriptor())));
    }
  }
  return field;
}

absl::StatusOr<v1::AttributeField> ParseAttributeField(
    const std::string& flag) {
  const std::vector<std::string> parts = absl::StrSplit(flag, ':');
  if (parts.size() != 2 || parts[0].empty()) {
    return Malformed(flag, "NAME:TYPE, as in price:double");
  }
  v1::AttributeField field;
  field.set_name(parts[0]);
  field.set_type(FromFlag<v1::AttributeType>(parts[1]));
  if (field.type() == v1::ATTRIBUTE_TYPE_UNSPECIFIED) {
    return Malformed(flag,
                     absl::StrCat("a type among ",
                                  AllFlags(*v1::AttributeType_descriptor())));
  }
  return field;
}

absl::StatusOr<std::string> ParseFieldName(const std::string& flag) {
  ATTENDANT_RETURN_IF_ERROR(ValidateFieldName(flag, "name"));
  return flag;
}

absl::StatusOr<std::pair<std::string, std::string>> ParseAssignment(
    const std::string& flag) {
  const std::size_t split = flag.find('=');
  if (split == std::string::npos || split == 0 || split + 1 == flag.size()) {
    return Malformed(flag, "FIELD=...");
  }
  return std::make_pair(flag.substr(0, split), flag.substr(split + 1));
}

absl::StatusOr<v1::Example> ParseExample(const std::string& flag) {
  v1::Example example;
  const std::size_t split = flag.rfind('=');
  if (split == std::string::npos) {
    example.set_id(flag);
  } else {
    double weight = 0;
    if (!absl::SimpleAtod(flag.substr(split + 1), &weight) ||
        !std::isfinite(weight)) {
      return Malformed(flag,
                       "ID or ID=WEIGHT with a finite weight (an id that "
                       "contains '=' needs a weight)");
    }
    example.set_id(flag.substr(0, split));
    example.set_weight(weight);
  }
  if (example.id().empty()) return Malformed(flag, "an id that is not empty");
  return example;
}

absl::StatusOr<std::vector<float>> ParseVector(const std::string& flag) {
  absl::string_view list = absl::StripAsciiWhitespace(flag);
  if (absl::StartsWith(list, "[") && absl::EndsWith(list, "]")) {
    list = absl::StripAsciiWhitespace(list.substr(1, list.size() - 2));
  }
  std::vector<absl::string_view> parts = absl::StrSplit(list, ',');
  if (parts.size() == 1) {
    parts = absl::StrSplit(list, absl::ByAnyChar(" \t"), absl::SkipEmpty());
  }
  if (parts.empty()) return Malformed(flag, "a vector 0.1,0.2,...");
  std::vector<float> vector;
  for (const absl::string_view part : parts) {
    float component = 0;
    if (!absl::SimpleAtof(part, &component) || !std::isfinite(component)) {
      return Malformed(
          part, absl::StrCat("a finite 32-bit float as component ",
                             vector.size() + 1, " of a vector 0.1,0.2,..."));
    }
    vector.push_back(component);
  }
  return vector;
}

absl::StatusOr<std::int64_t> ParseInteger(const std::string& text) {
  std::int64_t number = 0;
  if (!absl::SimpleAtoi(text, &number)) {
    return Malformed(text, "an integer of 64 bits");
  }
  return number;
}

absl::StatusOr<double> ParsePositive(const std::string& text) {
  double number = 0;
  if (!absl::SimpleAtod(text, &number) || !std::isfinite(number) ||
      !(number > 0)) {
    return Malformed(text, "a finite number > 0");
  }
  return number;
}

absl::StatusOr<double> ParseShare(const std::string& text) {
  double share = 0;
  if (!absl::SimpleAtod(text, &share) || !(share > 0 && share <= 1)) {
    return Malformed(text, "a number in (0, 1]");
  }
  return share;
}

absl::StatusOr<std::pair<std::string, double>> ParseWeightedName(
    const std::string& flag) {
  const std::size_t split = flag.rfind(':');
  if (flag.empty() || split == 0) return Malformed(flag, "NAME or NAME:WEIGHT");
  if (split == std::string::npos) return std::make_pair(flag, 1.0);
  ATTENDANT_ASSIGN_OR_RETURN(const double weight,
                             ParsePositive(flag.substr(split + 1)));
  return std::make_pair(flag.substr(0, split), weight);
}

absl::StatusOr<v1::ModelReference> ParseModelReference(
    const std::string& flag) {
  v1::ModelReference reference;
  const std::size_t split = flag.find(':');
  reference.set_name(flag.substr(0, split));
  std::int64_t version = 0;
  if (split != std::string::npos) {
    if (!absl::SimpleAtoi(flag.substr(split + 1), &version) || version < 1) {
      return Malformed(flag, "NAME or NAME:VERSION with a version from 1");
    }
    reference.set_version(version);
  }
  if (reference.name().empty()) {
    return Malformed(flag, "NAME or NAME:VERSION");
  }
  return reference;
}

absl::StatusOr<google::protobuf::Timestamp> ParseTimeFlag(
    const std::string& flag) {
  const std::optional<absl::Time> time = ParseEventTime(flag);
  if (!time.has_value()) return Malformed(flag, kTimeWanted);
  return ToTimestamp(*time);
}

CLI::Option* AddRepeated(CLI::App& app, const std::string& name,
                         std::vector<std::string>& values,
                         const std::string& description) {
  // One value each time; with more the help would show "...".
  return app.add_option(name, values, description + "; may be repeated")
      ->expected(1)
      ->allow_extra_args(false)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

CLI::Option* AddFilterFlag(CLI::App& app, std::string& filter,
                           const std::string& description) {
  return app
      .add_option("--filter", filter,
                  description +
                      "; the syntax is that of `attend --filter`, and OR binds "
                      "closer than AND")
      ->type_name("FILTER");
}

CLI::Option* AddItemIds(CLI::App& command, std::vector<std::string>& ids) {
  const auto is_plain = [](const std::string& id) -> std::string {
    const bool in_brackets =
        !id.empty() && id.front() == '[' && id.back() == ']';
    return in_brackets ? "an id in square brackets" : "";
  };
  // CLI11 splits a value in brackets into several ids, so it is refused before.
  command.validate_positionals();
  return command
      .add_option("ID", ids,
                  absl::StrCat("Up to ", kMaxBatchSize,
                               " item ids. An id that is itself in square "
                               "brackets can't be given here"))
      ->expected(1, kMaxBatchSize)
      ->check(is_plain);
}

absl::Status NameItem(const absl::Status& status,
                      const std::vector<std::string>& ids) {
  absl::Status named = status;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    for (const absl::string_view list : {"items", "ids"}) {
      named = ReplacePrefix(named, absl::StrCat(list, "[", i, "]"),
                            absl::StrCat("item '", ids[i], "'"));
    }
  }
  return named;
}

void AddTokenFlag(CLI::App& app, std::string& token) {
  app.add_option("--state-token", token,
                 "Read a state that includes the write that returned this "
                 "token")
      ->type_name("TOKEN");
}

}  // namespace attendant
