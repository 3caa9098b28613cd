#include "core/catalog/filter/parse_filter.h"

#include <gmock/gmock.h>

#include <cmath>
#include <cstdint>
#include <string>

#include "core/base/status.h"
#include "tests/core/catalog/random_filter.h"
#include "tests/support/status_matchers.h"

namespace attendant {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using enum ComparisonKind;

constexpr std::uint64_t kSeed = 20240607;

absl::StatusOr<Filter> Parse(absl::string_view text) {
  return ParseFilter(text, FilterSchema());
}

Filter Parsed(absl::string_view text) {
  const auto filter = Parse(text);
  EXPECT_OK(filter) << text;
  return filter.ok() ? *filter : Filter();
}

Filter Stock(std::int64_t value) {
  return Filter::Compare("stock", kEqual, value);
}

// Expects the message to name the field and to contain all of `parts`.
void ExpectRefused(const std::string& text,
                   const std::vector<std::string>& parts,
                   absl::StatusCode code = absl::StatusCode::kInvalidArgument) {
  const absl::Status status = Parse(text).status();
  EXPECT_EQ(status.code(), code) << text;
  EXPECT_EQ(FieldOf(status), "filter") << text;
  for (const std::string& part : parts) {
    EXPECT_THAT(std::string(status.message()), HasSubstr(part)) << text;
  }
}

TEST(ParseFilterTest, ComparisonsOfEveryKindAndType) {
  const std::pair<const char*, ComparisonKind> kinds[] = {
      {"=", kEqual},          {"==", kEqual},       {"!=", kNotEqual},
      {"<", kLess},           {"<=", kLessOrEqual}, {">", kGreater},
      {">=", kGreaterOrEqual}};
  for (const auto& [symbol, kind] : kinds) {
    EXPECT_EQ(Parsed(absl::StrCat("stock", symbol, "7")),
              Filter::Compare("stock", kind, std::int64_t{7}));
  }
  EXPECT_EQ(Parsed("stock = -9223372036854775808"), Stock(INT64_MIN));
  EXPECT_EQ(Parsed("stock < 1.5"), Filter::Compare("stock", kLess, 1.5));
  EXPECT_EQ(Parsed("price > 3"),
            Filter::Compare("price", kGreater, std::int64_t{3}));
  EXPECT_EQ(Parsed("price=-6e-2"), Filter::Compare("price", kEqual, -0.06));
  EXPECT_EQ(Parsed("on_sale = true"), Filter::Compare("on_sale", kEqual, true));
  EXPECT_EQ(Parsed("on_sale != false"),
            Filter::Compare("on_sale", kNotEqual, false));
  EXPECT_EQ(
      Parsed("listed >= '1970-01-01T01:00:00.5+01:00'"),
      Filter::Compare("listed", kGreaterOrEqual, absl::FromUnixMillis(500)));
  EXPECT_EQ(Parsed("listed >= '1970-01-02'"),
            Filter::Compare("listed", kGreaterOrEqual,
                            absl::UnixEpoch() + absl::Hours(24)));
}

TEST(ParseFilterTest, TextsAreQuotedWithEscapes) {
  const auto color = [](std::string text) {
    return Filter::Compare("color", kEqual, std::move(text));
  };
  EXPECT_EQ(Parsed(R"(color = "red")"), color("red"));
  EXPECT_EQ(Parsed(R"(color = 'a "b" \'c\'')"), color("a \"b\" 'c'"));
  EXPECT_EQ(Parsed(R"(color = "\"\\\n\r\t'")"), color("\"\\\n\r\t'"));
  EXPECT_EQ(Parsed("color = \"\xc3\xa9 AND (\""), color("\xc3\xa9 AND ("));
  EXPECT_EQ(Parsed("color = ''"), color(""));
}

TEST(ParseFilterTest, MembershipContainmentAndExistence) {
  EXPECT_EQ(Parsed("stock IN (1, 2.5, -3)"),
            Filter::In("stock", {std::int64_t{1}, 2.5, std::int64_t{-3}}));
  EXPECT_EQ(Parsed("color IN('a')"), Filter::In("color", {std::string("a")}));
  EXPECT_EQ(Parsed("color CONTAINS 'a'"), Filter::Contains("color", "a"));
  EXPECT_EQ(Parsed("tags CONTAINS \"a\""), Filter::Contains("tags", "a"));
  EXPECT_EQ(Parsed("tags:'sale'"), Filter::Contains("tags", "sale"));
  EXPECT_EQ(Parsed("EXISTS stock"), Filter::Exists("stock"));
  EXPECT_EQ(Parsed("stock:*"), Filter::Exists("stock"));
  EXPECT_EQ(Parsed("tags : *"), Filter::Exists("tags"));
}

TEST(ParseFilterTest, OrBindsCloserThanAndAndNotCloserThanBoth) {
  EXPECT_EQ(
      Parsed("stock=1 AND stock=2 OR stock=3 AND stock=4"),
      Filter::AllOf({Stock(1), Filter::AnyOf({Stock(2), Stock(3)}), Stock(4)}));
  EXPECT_EQ(Parsed("(stock=1 AND stock=2) OR stock=3"),
            Filter::AnyOf({Filter::AllOf({Stock(1), Stock(2)}), Stock(3)}));
  EXPECT_EQ(Parsed("NOT stock=1 OR -stock=2"),
            Filter::AnyOf({Filter::Not(Stock(1)), Filter::Not(Stock(2))}));
  EXPECT_EQ(Parsed("-(stock=1 OR stock=-2)"),
            Filter::Not(Filter::AnyOf({Stock(1), Stock(-2)})));
  EXPECT_EQ(Parsed("((stock = 1))"), Stock(1));
  // The example in the comment of the wire format.
  EXPECT_EQ(
      Parsed(R"(price < 20 AND (color = "red" OR tags:"sale"))"),
      Filter::AllOf(
          {Filter::Compare("price", kLess, std::int64_t{20}),
           Filter::AnyOf({Filter::Compare("color", kEqual, std::string("red")),
                          Filter::Contains("tags", "sale")})}));
}

TEST(ParseFilterTest, ErrorsSayWhatWhereAndWhatIsWanted) {
  ExpectRefused("", {"the end at position 1", "an attribute"});
  ExpectRefused("   ", {"the end at position 4"});
  ExpectRefused("size = 1", {"size at position 1", "schema declares: "});
  ExpectRefused("EXISTS size", {"size at position 8", "schema declares"});
  ExpectRefused("stock", {"the end at position 6", "after an attribute"});
  ExpectRefused("stock ~ 1", {"~ at position 7", "IN or CONTAINS"});
  ExpectRefused("stock = ", {"the end at position 9", "a number"});
  ExpectRefused("stock = red", {"red at position 9", "between quotes"});
  ExpectRefused("stock = NaN", {"NaN at position 9", "a number"});
  ExpectRefused("price = inf", {"inf at position 9", "a number"});
  ExpectRefused("stock = 2x", {"2x at position 9", "a number"});
  ExpectRefused("price = 1.2.3", {"1.2.3 at position 9", "a number"});
  ExpectRefused("price = 1e999", {"1e999 at position 9", "a number"});
  ExpectRefused("stock = 9223372036854775808", {"position 9", "64 bits"});
  ExpectRefused("price = - x", {"x at position 11", "a number after -"});
  ExpectRefused("stock = 'a'", {"'a' at position 9", "stock, an int64,"});
  ExpectRefused("on_sale < true", {"true at position 11", "bool"});
  ExpectRefused("on_sale = 1", {"1 at position 11", "bool"});
  ExpectRefused("color = 1", {"1 at position 9", "string"});
  ExpectRefused("tags = 'a'", {"'a' at position 8", "CONTAINS"});
  ExpectRefused("stock CONTAINS 'a'", {"CONTAINS at position 7", "int64"});
  ExpectRefused("stock:1", {": at position 6", "int64"});
  ExpectRefused("color:red", {"red at position 7", "between quotes"});
  ExpectRefused("color = 'red", {"without end at position 9", "quote"});
  ExpectRefused("color = 'a\\x'", {"escape at position 11", "backslash"});
  ExpectRefused("stock IN 1", {"1 at position 10", "( after IN"});
  ExpectRefused("stock IN ()", {") at position 11", "a number"});
  ExpectRefused("stock IN (1,)", {") at position 13", "a number"});
  ExpectRefused("stock IN (1 2)", {"2 at position 13", ", or )"});
  ExpectRefused("(stock = 1", {"the end at position 11", "AND, OR or )"});
  ExpectRefused("stock = 1)", {") at position 10", "the end"});
  ExpectRefused("stock=1 stock=2", {"stock at position 9", "AND, OR"});
  ExpectRefused("stock=1 and stock=2",
                {"and at position 9", "AND, OR", "in upper case, as AND"});
  ExpectRefused("not stock=1", {"not at position 1", "in upper case, as NOT"});
  ExpectRefused("NOT NOT stock=1", {"NOT at position 5", "schema declares"});
  ExpectRefused("listed = 5", {"5 at position 10", "a moment"});
  for (const char* moment :
       {"'2026-01-32'", "'2026-1-31'", "' 2026-1-31'", "'2026-01-3 '",
        "'infinite-future'", "' 2026-01-31T12:00:00Z'",
        "'2026-01-31T12:00:00Z '", "'2026-02-31T12:00:00Z'", "''",
        "'0-01-01T00:00:00Z'", "'0000-12-31T23:59:59Z'",
        "'0001-01-01T00:00:00+00:01'", "'9999-12-31T23:59:59-00:01'",
        "'10000-01-01T00:00:00Z'"}) {
    ExpectRefused(absl::StrCat("listed > ", moment), {"position 10", "moment"});
  }
}

TEST(ParseFilterTest, LimitsAreOverLimit) {
  constexpr auto kOver = absl::StatusCode::kResourceExhausted;
  const auto nested = [](int count) {
    return std::string(static_cast<std::size_t>(count), '(') + "stock=1" +
           std::string(static_cast<std::size_t>(count), ')');
  };
  EXPECT_EQ(Parsed(nested(32)), Stock(1));
  ExpectRefused(nested(33), {"33 deep at position 33", "32"}, kOver);
  ExpectRefused(std::string(10000, '('), {"33 deep"}, kOver);
  // 16 choices within 15 conjunctions nest 32 deep, with their operands.
  const auto choices = [](int count) {
    std::string text = "stock=1 OR stock=2";
    for (int i = 1; i < count; ++i) {
      text = absl::StrCat("stock=1 OR (stock=2 AND (", text, "))");
    }
    return text;
  };
  EXPECT_OK(Parse(choices(16)));
  ExpectRefused(choices(17), {"33 deep"}, kOver);

  const auto values = [](int count) {
    std::string text = "stock IN (0";
    for (int i = 1; i < count; ++i) absl::StrAppend(&text, ",", i);
    return text + ")";
  };
  EXPECT_EQ(Parsed(values(1000)).values.size(), 1000U);
  ExpectRefused(values(1001), {"1001 values at position", "1000"}, kOver);

  const std::string blanks(16384 - 7, ' ');
  EXPECT_EQ(Parsed(blanks + "stock=1"), Stock(1));
  ExpectRefused(blanks + " stock=1", {"16385 bytes"}, kOver);
}

TEST(ParseFilterTest, ReadsWhatWasWritten) {
  const CatalogSchema schema = FilterSchema();
  RandomFilters random(kSeed);
  for (int i = 0; i < 3000; ++i) {
    const Filter filter = random.Tree(schema, 4, /*with_lists=*/false);
    const std::string text = Written(filter);
    ASSERT_OK_AND_ASSIGN(const Filter parsed, ParseFilter(text, schema));
    ASSERT_EQ(parsed, filter) << "seed " << kSeed << ": " << text;
    ASSERT_OK(ValidateFilter(parsed, schema, "filter"));
  }
}

// Expects an answer for any bytes: a valid filter, or an error that names the
// field.
void ExpectAnAnswer(const std::string& text, const CatalogSchema& schema) {
  const auto filter = ParseFilter(text, schema);
  if (filter.ok()) {
    ASSERT_OK(ValidateFilter(*filter, schema, "filter")) << text;
    ASSERT_OK_AND_ASSIGN(const Filter again,
                         ParseFilter(Written(*filter), schema));
    ASSERT_EQ(again, *filter) << text;
  } else {
    ASSERT_EQ(FieldOf(filter.status()), "filter") << text;
  }
}

TEST(ParseFilterTest, SurvivesRandomBytesAndMutations) {
  const CatalogSchema schema = FilterSchema();
  RandomFilters random(kSeed + 1);
  const std::string pieces[] = {"stock",
                                "price",
                                "color",
                                "tags",
                                "listed",
                                "on_sale",
                                "AND",
                                "OR",
                                "NOT",
                                "IN",
                                "(",
                                ")",
                                ",",
                                "=",
                                "!=",
                                "<",
                                "-",
                                ":",
                                "*",
                                "1",
                                "2.5",
                                "'a'",
                                "\"",
                                "\\",
                                " ",
                                "EXISTS",
                                "CONTAINS",
                                "true",
                                "'2026-01-31T12:00:00Z'"};
  for (int i = 0; i < 4000; ++i) {
    std::string bytes;
    for (std::uint64_t n = random.Below(60); n > 0; --n) {
      bytes.push_back(static_cast<char>(random.Below(256)));
    }
    ExpectAnAnswer(bytes, schema);
    std::string words;
    for (std::uint64_t n = random.Below(12); n > 0; --n) {
      absl::StrAppend(&words, pieces[random.Below(std::size(pieces))],
                      random.Below(2) == 0 ? " " : "");
    }
    ExpectAnAnswer(words, schema);
    std::string good = Written(random.Tree(schema, 3, /*with_lists=*/false));
    for (std::uint64_t n = 1 + random.Below(3); n > 0; --n) {
      const std::size_t at = random.Below(good.size());
      switch (random.Below(3)) {
        case 0:
          good[at] = static_cast<char>(random.Below(256));
          break;
        case 1:
          good.erase(at, 1 + random.Below(4));
          break;
        default:
          good.insert(at, pieces[random.Below(std::size(pieces))]);
      }
      if (good.empty()) good = " ";
    }
    ExpectAnAnswer(good, schema);
  }
}

}  // namespace
}  // namespace attendant
