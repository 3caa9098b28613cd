// Tokens decode to what they were made from, and nothing else decodes.
#include "service/convert/tokens.h"

#include <gmock/gmock.h>

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "tests/service/convert/convert_fixture.h"
#include "tests/support/status_matchers.h"

namespace attendant {
namespace {

TEST(TokensTest, StateTokensTellStatesApart) {
  EXPECT_EQ(StateToken("00ff", 7), StateToken("00ff", 7));
  EXPECT_NE(StateToken("00ff", 7), StateToken("00ff", 8));
  EXPECT_NE(StateToken("00ff", 7), StateToken("00fe", 7));
}

TEST(TokensTest, StateTokenLeadsBackToItsState) {
  const std::string token = StateToken("0123456789abcdef", 7);
  ASSERT_OK_AND_ASSIGN(const CatalogState state,
                       ParseStateToken(token, "state_token"));
  EXPECT_EQ(state.catalog_uid, "0123456789abcdef");
  EXPECT_EQ(state.sequence, 7);
}

TEST(TokensTest, WhatIsNoStateTokenIsRefused) {
  const std::string token = StateToken("0123456789abcdef", 7);
  std::vector<std::string> bad = {"x",
                                  "!!!",
                                  PageToken("items", "a"),
                                  StateToken("00ff", -1),
                                  token + "A",
                                  absl::WebSafeBase64Escape("s1\n00ff\n7")};
  for (std::size_t i = 0; i < token.size(); ++i) {
    bad.push_back(token.substr(0, i));
    bad.push_back(token);
    bad.back()[i] = token[i] == 'A' ? 'B' : 'A';
  }
  for (const std::string& each : bad) {
    ExpectInvalid(ParseStateToken(each, "state_token").status(), "state_token",
                  "an unknown token");
  }
}

TEST(TokensTest, PageTokenLeadsBackToItsPlace) {
  // Ids may hold any character.
  for (const std::string after : {"a", "\n", "x\ny", "\xC3\x84", " "}) {
    ASSERT_OK_AND_ASSIGN(const std::string got,
                         ParsePageToken(PageToken("list", after), "list"));
    EXPECT_EQ(got, after);
  }
  ASSERT_OK_AND_ASSIGN(const std::string first, ParsePageToken("", "list"));
  EXPECT_EQ(first, "");
}

TEST(TokensTest, PageTokenOfAnotherRequestIsRefused) {
  const std::string token = PageToken("items 1 k", "a");
  ExpectInvalid(ParsePageToken(token, "items 1 kv").status(), "page_token",
                "another request");
  ExpectInvalid(ParsePageToken(token, "items 1").status(), "page_token",
                "another request");
  for (const std::string& bad :
       {std::string("x"), std::string("!!!"), token.substr(1),
        StateToken("00ff", 1), absl::WebSafeBase64Escape("p2\nitems 1 k\na"),
        PageToken("items 1 k", "")}) {
    ExpectInvalid(ParsePageToken(bad, "items 1 k").status(), "page_token",
                  "token");
  }
}
}  // namespace
}  // namespace attendant
