// Status helpers that every layer shares: propagation macros and the one way
// to report a field of an input that is out of range.
#ifndef ATTENDANT_CORE_BASE_STATUS_H_
#define ATTENDANT_CORE_BASE_STATUS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace attendant {

// InvalidArgument "FIELD: got GOT, want WANT", with FIELD attached for machines
// (see FieldOf). `field` is the path of the field as the caller spells it, as
// in "query.vector.values[17]".
absl::Status InvalidField(absl::string_view field, absl::string_view got,
                          absl::string_view want);

// ResourceExhausted "FIELD: got GOT, want WANT" with FIELD attached and the
// reason kOverLimit: what is over a limit stays over it.
inline constexpr absl::string_view kOverLimit = "OVER_LIMIT";
absl::Status OverLimit(absl::string_view field, absl::string_view got,
                       absl::string_view want);

// The same reason: "there are COUNT WHAT, the most allowed; delete some first".
absl::Status MostThereMayBe(std::int64_t count, absl::string_view what);

// The reason of Unavailable where the operating system denies us files of our
// own: they lost their rights, or their file system became read-only.
inline constexpr absl::string_view kFilesNotAccessible = "FILES_NOT_ACCESSIBLE";

// A status of `code` "FIELD: got GOT, want WANT" with FIELD and `reason`
// attached: what is well-formed, but does not go with what is stored.
absl::Status FieldError(absl::StatusCode code, absl::string_view reason,
                        absl::string_view field, absl::string_view got,
                        absl::string_view want);

// OK if least <= count <= most; InvalidField if it is less, OverLimit if it is
// more. `unit` follows the numbers in the message, as in " bytes".
absl::Status CheckCount(std::int64_t count, std::int64_t least,
                        std::int64_t most, absl::string_view field,
                        absl::string_view unit = "");

// A status of `code` and `message` that carries `reason`, an UPPER_SNAKE_CASE
// constant of at most 63 characters, for machines (see ReasonOf).
absl::Status StatusWithReason(absl::StatusCode code, absl::string_view message,
                              absl::string_view reason);

// The field that InvalidField attached, or nothing.
std::optional<std::string> FieldOf(const absl::Status& status);

// What InvalidField, OverLimit and FieldError were given: `got` shortened, as
// the message has it. Nothing of another status.
struct GotAndWant {
  std::string got;
  std::string want;
};
std::optional<GotAndWant> GotAndWantOf(const absl::Status& status);

// The reason that StatusWithReason attached, or nothing.
std::optional<std::string> ReasonOf(const absl::Status& status);

// The same status with `prefix` put before its field and its message: the way
// to say where in a larger input a part went wrong, as in
// "items[3]." + "keys[text]".
absl::Status PrefixField(const absl::Status& status, absl::string_view prefix);

// The same status with `from`, which its message and field begin with, replaced
// by `to`; as it is if they don't: the way from our name of a part of an input
// to the caller's.
absl::Status ReplacePrefix(const absl::Status& status, absl::string_view from,
                           absl::string_view to);

}  // namespace attendant

#define ATTENDANT_CONCAT_INNER_(a, b) a##b
#define ATTENDANT_CONCAT_(a, b) ATTENDANT_CONCAT_INNER_(a, b)

// Returns from the enclosing function if the expression is not OK.
#define ATTENDANT_RETURN_IF_ERROR(expression)              \
  do {                                                     \
    absl::Status attendant_status_ = (expression);         \
    if (!attendant_status_.ok()) return attendant_status_; \
  } while (false)

// Assigns the value of a StatusOr, or returns its status.
#define ATTENDANT_ASSIGN_OR_RETURN(declaration, expression)                    \
  ATTENDANT_ASSIGN_OR_RETURN_IMPL_(ATTENDANT_CONCAT_(attendant_or_, __LINE__), \
                                   declaration, expression)
#define ATTENDANT_ASSIGN_OR_RETURN_IMPL_(result, declaration, expression) \
  auto result = (expression);                                             \
  if (!result.ok()) return std::move(result).status();                    \
  declaration = *std::move(result)

#endif  // ATTENDANT_CORE_BASE_STATUS_H_
