// Filters over the wire, as text and as a message: a test for each polarity of
// a mask, and every error.
#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "tests/service/rpc_details.h"
#include "tests/service/server_fixture.h"
#include "tests/support/parse_proto.h"

namespace attendant {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

// In the shop, a has price 1.5 and name "Anna", b has price 2.5, and c has
// neither.
class FilterServiceTest : public ServerFixture {
 protected:
  void SetUp() override {
    ServerFixture::SetUp();
    CreateShop();
  }

  static v1::AttendRequest Request(const std::string& fields) {
    v1::AttendRequest request;
    EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(
        absl::StrCat(
            "catalog: 'shop' query { vector { floats { values: [1, 0] } } } ",
            fields),
        &request));
    return request;
  }

  // Returns the ids of the answer.
  std::vector<std::string> Ask(const v1::AttendRequest& request) {
    v1::AttendResponse response;
    const grpc::Status status = Attend(request, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    EXPECT_EQ(response.stats().eligible_count(), response.items_size());
    std::vector<std::string> ids;
    for (const v1::AttendedItem& item : response.items()) {
      ids.push_back(item.id());
    }
    return ids;
  }
  std::vector<std::string> AskFiltered(const std::string& filter) {
    v1::AttendRequest request = Request("");
    request.set_filter(filter);
    return Ask(request);
  }

  void ExpectRefused(const v1::AttendRequest& request, grpc::StatusCode code,
                     const std::string& field, const std::string& message) {
    const grpc::Status status = Attend(request);
    EXPECT_EQ(status.error_code(), code) << status.error_message();
    EXPECT_EQ(FieldIn(DetailsOf(status)), field) << status.error_message();
    EXPECT_THAT(status.error_message(), HasSubstr(message));
  }
  void ExpectInvalid(const std::string& fields, const std::string& field,
                     const std::string& message) {
    ExpectRefused(Request(fields), grpc::StatusCode::INVALID_ARGUMENT, field,
                  message);
  }
};

TEST_F(FilterServiceTest, TextLetsPassWhatItIsTrueOf) {
  EXPECT_THAT(AskFiltered("price < 2"), UnorderedElementsAre("a"));
  EXPECT_THAT(AskFiltered("price >= 2"), UnorderedElementsAre("b"));
  EXPECT_THAT(AskFiltered("name : \"nn\""), UnorderedElementsAre("a"));
  EXPECT_THAT(AskFiltered("price IN (2.5, 9)"), UnorderedElementsAre("b"));
  EXPECT_THAT(AskFiltered("EXISTS price"), UnorderedElementsAre("a", "b"));
  EXPECT_THAT(AskFiltered("price > 9"), IsEmpty());
}

TEST_F(FilterServiceTest, NotLetsPassWhatTheFilterDoesNot) {
  EXPECT_THAT(AskFiltered("NOT price < 2"), UnorderedElementsAre("b", "c"));
  EXPECT_THAT(AskFiltered("price != 1.5"), UnorderedElementsAre("b"));
  EXPECT_THAT(AskFiltered("-price:*"), UnorderedElementsAre("c"));
}

TEST_F(FilterServiceTest, AllowListsLetPassAndDenyListsDoNot) {
  EXPECT_THAT(Ask(Request("allow_list { ids: ['a', 'c'] }")),
              UnorderedElementsAre("a", "c"));
  EXPECT_THAT(Ask(Request("allow_list {}")), IsEmpty());
  EXPECT_THAT(Ask(Request("deny_list { ids: ['a', 'c'] }")),
              UnorderedElementsAre("b"));
  EXPECT_THAT(Ask(Request("deny_list {}")),
              UnorderedElementsAre("a", "b", "c"));
}

TEST_F(FilterServiceTest, MasksActTogether) {
  EXPECT_THAT(Ask(Request("allow_list { ids: ['a', 'b'] } "
                          "filter: 'NOT name = \"Anna\"'")),
              UnorderedElementsAre("b"));
  EXPECT_THAT(Ask(Request("deny_list { ids: ['a'] } filter: 'price > 0'")),
              UnorderedElementsAre("b"));
  EXPECT_THAT(Ask(Request("allow_list { ids: ['a'] } filter: 'price > 2'")),
              IsEmpty());
}

TEST_F(FilterServiceTest, AMessageSaysTheSameAsText) {
  const auto ask = [&](const std::string& filter) {
    return Ask(Request(absl::StrCat("filter_expression { ", filter, " }")));
  };
  EXPECT_THAT(ask("comparison { attribute: 'price' "
                  "kind: COMPARISON_KIND_LESS value { int64_value: 2 } }"),
              UnorderedElementsAre("a"));
  EXPECT_THAT(ask("membership { attribute: 'name' "
                  "values { string_value: 'Anna' } }"),
              UnorderedElementsAre("a"));
  EXPECT_THAT(ask("containment { attribute: 'name' text: 'Ann' }"),
              UnorderedElementsAre("a"));
  EXPECT_THAT(ask("exists: 'price'"), UnorderedElementsAre("a", "b"));
  EXPECT_THAT(ask("negation { exists: 'price' }"), UnorderedElementsAre("c"));
  EXPECT_THAT(ask("all_of { filters { exists: 'price' } "
                  "filters { negation { exists: 'name' } } }"),
              UnorderedElementsAre("b"));
  EXPECT_THAT(ask("any_of { filters { exists: 'name' } "
                  "filters { negation { exists: 'price' } } }"),
              UnorderedElementsAre("a", "c"));
}

TEST_F(FilterServiceTest, MomentsMayLieBetweenTheMicrosecondsOfItems) {
  ASSERT_TRUE(Create(Parse<v1::CreateCatalogRequest>(
                         "name: 'news' schema { key_fields { name: 'k' "
                         "dimension: 2 } attributes { name: 'at' type: "
                         "ATTRIBUTE_TYPE_TIMESTAMP } }"))
                  .ok());
  // Items store whole microseconds: the nanoseconds are truncated.
  ASSERT_TRUE(
      Upsert(Parse<v1::BatchUpsertItemsRequest>(
                 "catalog: 'news' items { id: 'x' keys { key: 'k' value { "
                 "floats { values: [1, 1] } } } attributes { key: 'at' value { "
                 "timestamp_value { seconds: 1 nanos: 1999 } } } }"))
          .ok());
  const auto finds = [&](const std::string& filter) {
    v1::AttendRequest request = Request(filter);
    request.set_catalog("news");
    return !Ask(request).empty();
  };
  const auto compares = [&](const std::string& sign, const std::string& kind,
                            int nanos) {
    const bool found = finds(absl::StrFormat(
        "filter: 'at %s \"1970-01-01T00:00:01.%09dZ\"'", sign, nanos));
    EXPECT_EQ(found, finds(absl::StrFormat(
                         "filter_expression { comparison { attribute: 'at' "
                         "kind: COMPARISON_KIND_%s value { timestamp_value { "
                         "seconds: 1 nanos: %d } } } }",
                         kind, nanos)))
        << sign << nanos;
    return found;
  };
  EXPECT_TRUE(compares("=", "EQUAL", 1000));
  EXPECT_FALSE(compares("=", "EQUAL", 1001));
  EXPECT_FALSE(compares("<", "LESS", 1000));
  EXPECT_TRUE(compares("<", "LESS", 1001));
  EXPECT_FALSE(compares(">=", "GREATER_OR_EQUAL", 1001));
  EXPECT_FALSE(compares(">", "GREATER", 1000));
  EXPECT_TRUE(compares(">", "GREATER", 999));
}

TEST_F(FilterServiceTest, BadTextNamesThePosition) {
  ExpectInvalid("filter: 'price <'", "filter", "the end at position 8");
  ExpectInvalid("filter: 'size > 1'", "filter", "size at position 1");
  ExpectInvalid("filter: 'price = \"1\"'", "filter", "\"1\" at position 9");
  ExpectInvalid("filter: ' '", "filter", "the end at position 2");
  ExpectInvalid("filter: 'price > 1' filter_expression { exists: 'price' }",
                "filter", "filter and filter_expression");
}

TEST_F(FilterServiceTest, ABadMessageNamesItsField) {
  const auto refused = [&](const std::string& filter, const std::string& field,
                           const std::string& message) {
    ExpectInvalid(absl::StrCat("filter_expression { ", filter, " }"),
                  absl::StrCat("filter_expression", field), message);
  };
  refused("", "", "none");
  refused("exists: 'size'", ".exists", "\"size\"");
  refused("comparison { attribute: 'price' value { int64_value: 2 } }",
          ".comparison.kind", "COMPARISON_KIND_EQUAL");
  refused("comparison { attribute: 'price' kind: COMPARISON_KIND_LESS }",
          ".comparison.value.kind", "none");
  refused(
      "comparison { attribute: 'price' kind: COMPARISON_KIND_LESS "
      "value { double_value: nan } }",
      ".comparison.value", "nan");
  refused(
      "comparison { attribute: 'price' kind: COMPARISON_KIND_LESS "
      "value { string_value: '2' } }",
      ".comparison.value", "a string");
  refused("membership { attribute: 'price' }", ".membership.values", "0");
  refused(
      "membership { attribute: 'price' values { int64_value: 1 } values {} }",
      ".membership.values[1].kind", "none");
  refused("containment { attribute: 'price' text: '1' }",
          ".containment.attribute", "double");
  refused("all_of {}", ".all_of.filters", "none");
  refused("any_of { filters { exists: 'price' } filters { negation {} } }",
          ".any_of.filters[1].negation", "none");
}

TEST_F(FilterServiceTest, LimitsAreResourceExhausted) {
  constexpr auto kOver = grpc::StatusCode::RESOURCE_EXHAUSTED;
  v1::AttendRequest deep = Request("filter_expression { exists: 'price' }");
  for (int depth = 1; depth < 33; ++depth) {
    v1::Filter inner = deep.filter_expression();
    *deep.mutable_filter_expression()->mutable_negation() = inner;
  }
  const grpc::Status status = Attend(deep);
  EXPECT_EQ(status.error_code(), kOver);
  EXPECT_THAT(status.error_message(), HasSubstr("33 deep"));
  EXPECT_EQ(ReasonIn(DetailsOf(status)), "OVER_LIMIT");

  v1::AttendRequest text = Request("");
  text.set_filter(std::string(16385, ' '));
  ExpectRefused(text, kOver, "filter", "16385 bytes");

  v1::AttendRequest values =
      Request("filter_expression { membership { attribute: 'price' } }");
  for (int i = 0; i < 1001; ++i) {
    values.mutable_filter_expression()
        ->mutable_membership()
        ->add_values()
        ->set_int64_value(i);
  }
  ExpectRefused(values, kOver, "filter_expression.membership.values", "1001");
}

}  // namespace
}  // namespace attendant
