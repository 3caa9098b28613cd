#include "client/commands/shared/flags.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "client/flags/connection_flags.h"
#include "tests/support/status_matchers.h"

namespace attendant {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

TEST(ConnectionFlagsTest, AShellTakesThemAsTheyWereGiven) {
  ConnectionFlags flags;
  flags.server = "[::1]:7601";
  EXPECT_EQ(ShellFlags(flags), " --server [::1]:7601");
  flags.security.ca_path = "a b.pem";
  flags.token_path = "it's";
  EXPECT_EQ(ShellFlags(flags), R"( --server [::1]:7601 --ca 'a b.pem')"
                               R"( --auth-token-file 'it'\''s')");
}

TEST(FlagsTest, NamesGoBothWays) {
  EXPECT_EQ(FromFlag<v1::ScoreKind>("scaled_dot"), v1::SCORE_KIND_SCALED_DOT);
  EXPECT_EQ(FromFlag<v1::ScoreKind>("COSINE"), v1::SCORE_KIND_COSINE);
  EXPECT_EQ(FromFlag<v1::ScoreKind>("unspecified"), v1::SCORE_KIND_UNSPECIFIED);
  EXPECT_EQ(FromFlag<v1::ScoreKind>("euclid"), v1::SCORE_KIND_UNSPECIFIED);
  EXPECT_EQ(FlagOf(v1::SCORE_KIND_SCALED_DOT), "scaled_dot");
  EXPECT_EQ(FlagOf(v1::COMBINE_KIND_SUM_OVER_SQRT_COUNT),
            "sum_over_sqrt_count");
  EXPECT_EQ(FlagOf(v1::WEIGHT_SCOPE_UNSPECIFIED), "");
  EXPECT_EQ(FlagOf(static_cast<v1::WeightScope>(99)), "");
  EXPECT_EQ(FlagOf(v1::MODEL_KIND_MULTI_HEAD), "multi_head");
  EXPECT_EQ(FromFlag<v1::MassMethod>("bound"), v1::MASS_METHOD_BOUND);
  EXPECT_EQ(FlagOf(v1::MASS_METHOD_ESTIMATE), "estimate");
  EXPECT_EQ(FromFlag<v1::WeightScope>(""), v1::WEIGHT_SCOPE_UNSPECIFIED);
}

TEST(FlagsTest, ParsesKeyFields) {
  ASSERT_OK_AND_ASSIGN(const auto field, ParseKeyField("events:64:cosine"));
  EXPECT_EQ(field.name(), "events");
  EXPECT_EQ(field.dimension(), 64);
  EXPECT_EQ(field.score_kind(), v1::SCORE_KIND_COSINE);
  ASSERT_OK_AND_ASSIGN(const auto plain, ParseKeyField("image:512"));
  EXPECT_EQ(plain.score_kind(), v1::SCORE_KIND_UNSPECIFIED);
  for (const char* flag : {"", "a", "a:", ":3", "a:x", "a:0", "a:-1",
                           "a:2:", "a:2:l2", "a:2:dot:x", "a:99999999999"}) {
    EXPECT_THAT(ParseKeyField(flag), StatusIs(kInvalid, HasSubstr("want")))
        << flag;
  }
}

TEST(FlagsTest, ParsesAttributes) {
  ASSERT_OK_AND_ASSIGN(const auto field,
                       ParseAttributeField("tags:string_list"));
  EXPECT_EQ(field.name(), "tags");
  EXPECT_EQ(field.type(), v1::ATTRIBUTE_TYPE_STRING_LIST);
  EXPECT_THAT(ParseAttributeField("tags:text"),
              StatusIs(kInvalid, HasSubstr("bool, int64, double, string, "
                                           "string_list, timestamp")));
}

TEST(FlagsTest, IntegersBeyond64BitsAreRefused) {
  EXPECT_EQ(*ParseInteger("-9223372036854775808"), INT64_MIN);
  EXPECT_EQ(*ParseInteger("9223372036854775807"), INT64_MAX);
  for (const char* text : {"", "x", "1.5", "7x", "9223372036854775808",
                           "99999999999999999999", "-9223372036854775809"}) {
    EXPECT_THAT(ParseInteger(text),
                StatusIs(kInvalid, HasSubstr("an integer of 64 bits")))
        << text;
  }
}

TEST(FlagsTest, SplitsAnExampleAtItsLastEqualsSign) {
  ASSERT_OK_AND_ASSIGN(const auto plain, ParseExample("sku:85123A"));
  EXPECT_EQ(plain.id(), "sku:85123A");
  EXPECT_FALSE(plain.has_weight());
  ASSERT_OK_AND_ASSIGN(const auto weighted, ParseExample("a=b=-0.5"));
  EXPECT_EQ(weighted.id(), "a=b");
  EXPECT_EQ(weighted.weight(), -0.5);
  for (const char* flag : {"", "=1", "a=", "a=b", "a=nan", "a=inf"}) {
    EXPECT_THAT(ParseExample(flag), StatusIs(kInvalid, HasSubstr("want")))
        << flag;
  }
}

TEST(FlagsTest, ParsesAssignmentsAtTheFirstEqualsSign) {
  EXPECT_THAT(*ParseAssignment("image=a=b.npy"), Pair("image", "a=b.npy"));
  EXPECT_THAT(ParseAssignment("image"), StatusIs(kInvalid, HasSubstr("FIELD")));
}

TEST(FlagsTest, ParsesVectors) {
  EXPECT_THAT(*ParseVector("-0.5,1e2, 3"), ElementsAre(-0.5, 100, 3));
  for (const char* flag : {"0.5 -2", "[0.5,-2]", " [0.5, -2] ", "0.5\t -2"}) {
    EXPECT_THAT(*ParseVector(flag), ElementsAre(0.5, -2)) << flag;
  }
  EXPECT_THAT(*ParseVector("[3]"), ElementsAre(3));
  for (const char* flag : {"", " ", "[]", "[1", "[[1,2]]", "1 x", "[1 2"}) {
    EXPECT_THAT(ParseVector(flag),
                StatusIs(kInvalid, HasSubstr("a vector 0.1")))
        << flag;
  }
  EXPECT_THAT(ParseVector("1,nan"),
              StatusIs(kInvalid, HasSubstr("component 2")));
  EXPECT_THAT(ParseVector("1,,2"),
              StatusIs(kInvalid, HasSubstr("component 2")));
  EXPECT_THAT(ParseVector("1e39"),
              StatusIs(kInvalid, HasSubstr("32-bit float as component 1")));
}

TEST(FlagsTest, ParsesWeightedNames) {
  EXPECT_THAT(*ParseWeightedName("name"), Pair("name", 1));
  EXPECT_THAT(*ParseWeightedName("name:2.5"), Pair("name", 2.5));
  EXPECT_THAT(ParseWeightedName("name:0"),
              StatusIs(kInvalid, HasSubstr("> 0")));
}

}  // namespace
}  // namespace attendant
