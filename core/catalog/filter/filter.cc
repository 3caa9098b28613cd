#include "core/catalog/filter/filter.h"

#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/status.h"

namespace attendant {
namespace {

bool IsNumber(AttributeType type) {
  return type == AttributeType::kInt64 || type == AttributeType::kDouble;
}

bool IsOrdering(ComparisonKind kind) {
  return kind != ComparisonKind::kEqual && kind != ComparisonKind::kNotEqual;
}

bool IsKnown(ComparisonKind kind) {
  return ComparisonKind::kEqual <= kind &&
         kind <= ComparisonKind::kGreaterOrEqual;
}

class Validator {
 public:
  explicit Validator(const CatalogSchema& schema) : schema_(schema) {}

  absl::Status Validate(const Filter& filter, const std::string& field,
                        int depth) {
    ATTENDANT_RETURN_IF_ERROR(
        CheckCount(depth, 1, kMaxFilterDepth, field, " deep"));
    ATTENDANT_RETURN_IF_ERROR(
        CheckCount(++term_count_, 1, kMaxFilterTerms, field, " filters"));
    switch (filter.kind) {
      case FilterKind::kComparison:
        return ValidateOne(filter, absl::StrCat(field, ".comparison"));
      case FilterKind::kMembership:
        return ValidateMembership(filter, absl::StrCat(field, ".membership"));
      case FilterKind::kContainment:
        return ValidateContainment(filter, absl::StrCat(field, ".containment"));
      case FilterKind::kExists:
        return TypeOfAttribute(filter, absl::StrCat(field, ".exists")).status();
      case FilterKind::kAllOf:
        return ValidateList(filter, absl::StrCat(field, ".all_of"), depth);
      case FilterKind::kAnyOf:
        return ValidateList(filter, absl::StrCat(field, ".any_of"), depth);
      case FilterKind::kNegation:
        ATTENDANT_RETURN_IF_ERROR(
            CheckOne(filter.filters.size(), absl::StrCat(field, ".negation")));
        return Validate(filter.filters[0], absl::StrCat(field, ".negation"),
                        depth + 1);
    }
    return InvalidField(field, "an unknown kind", "a kind of filter");
  }

 private:
  static absl::Status CheckOne(std::size_t count, absl::string_view field) {
    if (count == 1) return absl::OkStatus();
    return InvalidField(field, absl::StrCat(count), "1");
  }

  absl::StatusOr<AttributeType> TypeOfAttribute(const Filter& filter,
                                                absl::string_view field) const {
    const int attribute = schema_.AttributeIndex(filter.attribute);
    if (attribute >= 0) {
      return schema_.attributes[attribute].type;
    }
    return InvalidField(field, absl::StrCat("\"", filter.attribute, "\""),
                        "an attribute that the schema declares");
  }

  absl::Status ValidateOne(const Filter& filter,
                           const std::string& field) const {
    ATTENDANT_ASSIGN_OR_RETURN(
        const AttributeType type,
        TypeOfAttribute(filter, absl::StrCat(field, ".attribute")));
    if (!IsKnown(filter.comparison)) {
      return InvalidField(absl::StrCat(field, ".kind"), "an unknown kind",
                          "a kind of comparison");
    }
    ATTENDANT_RETURN_IF_ERROR(
        CheckOne(filter.values.size(), absl::StrCat(field, ".value")));
    return ValidateComparison(type, filter.comparison, filter.values[0],
                              filter.attribute, absl::StrCat(field, ".value"));
  }

  absl::Status ValidateMembership(const Filter& filter,
                                  const std::string& field) const {
    ATTENDANT_ASSIGN_OR_RETURN(
        const AttributeType type,
        TypeOfAttribute(filter, absl::StrCat(field, ".attribute")));
    ATTENDANT_RETURN_IF_ERROR(
        CheckCount(static_cast<std::int64_t>(filter.values.size()), 1,
                   kMaxFilterValues, absl::StrCat(field, ".values")));
    for (std::size_t i = 0; i < filter.values.size(); ++i) {
      ATTENDANT_RETURN_IF_ERROR(ValidateComparison(
          type, ComparisonKind::kEqual, filter.values[i], filter.attribute,
          absl::StrCat(field, ".values[", i, "]")));
    }
    return absl::OkStatus();
  }

  absl::Status ValidateContainment(const Filter& filter,
                                   const std::string& field) const {
    ATTENDANT_ASSIGN_OR_RETURN(
        const AttributeType type,
        TypeOfAttribute(filter, absl::StrCat(field, ".attribute")));
    if (type != AttributeType::kString && type != AttributeType::kStringList) {
      return InvalidField(
          absl::StrCat(field, ".attribute"),
          absl::StrCat("\"", filter.attribute, "\", ", WithArticle(type)),
          "a string or a string list");
    }
    ATTENDANT_RETURN_IF_ERROR(
        CheckOne(filter.values.size(), absl::StrCat(field, ".text")));
    return ValidateComparison(AttributeType::kString, ComparisonKind::kEqual,
                              filter.values[0], filter.attribute,
                              absl::StrCat(field, ".text"));
  }

  absl::Status ValidateList(const Filter& filter, const std::string& field,
                            int depth) {
    if (filter.filters.empty()) {
      return InvalidField(absl::StrCat(field, ".filters"), "none",
                          "at least one");
    }
    for (std::size_t i = 0; i < filter.filters.size(); ++i) {
      ATTENDANT_RETURN_IF_ERROR(
          Validate(filter.filters[i], absl::StrCat(field, ".filters[", i, "]"),
                   depth + 1));
    }
    return absl::OkStatus();
  }

  const CatalogSchema& schema_;
  std::int64_t term_count_ = 0;
};

}  // namespace

Filter Filter::Compare(absl::string_view attribute, ComparisonKind kind,
                       AttributeValue value) {
  Filter filter;
  filter.kind = FilterKind::kComparison;
  filter.attribute = std::string(attribute);
  filter.comparison = kind;
  filter.values.push_back(std::move(value));
  return filter;
}

Filter Filter::In(absl::string_view attribute,
                  std::vector<AttributeValue> values) {
  Filter filter;
  filter.kind = FilterKind::kMembership;
  filter.attribute = std::string(attribute);
  filter.values = std::move(values);
  return filter;
}

Filter Filter::Contains(absl::string_view attribute, absl::string_view text) {
  Filter filter;
  filter.kind = FilterKind::kContainment;
  filter.attribute = std::string(attribute);
  filter.values.emplace_back(std::string(text));
  return filter;
}

Filter Filter::Exists(absl::string_view attribute) {
  Filter filter;
  filter.kind = FilterKind::kExists;
  filter.attribute = std::string(attribute);
  return filter;
}

Filter Filter::AllOf(std::vector<Filter> filters) {
  Filter filter;
  filter.kind = FilterKind::kAllOf;
  filter.filters = std::move(filters);
  return filter;
}

Filter Filter::AnyOf(std::vector<Filter> filters) {
  Filter filter;
  filter.kind = FilterKind::kAnyOf;
  filter.filters = std::move(filters);
  return filter;
}

Filter Filter::Not(Filter negated) {
  Filter filter;
  filter.kind = FilterKind::kNegation;
  filter.filters.push_back(std::move(negated));
  return filter;
}

absl::Status ValidateComparison(AttributeType type, ComparisonKind kind,
                                const AttributeValue& value,
                                absl::string_view attribute,
                                absl::string_view field) {
  const AttributeType got = TypeOf(value);
  if (got != type && !(IsNumber(got) && IsNumber(type))) {
    return InvalidField(
        field, WithArticle(got),
        absl::StrCat(IsNumber(type) ? "a number" : WithArticle(type), ", as ",
                     attribute, " is ", WithArticle(type)));
  }
  if (const auto* number = std::get_if<double>(&value)) {
    if (!std::isfinite(*number)) {
      return InvalidField(field, absl::StrCat(*number), "a finite number");
    }
  }
  const bool has_order =
      type != AttributeType::kBool && type != AttributeType::kStringList;
  if (IsOrdering(kind) && !has_order) {
    return InvalidField(field, absl::StrCat("an order of ", attribute),
                        absl::StrCat("EQUAL or NOT_EQUAL, as ", attribute,
                                     " is ", WithArticle(type)));
  }
  return absl::OkStatus();
}

int DepthOf(const Filter& filter) {
  int most = 0;
  for (const Filter& part : filter.filters) {
    most = std::max(most, DepthOf(part));
  }
  return most + 1;
}

absl::Status ValidateFilter(const Filter& filter, const CatalogSchema& schema,
                            absl::string_view field) {
  return Validator(schema).Validate(filter, std::string(field), 1);
}

}  // namespace attendant
