// Converts enums between the wire and core. Both use the same numbers, which
// enum.cc checks.
#ifndef ATTENDANT_SERVICE_CONVERT_ENUM_H_
#define ATTENDANT_SERVICE_CONVERT_ENUM_H_

#include <google/protobuf/descriptor.h>
#include <google/protobuf/generated_enum_reflection.h>

#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace attendant {

// Returns InvalidArgument naming `field`, the number and the allowed names; the
// name for 0 is included only if `allow_unspecified`.
absl::Status UnknownEnumValue(const google::protobuf::EnumDescriptor& type,
                              int number, bool allow_unspecified,
                              absl::string_view field);

// Returns the value, or nothing for ..._UNSPECIFIED. InvalidArgument naming
// `field` if the enum does not define the number.
template <typename CoreEnum, typename WireEnum>
absl::StatusOr<std::optional<CoreEnum>> OptionalEnumFromProto(
    WireEnum value, absl::string_view field) {
  if (value == 0) return std::optional<CoreEnum>();
  const auto& type = *google::protobuf::GetEnumDescriptor<WireEnum>();
  if (type.FindValueByNumber(value) == nullptr) {
    return UnknownEnumValue(type, value, /*allow_unspecified=*/true, field);
  }
  return std::optional<CoreEnum>(static_cast<CoreEnum>(value));
}

// Like OptionalEnumFromProto, but a value is required.
template <typename CoreEnum, typename WireEnum>
absl::StatusOr<CoreEnum> RequiredEnumFromProto(WireEnum value,
                                               absl::string_view field) {
  const auto& type = *google::protobuf::GetEnumDescriptor<WireEnum>();
  if (value == 0 || type.FindValueByNumber(value) == nullptr) {
    return UnknownEnumValue(type, value, /*allow_unspecified=*/false, field);
  }
  return static_cast<CoreEnum>(value);
}

template <typename WireEnum, typename CoreEnum>
WireEnum EnumToProto(CoreEnum value) {
  return static_cast<WireEnum>(value);
}

}  // namespace attendant

#endif  // ATTENDANT_SERVICE_CONVERT_ENUM_H_
