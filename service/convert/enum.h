// Enums of the wire to core's. Both number their values alike, which enum.cc
// holds them to.
#ifndef ATTENDANT_SERVICE_CONVERT_ENUM_H_
#define ATTENDANT_SERVICE_CONVERT_ENUM_H_

#include <google/protobuf/descriptor.h>
#include <google/protobuf/generated_enum_reflection.h>

#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace attendant {

// InvalidArgument naming `field`, the number and the names allowed; 0 is named
// only if `allow_unspecified`.
absl::Status UnknownEnumValue(const google::protobuf::EnumDescriptor& type,
                              int number, bool allow_unspecified,
                              absl::string_view field);

// The value, or nothing for ..._UNSPECIFIED. InvalidArgument, naming `field`,
// for a number that the enum does not define.
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

// The same where a value is required.
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
