// The numbers that compare with another as asked, as a closed range of the
// type that a column holds: exact where integers meet doubles. Internal.
#ifndef ATTENDANT_CORE_CATALOG_FILTER_NUMBER_RANGE_H_
#define ATTENDANT_CORE_CATALOG_FILTER_NUMBER_RANGE_H_

#include <cstdint>
#include <optional>

#include "core/catalog/filter/filter.h"

namespace attendant {

// All from low to high; low <= high.
template <typename T>
struct NumberRange {
  T low;
  T high;
};

// The integers (or doubles) x with `x kind value`; nothing if there is none.
// kind is not kNotEqual, whose numbers are no range; value is an int64 or a
// finite double. Of integers also a moment, between whose microseconds since
// 1970 it may lie.
std::optional<NumberRange<std::int64_t>> IntegersThat(
    ComparisonKind kind, const AttributeValue& value);
std::optional<NumberRange<double>> DoublesThat(ComparisonKind kind,
                                               const AttributeValue& value);

}  // namespace attendant

#endif  // ATTENDANT_CORE_CATALOG_FILTER_NUMBER_RANGE_H_
