#include "client/commands/shared/flags.h"

#include <google/protobuf/descriptor.h>

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

// A value of a wire enum is named by the prefix and the flag in upper case.
template <typename Enum>
Enum FromFlag(absl::string_view prefix, const std::string& flag) {
  const google::protobuf::EnumValueDescriptor* value =
      google::protobuf::GetEnumDescriptor<Enum>()->FindValueByName(
          absl::StrCat(prefix, absl::AsciiStrToUpper(flag)));
  return value == nullptr ? Enum{} : static_cast<Enum>(value->number());
}

template <typename Enum>
std::string ToFlag(absl::string_view prefix, Enum value) {
  const google::protobuf::EnumValueDescriptor* descriptor =
      google::protobuf::GetEnumDescriptor<Enum>()->FindValueByNumber(value);
  if (descriptor == nullptr || value == Enum{}) return "";
  absl::string_view name = descriptor->name();
  absl::ConsumePrefix(&name, prefix);
  return absl::AsciiStrToLower(name);
}

template <typename Enum>
std::string AllFlags(absl::string_view prefix) {
  std::vector<std::string> names;
  const auto* descriptor = google::protobuf::GetEnumDescriptor<Enum>();
  for (int i = 0; i < descriptor->value_count(); ++i) {
    const auto value = static_cast<Enum>(descriptor->value(i)->number());
    if (value != Enum{}) names.push_back(ToFlag(prefix, value));
  }
  return absl::StrJoin(names, ", ");
}

constexpr absl::string_view kScore = "SCORE_KIND_";
constexpr absl::string_view kCombine = "COMBINE_KIND_";
constexpr absl::string_view kIndex = "INDEX_KIND_";
constexpr absl::string_view kScope = "WEIGHT_SCOPE_";
constexpr absl::string_view kActivation = "ACTIVATION_KIND_";
constexpr absl::string_view kMassMethod = "MASS_METHOD_";
constexpr absl::string_view kAttribute = "ATTRIBUTE_TYPE_";

}  // namespace

absl::Status Malformed(absl::string_view flag, absl::string_view want) {
  return absl::InvalidArgumentError(
      absl::StrCat("got '", Brief(flag), "', want ", want));
}

v1::ScoreKind ScoreKindFromFlag(const std::string& flag) {
  return FromFlag<v1::ScoreKind>(kScore, flag);
}
v1::CombineKind CombineKindFromFlag(const std::string& flag) {
  return FromFlag<v1::CombineKind>(kCombine, flag);
}
v1::IndexKind IndexKindFromFlag(const std::string& flag) {
  return FromFlag<v1::IndexKind>(kIndex, flag);
}
v1::WeightScope WeightScopeFromFlag(const std::string& flag) {
  return FromFlag<v1::WeightScope>(kScope, flag);
}
v1::ActivationKind ActivationKindFromFlag(const std::string& flag) {
  return FromFlag<v1::ActivationKind>(kActivation, flag);
}
v1::AttributeType AttributeTypeFromFlag(const std::string& flag) {
  return FromFlag<v1::AttributeType>(kAttribute, flag);
}
v1::MassMethod MassMethodFromFlag(const std::string& flag) {
  return FromFlag<v1::MassMethod>(kMassMethod, flag);
}
std::string FlagOf(v1::MassMethod method) {
  return ToFlag(kMassMethod, method);
}
std::string FlagOf(v1::ScoreKind kind) { return ToFlag(kScore, kind); }
std::string FlagOf(v1::CombineKind kind) { return ToFlag(kCombine, kind); }
std::string FlagOf(v1::IndexKind kind) { return ToFlag(kIndex, kind); }
std::string FlagOf(v1::WeightScope scope) { return ToFlag(kScope, scope); }
std::string FlagOf(v1::ActivationKind kind) {
  return ToFlag(kActivation, kind);
}
std::string FlagOf(v1::AttributeType type) { return ToFlag(kAttribute, type); }

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
    field.set_score_kind(ScoreKindFromFlag(parts[2]));
    if (field.score_kind() == v1::SCORE_KIND_UNSPECIFIED) {
      return Malformed(flag, absl::StrCat("a score kind among ",
                                          AllFlags<v1::ScoreKind>(kScore)));
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
  field.set_type(AttributeTypeFromFlag(parts[1]));
  if (field.type() == v1::ATTRIBUTE_TYPE_UNSPECIFIED) {
    return Malformed(
        flag,
        absl::StrCat("a type among ", AllFlags<v1::AttributeType>(kAttribute)));
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
  std::vector<float> vector;
  for (const absl::string_view part : absl::StrSplit(flag, ',')) {
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
