// The closed range of numbers that satisfy a comparison, in the type of a
// column: exact even between integers and doubles. Internal.
#ifndef ATTENDANT_CORE_CATALOG_FILTER_NUMBER_RANGE_H_
#define ATTENDANT_CORE_CATALOG_FILTER_NUMBER_RANGE_H_

#include <cstdint>
#include <optional>

#include "core/catalog/filter/filter.h"

namespace attendant {

// All numbers from low to high; low <= high.
template <typename T>
struct NumberRange {
  T low;
  T high;
};

// Returns the integers (or doubles) x with `x kind value`, or nullopt if there
// are none. `kind` must not be kNotEqual, whose numbers are not a range.
// `value` is an int64 or a finite double. For integers it may also be a
// timestamp, which may lie between two microseconds since 1970.
std::optional<NumberRange<std::int64_t>> IntegersThat(
    ComparisonKind kind, const AttributeValue& value);
std::optional<NumberRange<double>> DoublesThat(ComparisonKind kind,
                                               const AttributeValue& value);

}  // namespace attendant

#endif  // ATTENDANT_CORE_CATALOG_FILTER_NUMBER_RANGE_H_
