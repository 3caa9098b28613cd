#include "core/catalog/filter/filter.h"

#include <gmock/gmock.h>

#include <cmath>
#include <string>

#include "core/base/status.h"
#include "tests/core/catalog/random_filter.h"
#include "tests/support/status_matchers.h"

namespace attendant {
namespace {

using ::testing::HasSubstr;
using enum ComparisonKind;

absl::Status Validate(const Filter& filter) {
  return ValidateFilter(filter, FilterSchema(), "f");
}

void ExpectRefused(const Filter& filter, const std::string& field,
                   const std::string& got, const std::string& want,
                   absl::StatusCode code = absl::StatusCode::kInvalidArgument) {
  const absl::Status status = Validate(filter);
  EXPECT_EQ(status.code(), code);
  EXPECT_EQ(FieldOf(status), field);
  EXPECT_THAT(std::string(status.message()), HasSubstr(got));
  EXPECT_THAT(std::string(status.message()), HasSubstr(want));
}

TEST(FilterTest, AcceptsWhatFitsTheSchema) {
  RandomFilters random(3);
  for (int i = 0; i < 500; ++i) {
    EXPECT_OK(Validate(random.Tree(FilterSchema(), 4, /*with_lists=*/true)));
  }
}

TEST(FilterTest, NamesTheWireFieldGotAndWant) {
  const std::int64_t one = 1;
  ExpectRefused(Filter::Compare("size", kEqual, one), "f.comparison.attribute",
                "\"size\"", "schema declares");
  ExpectRefused(Filter::Exists(""), "f.exists", "\"\"", "schema declares");
  ExpectRefused(Filter::Compare("color", kEqual, one), "f.comparison.value",
                "an int64", "a string, as color");
  ExpectRefused(Filter::Compare("price", kEqual, std::string("1")),
                "f.comparison.value", "a string", "a number, as price");
  ExpectRefused(Filter::Compare("price", kLess, NAN), "f.comparison.value",
                "nan", "finite");
  ExpectRefused(Filter::Compare("stock", kLess, HUGE_VAL), "f.comparison.value",
                "inf", "finite");
  ExpectRefused(Filter::Compare("on_sale", kLess, true), "f.comparison.value",
                "an order", "EQUAL or NOT_EQUAL");
  ExpectRefused(
      Filter::Compare("tags", kGreater, std::vector<std::string>{"a"}),
      "f.comparison.value", "an order", "EQUAL or NOT_EQUAL");
  ExpectRefused(Filter::Compare("stock", ComparisonKind{0}, one),
                "f.comparison.kind", "unknown", "comparison");
  ExpectRefused(Filter::Contains("stock", "1"), "f.containment.attribute",
                "int64", "a string or a string list");
  ExpectRefused(Filter::In("stock", {}), "f.membership.values", "0", "1 to");
  ExpectRefused(Filter::In("stock", {one, std::string("x")}),
                "f.membership.values[1]", "string", "number");
  ExpectRefused(Filter::AllOf({}), "f.all_of.filters", "none", "at least one");
  ExpectRefused(
      Filter::AnyOf({Filter::Exists("stock"),
                     Filter::Not(Filter::AllOf({Filter::Exists("size")}))}),
      "f.any_of.filters[1].negation.all_of.filters[0].exists", "size",
      "schema declares");
  Filter unknown;
  unknown.kind = FilterKind{9};
  ExpectRefused(unknown, "f", "unknown kind", "a kind");
}

TEST(FilterTest, LimitsAreOverLimit) {
  constexpr auto kOver = absl::StatusCode::kResourceExhausted;
  Filter deep = Filter::Exists("stock");
  for (int depth = 2; depth <= 32; ++depth) deep = Filter::Not(deep);
  EXPECT_OK(Validate(deep));
  deep = Filter::AllOf({deep});
  EXPECT_EQ(Validate(deep).code(), kOver);
  EXPECT_THAT(std::string(Validate(deep).message()), HasSubstr("33 deep"));
  for (int depth = 0; depth < 1000; ++depth) deep = Filter::Not(deep);
  EXPECT_EQ(Validate(deep).code(), kOver);

  std::vector<AttributeValue> values(1000, std::int64_t{1});
  EXPECT_OK(Validate(Filter::In("stock", values)));
  values.push_back(std::int64_t{2});
  ExpectRefused(Filter::In("stock", values), "f.membership.values", "1001",
                "1000", kOver);

  std::vector<Filter> many(8191, Filter::Exists("stock"));
  EXPECT_OK(Validate(Filter::AllOf(many)));
  many.push_back(Filter::Exists("stock"));
  ExpectRefused(Filter::AllOf(many), "f.all_of.filters[8191]", "8193", "8192",
                kOver);
}

}  // namespace
}  // namespace attendant
