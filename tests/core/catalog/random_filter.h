// Random filters, their meaning row by row, and their text.
#ifndef ATTENDANT_TESTS_CORE_CATALOG_RANDOM_FILTER_H_
#define ATTENDANT_TESTS_CORE_CATALOG_RANDOM_FILTER_H_

#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/catalog/filter/filter.h"

namespace attendant {

// One attribute of each type, and a second integer attribute that no row has.
inline CatalogSchema FilterSchema() {
  CatalogSchema schema;
  schema.key_fields.push_back({.name = "vec", .dim = 2});
  schema.attributes = {{"on_sale", AttributeType::kBool},
                       {"stock", AttributeType::kInt64},
                       {"price", AttributeType::kDouble},
                       {"color", AttributeType::kString},
                       {"tags", AttributeType::kStringList},
                       {"listed", AttributeType::kTimestamp},
                       {"unused", AttributeType::kInt64}};
  return schema;
}

// Values are few enough to collide often, and include the edges of their types.
class RandomFilters {
 public:
  explicit RandomFilters(std::uint64_t seed) : random_(seed) {}

  std::uint64_t Below(std::uint64_t n) { return random_() % n; }

  std::string Text() {
    static const char* const kTexts[] = {"",  "a", "b",       "ab", "abc",
                                         "B", "é", "\"'\\\n", "ba"};
    return kTexts[Below(9)];
  }

  AttributeValue Value(AttributeType type) {
    constexpr std::int64_t kPower = std::int64_t{1} << 53;
    static const std::int64_t kIntegers[] = {
        0, 1, -1, 2, kPower, kPower + 1, -kPower - 1, INT64_MAX, INT64_MIN};
    static const double kDoubles[] = {0.0,    -0.0,   1,     0.5,   -1,
                                      0x1p53, 0x1p63, -1e19, 1e300, -0x1p63};
    switch (type) {
      case AttributeType::kBool:
        return Below(2) == 0;
      case AttributeType::kInt64:
        return kIntegers[Below(9)];
      case AttributeType::kDouble:
        return kDoubles[Below(10)];
      case AttributeType::kString:
        return Text();
      case AttributeType::kTimestamp:
        return absl::FromUnixMicros(
            static_cast<std::int64_t>(Below(5)) * 999999 - 1000000);
      case AttributeType::kStringList:
        break;
    }
    std::vector<std::string> texts;
    for (std::uint64_t i = Below(4); i > 0; --i) texts.push_back(Text());
    return texts;
  }

  // Returns a value that an attribute of `type` can be compared with.
  AttributeValue Comparand(AttributeType type) {
    const bool is_number =
        type == AttributeType::kInt64 || type == AttributeType::kDouble;
    if (!is_number) return Value(type);
    return Value(Below(2) == 0 ? AttributeType::kInt64
                               : AttributeType::kDouble);
  }

  Filter Condition(const CatalogSchema& schema, bool with_lists) {
    while (true) {
      const AttributeSchema& attribute =
          schema.attributes[Below(schema.attributes.size())];
      const bool is_list = attribute.type == AttributeType::kStringList;
      const bool has_order = !is_list && attribute.type != AttributeType::kBool;
      switch (Below(4)) {
        case 0:
          return Filter::Exists(attribute.name);
        case 1:
          if (is_list && !with_lists) break;
          return Filter::Compare(
              attribute.name,
              static_cast<ComparisonKind>(1 + Below(has_order ? 6 : 2)),
              Comparand(attribute.type));
        case 2: {
          if (is_list && !with_lists) break;
          std::vector<AttributeValue> values;
          for (std::uint64_t i = 1 + Below(Below(4) == 0 ? 20 : 3); i > 0;
               --i) {
            values.push_back(Comparand(attribute.type));
          }
          return Filter::In(attribute.name, std::move(values));
        }
        default:
          if (!is_list && attribute.type != AttributeType::kString) break;
          return Filter::Contains(attribute.name, Text());
      }
    }
  }

  // Builds trees as the parser does: no list has a single element, and no list
  // directly contains a list of its own kind, which would be written without
  // parentheses.
  Filter Tree(const CatalogSchema& schema, int depth, bool with_lists) {
    if (depth == 0 || Below(4) == 0) return Condition(schema, with_lists);
    if (Below(4) == 0) {
      return Filter::Not(Tree(schema, depth - 1, with_lists));
    }
    std::vector<Filter> parts;
    for (std::uint64_t i = 2 + Below(3); i > 0; --i) {
      parts.push_back(Tree(schema, depth - 1, with_lists));
    }
    return Below(2) == 0 ? Filter::AllOf(std::move(parts))
                         : Filter::AnyOf(std::move(parts));
  }

 private:
  std::mt19937_64 random_;
};

// Returns the sign of a - b. Exact: long double holds every int64 and double
// here.
inline int CompareNumbers(const AttributeValue& a, const AttributeValue& b) {
  static_assert(std::numeric_limits<long double>::digits >= 64);
  const auto number = [](const AttributeValue& value) -> long double {
    if (const auto* integer = std::get_if<std::int64_t>(&value)) {
      return *integer;
    }
    return std::get<double>(value);
  };
  return number(a) < number(b) ? -1 : number(a) > number(b) ? 1 : 0;
}

inline int CompareValues(const AttributeValue& a, const AttributeValue& b) {
  if (TypeOf(a) == AttributeType::kInt64 ||
      TypeOf(a) == AttributeType::kDouble) {
    return CompareNumbers(a, b);
  }
  if (TypeOf(a) == AttributeType::kTimestamp) {
    // The item's time is truncated to its microsecond.
    const absl::Time of_a =
        absl::FromUnixMicros(absl::ToUnixMicros(std::get<absl::Time>(a)));
    const absl::Time of_b = std::get<absl::Time>(b);
    return of_a < of_b ? -1 : of_b < of_a ? 1 : 0;
  }
  return a < b ? -1 : b < a ? 1 : 0;
}

// Slow twin of EvaluateFilter: whether the filter is true of one item.
inline bool IsTrueOf(
    const Filter& filter, const CatalogSchema& schema,
    const std::vector<std::pair<int, AttributeValue>>& attributes) {
  const auto is_true = [&](const Filter& part) {
    return IsTrueOf(part, schema, attributes);
  };
  switch (filter.kind) {
    case FilterKind::kAllOf:
      return std::ranges::all_of(filter.filters, is_true);
    case FilterKind::kAnyOf:
      return std::ranges::any_of(filter.filters, is_true);
    case FilterKind::kNegation:
      return !is_true(filter.filters[0]);
    default:
      break;
  }
  const int wanted = schema.AttributeIndex(filter.attribute);
  const AttributeValue* value = nullptr;
  for (const auto& [attribute, of_item] : attributes) {
    if (attribute == wanted) value = &of_item;
  }
  if (value == nullptr) return false;
  if (filter.kind == FilterKind::kExists) return true;
  if (filter.kind == FilterKind::kContainment) {
    const auto& text = std::get<std::string>(filter.values[0]);
    if (const auto* whole = std::get_if<std::string>(value)) {
      return whole->find(text) != std::string::npos;
    }
    const auto& list = std::get<std::vector<std::string>>(*value);
    return std::ranges::find(list, text) != list.end();
  }
  if (filter.kind == FilterKind::kMembership) {
    return std::ranges::any_of(filter.values, [&](const AttributeValue& other) {
      return CompareValues(*value, other) == 0;
    });
  }
  const int order = CompareValues(*value, filter.values[0]);
  switch (filter.comparison) {
    case ComparisonKind::kEqual:
      return order == 0;
    case ComparisonKind::kNotEqual:
      return order != 0;
    case ComparisonKind::kLess:
      return order < 0;
    case ComparisonKind::kLessOrEqual:
      return order <= 0;
    case ComparisonKind::kGreater:
      return order > 0;
    case ComparisonKind::kGreaterOrEqual:
      return order >= 0;
  }
  return false;
}

inline std::string Written(const AttributeValue& value) {
  if (const auto* truth = std::get_if<bool>(&value)) {
    return *truth ? "true" : "false";
  }
  if (const auto* integer = std::get_if<std::int64_t>(&value)) {
    return absl::StrCat(*integer);
  }
  if (const auto* number = std::get_if<double>(&value)) {
    return absl::StrFormat("%.17e", *number);
  }
  if (const auto* time = std::get_if<absl::Time>(&value)) {
    // Not absl::RFC3339_full, which does not pad years to four digits.
    return absl::FormatTime("'%E4Y-%m-%d%ET%H:%M:%E*S%Ez'", *time,
                            absl::UTCTimeZone());
  }
  std::string written = "\"";
  for (const char c : std::get<std::string>(value)) {
    if (c == '"' || c == '\\') written += '\\';
    written += c == '\n' ? std::string("\\n") : std::string(1, c);
  }
  return written + '"';
}

// Returns the text that ParseFilter reads as `filter`, which must compare with
// no lists.
inline std::string Written(const Filter& filter) {
  const auto joined = [&](absl::string_view between) {
    std::string all;
    for (const Filter& part : filter.filters) {
      absl::StrAppend(&all, all.empty() ? "" : between, "(", Written(part),
                      ")");
    }
    return all;
  };
  switch (filter.kind) {
    case FilterKind::kAllOf:
      return joined(" AND ");
    case FilterKind::kAnyOf:
      return joined("OR");
    case FilterKind::kNegation:
      return absl::StrCat("NOT (", Written(filter.filters[0]), ")");
    case FilterKind::kExists:
      return absl::StrCat("EXISTS ", filter.attribute);
    case FilterKind::kContainment:
      return absl::StrCat(filter.attribute, " CONTAINS ",
                          Written(filter.values[0]));
    case FilterKind::kMembership: {
      std::string values;
      for (const AttributeValue& value : filter.values) {
        absl::StrAppend(&values, values.empty() ? "" : ",", Written(value));
      }
      return absl::StrCat(filter.attribute, " IN(", values, ")");
    }
    case FilterKind::kComparison:
      break;
  }
  static const char* const kSymbols[] = {"", "==", "!=", "<", "<=", ">", ">="};
  return absl::StrCat(filter.attribute,
                      kSymbols[static_cast<int>(filter.comparison)],
                      Written(filter.values[0]));
}

}  // namespace attendant

#endif  // ATTENDANT_TESTS_CORE_CATALOG_RANDOM_FILTER_H_
