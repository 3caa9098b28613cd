// Which items are eligible, said of their attributes.
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
inline constexpr std::int64_t kMaxFilterValues = 1000;  // of one membership
// Filters in a filter, which bounds what evaluating it takes: no text of the
// greatest size says more.
inline constexpr std::int64_t kMaxFilterTerms = 8192;

// In the order of the wire's fields.
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

// A tree that is true or false of an item:
//
//   kComparison   the attribute compares with values[0] as asked
//   kMembership   the attribute equals one of values, at most 1,000
//   kContainment  values[0], a text, is in the attribute: one of a list of
//                 texts, or a part of a text (every text has the empty part)
//   kExists       the item has the attribute
//   kAllOf        all of filters are true
//   kAnyOf        one of filters is true
//   kNegation     filters[0] is false
//
// Of an item without the attribute, a comparison (kNotEqual too), a membership
// and a containment are false. A negation is plain logic: NOT a == 1 is true of
// an item without a, a != 1 is not. So there are two values and no third.
//
// Integers and doubles compare as the numbers they are, exactly: 2^53 + 1 is
// above 2^53, though no double says so. 0 equals -0. Texts order by their
// bytes, which for UTF-8 is the order of code points; booleans and lists of
// texts have no order. Lists are equal if they have the same texts in the same
// order. An item's moment is the microsecond that it is in; that of a filter
// may lie between two, and then equals none.
struct Filter {
  FilterKind kind = FilterKind::kAllOf;
  std::string attribute;                               // the first four
  ComparisonKind comparison = ComparisonKind::kEqual;  // kComparison
  std::vector<AttributeValue> values;                  // the first three
  std::vector<Filter> filters;                         // the last three

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

// OK if an attribute of `type` can be compared as `kind` with the value: the
// same type, or both numbers; finite; booleans and lists of texts only by
// kEqual and kNotEqual. Else InvalidArgument naming `field`.
absl::Status ValidateComparison(AttributeType type, ComparisonKind kind,
                                const AttributeValue& value,
                                absl::string_view attribute,
                                absl::string_view field);

// A comparison alone is 1 deep.
int DepthOf(const Filter& filter);

// OK if the filter fits the schema. Else InvalidArgument naming a field of the
// wire's Filter under `field`, as in "filter_expression.all_of.filters[1]
// .comparison.value": an undeclared attribute, a value of another type, one
// that is not finite, too few values or filters; ResourceExhausted over one of
// the limits above. The filter may be of any depth.
absl::Status ValidateFilter(const Filter& filter, const CatalogSchema& schema,
                            absl::string_view field);

}  // namespace attendant

#endif  // ATTENDANT_CORE_CATALOG_FILTER_FILTER_H_
