// A condition on an item's attributes that makes the item eligible.
#ifndef ATTENDANT_CORE_CATALOG_FILTER_FILTER_H_
#define ATTENDANT_CORE_CATALOG_FILTER_FILTER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "core/storage/records/item.h"

namespace attendant {

inline constexpr int kMaxFilterDepth = 32;
inline constexpr std::int64_t kMaxFilterValues = 1000;  // in one membership
// The number of filters in a filter tree, which bounds the cost of evaluation.
// A text of the maximum size cannot contain more.
inline constexpr std::int64_t kMaxFilterTerms = 8192;

// Numbered like the wire's fields.
enum class FilterKind {
  kComparison = 1,
  kMembership = 2,
  kContainment = 3,
  kExists = 4,
  kAllOf = 5,
  kAnyOf = 6,
  kNegation = 7,
};

enum class ComparisonKind {
  kEqual = 1,
  kNotEqual = 2,
  kLess = 3,
  kLessOrEqual = 4,
  kGreater = 5,
  kGreaterOrEqual = 6,
};

// A tree that is true or false for an item:
//
//    kComparison   the attribute compares with values[0] as stated
//    kMembership   the attribute equals one of values, at most 1,000
//    kContainment  values[0], a text, is an element of a list of texts, or a
//                  substring of a text (every text contains the empty text)
//    kExists       the item has the attribute
//    kAllOf        all of filters are true
//    kAnyOf        at least one of filters is true
//    kNegation     filters[0] is false
//
// For an item without the attribute, a comparison (even kNotEqual), a
// membership and a containment are false. Negation is plain logic: NOT a == 1
// is true for an item without a, but a != 1 is not. There are two truth values
// and no third.
//
// Integers and doubles compare exactly by value: 2^53 + 1 is above 2^53, though
// no double represents it. 0 equals -0. Texts are ordered by their bytes, which
// for UTF-8 is the order of code points; booleans and lists of texts have no
// order. Lists are equal if they have the same texts in the same order. An
// item's timestamp is a whole number of microseconds; a filter's timestamp may
// lie between two microseconds and then equals none.
struct Filter {
  FilterKind kind = FilterKind::kAllOf;
  std::string attribute;                               // the first four kinds
  ComparisonKind comparison = ComparisonKind::kEqual;  // kComparison
  std::vector<AttributeValue> values;                  // the first three kinds
  std::vector<Filter> filters;                         // the last three kinds

  bool operator==(const Filter&) const = default;

  static Filter Compare(absl::string_view attribute, ComparisonKind kind,
                        AttributeValue value);
  static Filter In(absl::string_view attribute,
                   std::vector<AttributeValue> values);
  static Filter Contains(absl::string_view attribute, absl::string_view text);
  static Filter Exists(absl::string_view attribute);
  static Filter AllOf(std::vector<Filter> filters);
  static Filter AnyOf(std::vector<Filter> filters);
  static Filter Not(Filter filter);
};

// OK if an attribute of `type` can be compared with `value` by `kind`: both
// have the same type or both are numbers; the value is finite; booleans and
// lists of texts only by kEqual and kNotEqual. Otherwise InvalidArgument naming
// `field`.
absl::Status ValidateComparison(AttributeType type, ComparisonKind kind,
                                const AttributeValue& value,
                                absl::string_view attribute,
                                absl::string_view field);

// Returns the depth of the tree: 1 for a single comparison.
int DepthOf(const Filter& filter);

// OK if the filter fits the schema. Otherwise InvalidArgument, naming a field
// of the wire's Filter under `field`, as in
// "filter_expression.all_of.filters[1] .comparison.value": an undeclared
// attribute, a value of another type or not finite, too few values or filters;
// or ResourceExhausted over one of the limits above. The filter may be of any
// depth.
absl::Status ValidateFilter(const Filter& filter, const CatalogSchema& schema,
                            absl::string_view field);

}  // namespace attendant

#endif  // ATTENDANT_CORE_CATALOG_FILTER_FILTER_H_
