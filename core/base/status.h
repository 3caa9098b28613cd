// Status helpers for every layer: propagation macros, and uniform errors for
// fields of an input that are out of range.
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

// Returns InvalidArgument "FIELD: got GOT, want WANT" with FIELD attached for
// machines (see FieldOf). `field` is the field's path as the caller spells it,
// as in "query.vector.values[17]".
absl::Status InvalidField(absl::string_view field, absl::string_view got,
                          absl::string_view want);

// Returns ResourceExhausted "FIELD: got GOT, want WANT" with FIELD and the
// reason kOverLimit attached. The same input will always be over the limit.
inline constexpr absl::string_view kOverLimit = "OVER_LIMIT";
absl::Status OverLimit(absl::string_view field, absl::string_view got,
                       absl::string_view want);

// Returns the same code and reason with the message "there are COUNT WHAT, the
// most allowed; delete some first".
absl::Status MostThereMayBe(std::int64_t count, absl::string_view what);

// The reason of Unavailable if the operating system denies access to our own
// files: their permissions changed, or their file system became read-only.
inline constexpr absl::string_view kFilesNotAccessible = "FILES_NOT_ACCESSIBLE";

// Returns a status of `code` "FIELD: got GOT, want WANT" with FIELD and
// `reason` attached, for input that is well-formed but conflicts with what is
// stored.
absl::Status FieldError(absl::StatusCode code, absl::string_view reason,
                        absl::string_view field, absl::string_view got,
                        absl::string_view want);

// OK if least <= count <= most; InvalidField if `count` is less, OverLimit if
// it is more. `unit` follows the numbers in the message, as in " bytes".
absl::Status CheckCount(std::int64_t count, std::int64_t least,
                        std::int64_t most, absl::string_view field,
                        absl::string_view unit = "");

// Returns a status of `code` and `message` with `reason` attached for machines
// (see ReasonOf), an UPPER_SNAKE_CASE constant of at most 63 characters.
absl::Status StatusWithReason(absl::StatusCode code, absl::string_view message,
                              absl::string_view reason);

// Returns ResourceExhausted "out of memory" with the reason OUT_OF_MEMORY. Does
// not allocate.
absl::Status OutOfMemory();

// Returns the field attached by InvalidField, OverLimit or FieldError, or
// nothing.
std::optional<std::string> FieldOf(const absl::Status& status);

// Returns the `got` and `want` given to InvalidField, OverLimit or FieldError,
// with `got` shortened as in the message; nothing for another status.
struct GotAndWant {
  std::string got;
  std::string want;
};
std::optional<GotAndWant> GotAndWantOf(const absl::Status& status);

// Returns the reason attached to the status, or nothing.
std::optional<std::string> ReasonOf(const absl::Status& status);

// Attaches to `to` what is attached to `from`: field, reason and the like.
void CopyPayloads(const absl::Status& from, absl::Status& to);

// Returns `status` with another message. What is attached to it stays.
absl::Status WithMessage(const absl::Status& status, absl::string_view message);

// Returns `status` with `prefix` prepended to its field and its message. Tells
// where in a larger input a part is wrong, as in "items[3]." + "keys[text]".
absl::Status PrefixField(const absl::Status& status, absl::string_view prefix);

// Returns `status` with `from` replaced by `to` at the beginning of its message
// and field; unchanged if they don't begin with `from`. Translates our name for
// a part of an input to the caller's name.
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
