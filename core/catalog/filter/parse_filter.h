// Parses filters written as text, in a syntax similar to AIP-160.
#ifndef ATTENDANT_CORE_CATALOG_FILTER_PARSE_FILTER_H_
#define ATTENDANT_CORE_CATALOG_FILTER_PARSE_FILTER_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/catalog/filter/filter.h"

namespace attendant {

inline constexpr std::int64_t kMaxFilterBytes = 16384;

// Parses a filter. Grammar, with optional white space between any two tokens:
//
//   filter     = choice { "AND" choice }
//   choice     = term { "OR" term }            OR binds tighter than AND
//   term       = [ "NOT" | "-" ] ( "(" filter ")" | condition )
//   condition  = NAME ( "=" | "==" | "!=" | "<" | "<=" | ">" | ">=" ) value
//              | NAME "IN" "(" value { "," value } ")"
//              | NAME ( "CONTAINS" | ":" ) text
//              | NAME ":" "*"  |  "EXISTS" NAME
//   value      = number | "true" | "false" | text
//
// A NAME is [a-z][a-z0-9_]*. A text is quoted with " or ', with the escapes \"
// \' \\ \n \r \t. A number is a 64-bit integer, or a double if it has a point
// or an exponent. A timestamp is a text in RFC 3339, as in
// "2026-01-31T12:00:00Z". Unlike in AIP-160, every condition has a NAME, every
// text is quoted, and texts have no wildcards.
//
// Errors name the field "filter" and the position of the error, counting bytes
// from 1. InvalidArgument: not of this grammar, an undeclared attribute, or a
// value of another type than its attribute's. ResourceExhausted: over 16 KiB,
// over 1,000 values of an IN, or nested deeper than 32.
absl::StatusOr<Filter> ParseFilter(absl::string_view text,
                                   const CatalogSchema& schema);

}  // namespace attendant

#endif  // ATTENDANT_CORE_CATALOG_FILTER_PARSE_FILTER_H_
