#include "service/security/token_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tests/support/status_matchers.h"

namespace attendant {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

Grant GrantTo(const std::string& name, Role role = Role::kRead,
              const std::string& catalogs = "*") {
  auto scope = CatalogScope::FromText(catalogs);
  EXPECT_TRUE(scope.ok());
  return {.name = name, .role = role, .scope = *std::move(scope)};
}

TEST(TokenTableTest, FindsATokenByItsHash) {
  ASSERT_OK_AND_ASSIGN(const NewToken ci,
                       MakeToken(GrantTo("ci", Role::kWrite, "films,shop-*")));
  ASSERT_OK_AND_ASSIGN(const NewToken web, MakeToken(GrantTo("web")));
  ASSERT_OK_AND_ASSIGN(const TokenTable table,
                       TokenTable::FromText(absl::StrCat(
                           "# tokens\n\n", ci.line, "\n  ", web.line, "\r\n")));
  const Grant* grant = table.Find(ci.token);
  ASSERT_NE(grant, nullptr);
  EXPECT_EQ(grant->name, "ci");
  EXPECT_EQ(grant->role, Role::kWrite);
  EXPECT_EQ(grant->scope.ToText(), "films,shop-*");
  ASSERT_NE(table.Find(web.token), nullptr);
  EXPECT_EQ(table.Find(web.token)->role, Role::kRead);
}

// After the first lookup, a secret is recognised by another hash.
TEST(TokenTableTest, FindsThatAgainWhichItFoundAndNothingElse) {
  ASSERT_OK_AND_ASSIGN(const NewToken ci, MakeToken(GrantTo("ci")));
  ASSERT_OK_AND_ASSIGN(const TokenTable table, TokenTable::FromText(ci.line));
  const Grant* grant = table.Find(ci.token);
  ASSERT_NE(grant, nullptr);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(table.Find(ci.token), grant);
    EXPECT_EQ(table.Find(ci.token + "A"), nullptr);
    EXPECT_EQ(table.Find(ci.token.substr(0, ci.token.size() - 1)), nullptr);
    EXPECT_EQ(table.Find("ci."), nullptr);
    EXPECT_EQ(table.Find("ci." + std::string(1000, 'A')), nullptr);
  }
}

// A line made by an earlier version; tokens in use must stay valid.
TEST(TokenTableTest, KnowsTokensOfBefore) {
  ASSERT_OK_AND_ASSIGN(
      const TokenTable table,
      TokenTable::FromText("old read * hkdf-sha256:"
                           "AAECAwQFBgcICQoLDA0ODw:"
                           "QTdhteQ1aKEaKnkMRYno5eIXlaVWiIkkzDexd7orWHc"));
  EXPECT_NE(table.Find("old.AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"),
            nullptr);
}

TEST(TokenTableTest, FindsNothingElse) {
  ASSERT_OK_AND_ASSIGN(const NewToken ci, MakeToken(GrantTo("ci")));
  ASSERT_OK_AND_ASSIGN(const NewToken web, MakeToken(GrantTo("web")));
  ASSERT_OK_AND_ASSIGN(
      const TokenTable table,
      TokenTable::FromText(absl::StrCat(ci.line, "\n", web.line)));
  std::string changed = ci.token;
  changed.back() = changed.back() == 'A' ? 'B' : 'A';
  const std::string secret = ci.token.substr(ci.token.find('.') + 1);
  for (const std::string& token :
       {changed, ci.token.substr(0, ci.token.size() - 1), ci.token + "A",
        "web." + secret, "nobody." + secret, secret, "." + secret,
        std::string("ci."), std::string("ci"), std::string(), ci.line}) {
    EXPECT_EQ(table.Find(token), nullptr) << token;
  }
}

TEST(TokenTableTest, EachTokenHasASecretAndASaltOfItsOwn) {
  ASSERT_OK_AND_ASSIGN(const NewToken first, MakeToken(GrantTo("ci")));
  ASSERT_OK_AND_ASSIGN(const NewToken second, MakeToken(GrantTo("ci")));
  EXPECT_NE(first.token, second.token);
  EXPECT_NE(first.line, second.line);
  // 256 bits in base64url.
  const std::string secret = first.token.substr(first.token.find('.') + 1);
  EXPECT_EQ(secret.size(), 43u);
  EXPECT_THAT(first.line, Not(HasSubstr(secret)));
}

TEST(TokenTableTest, NamesTheLineThatIsWrong) {
  ASSERT_OK_AND_ASSIGN(const NewToken ci, MakeToken(GrantTo("ci")));
  const auto refuses = [&](const std::string& line, const std::string& text) {
    EXPECT_THAT(TokenTable::FromText(absl::StrCat("# one\n", line)),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr(absl::StrCat("line 2: ", text))))
        << line;
  };
  const std::string hash = ci.line.substr(ci.line.rfind(' ') + 1);
  refuses("ci read *", "got 3 words, want NAME ROLE CATALOGS HASH");
  refuses(absl::StrCat(ci.line, " more"), "got 5 words");
  refuses(absl::StrCat("c.i read * ", hash), "the name is not 1 to 64 letters");
  refuses(absl::StrCat("ci root * ", hash), "role: got \"root\"");
  refuses(absl::StrCat("ci read Films ", hash), "catalogs: got \"Films\"");
  refuses("ci read * plain:secret:word", "the hash is not hkdf-sha256");
  refuses(ci.line.substr(0, ci.line.size() - 1), "the hash is not");
  EXPECT_THAT(
      TokenTable::FromText(absl::StrCat(ci.line, "\n", ci.line)),
      StatusIs(
          absl::StatusCode::kInvalidArgument,
          HasSubstr("line 2: an earlier line has a token with this name")));
}

// A file in the wrong place may be a token, and errors are logged.
TEST(TokenTableTest, ErrorsDoNotShowWhatMayBeASecret) {
  ASSERT_OK_AND_ASSIGN(const NewToken ci, MakeToken(GrantTo("ci")));
  for (const std::string& line :
       {ci.token, absl::StrCat(ci.token, " read * hkdf-sha256:x:y"),
        absl::StrCat("ci read * ", ci.token)}) {
    const auto table = TokenTable::FromText(line);
    ASSERT_FALSE(table.ok());
    EXPECT_THAT(std::string(table.status().message()), Not(HasSubstr("ci.")));
  }
}

TEST(TokenTableTest, ANameIsOfLettersDigitsAndDashes) {
  for (const std::string& name :
       {std::string(), std::string("a b"), std::string("a.b"),
        std::string(65, 'a'), std::string("a\nb read * x")}) {
    EXPECT_THAT(
        MakeToken(GrantTo(name)),
        StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("name: got")));
  }
  EXPECT_OK(MakeToken(GrantTo(std::string(64, 'a'))));
}

TEST(TokenTableTest, EveryByteOfAHashCounts) {
  const auto made = MakeToken(GrantTo("a"));
  ASSERT_OK(made);
  for (const int from_end : {3, 12, 20, 40}) {
    std::string line = made->line;
    char& c = line[line.size() - from_end];
    c = c == 'A' ? 'B' : 'A';
    const auto table = TokenTable::FromText(line);
    ASSERT_OK(table);
    EXPECT_EQ(table->Find(made->token), nullptr) << from_end;
  }
}

TEST(TokenTableTest, AHashIsOfOneKindAndThreeParts) {
  const auto made = MakeToken(GrantTo("a"));
  std::string line = made->line;
  EXPECT_FALSE(TokenTable::FromText(line + ":x").ok());
  line.replace(line.find("hkdf-sha256"), 11, "hkdf-sha512");
  EXPECT_FALSE(TokenTable::FromText(line).ok());
}

}  // namespace
}  // namespace attendant
