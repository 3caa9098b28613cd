#include "service/convert/filter.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/status.h"
#include "core/catalog/filter/parse_filter.h"
#include "service/convert/enum.h"
#include "service/convert/item.h"

namespace attendant {
namespace {

absl::StatusOr<Filter> ComparisonFromProto(const v1::Comparison& wire,
                                           const std::string& field) {
  ATTENDANT_ASSIGN_OR_RETURN(const auto kind,
                             RequiredEnumFromProto<ComparisonKind>(
                                 wire.kind(), absl::StrCat(field, ".kind")));
  absl::StatusOr<AttributeValue> value = AttributeFromProto(wire.value());
  if (!value.ok()) {
    return PrefixField(value.status(), absl::StrCat(field, ".value."));
  }
  return Filter::Compare(wire.attribute(), kind, *std::move(value));
}

absl::StatusOr<Filter> MembershipFromProto(const v1::Membership& wire,
                                           const std::string& field) {
  // Checked before anything is copied: a message can hold millions of values.
  ATTENDANT_RETURN_IF_ERROR(CheckCount(wire.values_size(), 1, kMaxFilterValues,
                                       absl::StrCat(field, ".values")));
  std::vector<AttributeValue> values;
  values.reserve(static_cast<std::size_t>(wire.values_size()));
  for (int i = 0; i < wire.values_size(); ++i) {
    absl::StatusOr<AttributeValue> value = AttributeFromProto(wire.values(i));
    if (!value.ok()) {
      return PrefixField(value.status(),
                         absl::StrCat(field, ".values[", i, "]."));
    }
    values.push_back(*std::move(value));
  }
  return Filter::In(wire.attribute(), std::move(values));
}

// Counts the filters it converts, since a message can hold millions.
class Converter {
 public:
  absl::StatusOr<Filter> Convert(const v1::Filter& wire,
                                 absl::string_view field) {
    ATTENDANT_RETURN_IF_ERROR(
        CheckCount(++term_count_, 1, kMaxFilterTerms, field, " filters"));
    switch (wire.kind_case()) {
      case v1::Filter::kComparison:
        return ComparisonFromProto(wire.comparison(),
                                   absl::StrCat(field, ".comparison"));
      case v1::Filter::kMembership:
        return MembershipFromProto(wire.membership(),
                                   absl::StrCat(field, ".membership"));
      case v1::Filter::kContainment:
        return Filter::Contains(wire.containment().attribute(),
                                wire.containment().text());
      case v1::Filter::kExists:
        return Filter::Exists(wire.exists());
      case v1::Filter::kAllOf: {
        ATTENDANT_ASSIGN_OR_RETURN(
            std::vector<Filter> filters,
            ConvertList(wire.all_of(), absl::StrCat(field, ".all_of")));
        return Filter::AllOf(std::move(filters));
      }
      case v1::Filter::kAnyOf: {
        ATTENDANT_ASSIGN_OR_RETURN(
            std::vector<Filter> filters,
            ConvertList(wire.any_of(), absl::StrCat(field, ".any_of")));
        return Filter::AnyOf(std::move(filters));
      }
      case v1::Filter::kNegation: {
        ATTENDANT_ASSIGN_OR_RETURN(
            Filter negated,
            Convert(wire.negation(), absl::StrCat(field, ".negation")));
        return Filter::Not(std::move(negated));
      }
      case v1::Filter::KIND_NOT_SET:
        break;
    }
    return InvalidField(field, "none",
                        "comparison, membership, containment, exists, all_of, "
                        "any_of or negation");
  }

 private:
  absl::StatusOr<std::vector<Filter>> ConvertList(const v1::FilterList& wire,
                                                  const std::string& field) {
    // Empty lists are rejected later, with other schema errors.
    ATTENDANT_RETURN_IF_ERROR(CheckCount(std::max(1, wire.filters_size()), 1,
                                         kMaxFilterTerms,
                                         absl::StrCat(field, ".filters")));
    std::vector<Filter> filters;
    filters.reserve(static_cast<std::size_t>(wire.filters_size()));
    for (int i = 0; i < wire.filters_size(); ++i) {
      ATTENDANT_ASSIGN_OR_RETURN(
          Filter filter,
          Convert(wire.filters(i), absl::StrCat(field, ".filters[", i, "]")));
      filters.push_back(std::move(filter));
    }
    return filters;
  }

  std::int64_t term_count_ = 0;
};

}  // namespace

absl::StatusOr<Filter> FilterFromProto(const v1::Filter& wire,
                                       absl::string_view field) {
  return Converter().Convert(wire, field);
}

absl::StatusOr<std::optional<Filter>> FilterFrom(const std::string& text,
                                                 const v1::Filter* expression,
                                                 const CatalogSchema& schema,
                                                 int max_depth) {
  std::optional<Filter> filter;
  if (!text.empty() && expression != nullptr) {
    return InvalidField("filter", "filter and filter_expression",
                        "only one of them");
  }
  if (!text.empty()) {
    ATTENDANT_ASSIGN_OR_RETURN(filter, ParseFilter(text, schema));
  } else if (expression != nullptr) {
    ATTENDANT_ASSIGN_OR_RETURN(
        filter, FilterFromProto(*expression, "filter_expression"));
  }
  if (filter) {
    ATTENDANT_RETURN_IF_ERROR(CheckCount(
        DepthOf(*filter), 1, max_depth,
        expression == nullptr ? "filter" : "filter_expression", " deep"));
  }
  return filter;
}

}  // namespace attendant
