#include "core/catalog/filter/number_range.h"

#include <cmath>
#include <limits>

#include "core/catalog/rows/attribute_columns.h"

namespace attendant {
namespace {

using Integers = std::optional<NumberRange<std::int64_t>>;
using Doubles = std::optional<NumberRange<double>>;

constexpr std::int64_t kLeast = std::numeric_limits<std::int64_t>::min();
constexpr std::int64_t kGreatest = std::numeric_limits<std::int64_t>::max();
constexpr double kInfinity = std::numeric_limits<double>::infinity();
// 2^63, the smallest double above every int64. -2^63 is the smallest int64.
constexpr double kAboveIntegers = 9223372036854775808.0;

// The neighbours of a number in another type: the greatest value not above it
// and the smallest not below it, each absent if there is none. They are equal
// if the other type contains the number itself.
template <typename T>
struct Neighbours {
  std::optional<T> below;
  std::optional<T> above;
};

Neighbours<std::int64_t> IntegersAround(double number) {
  Neighbours<std::int64_t> around;
  const double floor = std::floor(number);
  const double ceil = std::ceil(number);
  if (floor >= kAboveIntegers) {
    around.below = kGreatest;
  } else if (floor >= -kAboveIntegers) {
    around.below = static_cast<std::int64_t>(floor);
  }
  if (ceil < -kAboveIntegers) {
    around.above = kLeast;
  } else if (ceil < kAboveIntegers) {
    around.above = static_cast<std::int64_t>(ceil);
  }
  return around;
}

Neighbours<double> DoublesAround(std::int64_t number) {
  const auto nearest = static_cast<double>(number);
  const bool is_above =
      nearest >= kAboveIntegers || static_cast<std::int64_t>(nearest) > number;
  const bool is_below =
      !is_above && static_cast<std::int64_t>(nearest) < number;
  return {is_above ? std::nextafter(nearest, -kInfinity) : nearest,
          is_below ? std::nextafter(nearest, kInfinity) : nearest};
}

// Returns the microseconds around a timestamp that may lie between two.
Neighbours<std::int64_t> MicrosAround(absl::Time moment) {
  const std::int64_t floor = ToMicros(moment);
  const bool is_between =
      floor != kGreatest && absl::FromUnixMicros(floor) < moment;
  return {floor, is_between ? floor + 1 : floor};
}

std::optional<std::int64_t> Before(std::int64_t number) {
  if (number == kLeast) return std::nullopt;
  return number - 1;
}
std::optional<std::int64_t> After(std::int64_t number) {
  if (number == kGreatest) return std::nullopt;
  return number + 1;
}
std::optional<double> Before(double number) {
  return std::nextafter(number, -kInfinity);
}
std::optional<double> After(double number) {
  return std::nextafter(number, kInfinity);
}

template <typename T>
std::optional<NumberRange<T>> RangeThat(ComparisonKind kind,
                                        const Neighbours<T>& around, T least,
                                        T greatest) {
  const bool exact =
      around.below && around.above && *around.below == *around.above;
  std::optional<T> low = least;
  std::optional<T> high = greatest;
  switch (kind) {
    case ComparisonKind::kEqual:
      if (!exact) return std::nullopt;
      low = high = around.below;
      break;
    case ComparisonKind::kLess:
      high = exact ? Before(*around.below) : around.below;
      break;
    case ComparisonKind::kLessOrEqual:
      high = around.below;
      break;
    case ComparisonKind::kGreater:
      low = exact ? After(*around.above) : around.above;
      break;
    case ComparisonKind::kGreaterOrEqual:
      low = around.above;
      break;
    case ComparisonKind::kNotEqual:
      break;
  }
  if (!low || !high) return std::nullopt;
  return NumberRange<T>{*low, *high};
}

}  // namespace

Integers IntegersThat(ComparisonKind kind, const AttributeValue& value) {
  Neighbours<std::int64_t> around;
  if (const auto* integer = std::get_if<std::int64_t>(&value)) {
    around = {*integer, *integer};
  } else if (const auto* moment = std::get_if<absl::Time>(&value)) {
    around = MicrosAround(*moment);
  } else {
    around = IntegersAround(std::get<double>(value));
  }
  return RangeThat(kind, around, kLeast, kGreatest);
}

Doubles DoublesThat(ComparisonKind kind, const AttributeValue& value) {
  Neighbours<double> around;
  if (const auto* number = std::get_if<double>(&value)) {
    around = {*number, *number};
  } else {
    around = DoublesAround(std::get<std::int64_t>(value));
  }
  return RangeThat(kind, around, -kInfinity, kInfinity);
}

}  // namespace attendant
