#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>

#include "core/base/status.h"
#include "core/catalog/live/catalog_set.h"
#include "tests/core/catalog/catalog_fixture.h"
#include "tests/support/scratch_directory.h"

namespace attendant {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Optional;

class AliasesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    Open();
    ASSERT_OK(set_->Create("blue", OneFieldSchema(2), {}));
    ASSERT_OK(set_->Create("green", OneFieldSchema(2), {}));
  }
  void Open() {
    set_ = nullptr;
    ASSERT_OK_AND_ASSIGN(set_, CatalogSet::Open(directory_.path(), {}));
  }
  // Returns the name of the catalog that `name` resolves to.
  std::string Meets(const std::string& name) {
    const auto catalog = set_->Get(name);
    return catalog.ok() ? (*catalog)->record().name
                        : std::string(catalog.status().message());
  }

  ScratchDirectory directory_;
  std::unique_ptr<CatalogSet> set_;
};

TEST_F(AliasesTest, NamesACatalogAndMoves) {
  ASSERT_OK_AND_ASSIGN(CatalogSet::AliasMove move,
                       set_->SetAlias("shop", "blue", std::nullopt));
  EXPECT_EQ(move.alias, (Alias{"shop", "blue"}));
  EXPECT_EQ(move.previous, "");
  EXPECT_EQ(Meets("shop"), "blue");
  ASSERT_OK_AND_ASSIGN(move, set_->SetAlias("shop", "green", std::nullopt));
  EXPECT_EQ(move.previous, "blue");
  EXPECT_EQ(Meets("shop"), "green");
  // Set through another alias, the new alias names the catalog, not the alias.
  ASSERT_OK(set_->SetAlias("store", "shop", std::nullopt));
  ASSERT_OK(set_->SetAlias("shop", "blue", std::nullopt));
  EXPECT_EQ(Meets("store"), "green");
  ASSERT_OK_AND_ASSIGN(const Alias store, set_->GetAlias("store"));
  EXPECT_EQ(store, (Alias{"store", "green"}));
}

TEST_F(AliasesTest, IsThereAfterARestartUntilItIsDeleted) {
  ASSERT_OK(set_->SetAlias("shop", "blue", std::nullopt));
  ASSERT_OK(set_->SetAlias("store", "blue", std::nullopt));
  ASSERT_OK(set_->DeleteAlias("store"));
  Open();
  EXPECT_EQ(Meets("shop"), "blue");
  EXPECT_THAT(set_->ListAliases("", 10), ElementsAre(Alias{"shop", "blue"}));
  EXPECT_THAT(set_->DeleteAlias("store"),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("'store'")));
  EXPECT_EQ(ReasonOf(set_->GetAlias("store").status()), "ALIAS_NOT_FOUND");
}

TEST_F(AliasesTest, MovesOnlyFromWhereItIsExpected) {
  ASSERT_OK(set_->SetAlias("shop", "blue", ""));
  const auto again = set_->SetAlias("shop", "green", "");
  EXPECT_THAT(again, StatusIs(absl::StatusCode::kAborted,
                              HasSubstr("names catalog 'blue'")));
  EXPECT_THAT(ReasonOf(again.status()), Optional(std::string("ALIAS_MOVED")));
  EXPECT_THAT(set_->SetAlias("shop", "green", "green"),
              StatusIs(absl::StatusCode::kAborted, HasSubstr("'green'")));
  EXPECT_THAT(set_->SetAlias("store", "green", "blue"),
              StatusIs(absl::StatusCode::kAborted, HasSubstr("not exist")));
  EXPECT_EQ(Meets("shop"), "blue");
  ASSERT_OK(set_->SetAlias("shop", "green", "blue"));
  EXPECT_EQ(Meets("shop"), "green");
}

TEST_F(AliasesTest, SharesItsNameWithNoCatalog) {
  EXPECT_THAT(set_->SetAlias("blue", "green", std::nullopt),
              StatusIs(absl::StatusCode::kAlreadyExists,
                       HasSubstr("'blue' is a catalog")));
  ASSERT_OK(set_->SetAlias("shop", "green", std::nullopt));
  EXPECT_THAT(set_->Create("shop", OneFieldSchema(2), {}),
              StatusIs(absl::StatusCode::kAlreadyExists,
                       HasSubstr("'shop' is an alias;")));
}

TEST_F(AliasesTest, NeedsACatalogAndAName) {
  EXPECT_THAT(set_->SetAlias("shop", "red", std::nullopt),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("'red'")));
  for (const char* bad : {"", "Shop", "-a", "a/b"}) {
    const auto refused = set_->SetAlias(bad, "blue", std::nullopt);
    EXPECT_THAT(refused, StatusIs(absl::StatusCode::kInvalidArgument,
                                  HasSubstr("alias")));
    EXPECT_THAT(FieldOf(refused.status()), Optional(std::string("alias")));
  }
  EXPECT_THAT(set_->ListAliases("", 10), IsEmpty());
}

TEST_F(AliasesTest, KeepsItsCatalogFromDeletion) {
  ASSERT_OK(set_->SetAlias("shop", "blue", std::nullopt));
  for (const char* name : {"blue", "shop"}) {
    const absl::Status refused = set_->Delete(name);
    EXPECT_THAT(refused, StatusIs(absl::StatusCode::kFailedPrecondition,
                                  HasSubstr("alias 'shop'")));
    EXPECT_EQ(ReasonOf(refused), "CATALOG_HAS_ALIAS");
  }
  ASSERT_OK(set_->Delete("green"));
  ASSERT_OK(set_->DeleteAlias("shop"));
  ASSERT_OK(set_->Delete("blue"));
}

TEST_F(AliasesTest, UpdatesReachTheCatalog) {
  ASSERT_OK(set_->SetAlias("shop", "blue", std::nullopt));
  CatalogSchema schema = OneFieldSchema(2);
  schema.key_fields[0].temperature = 3;
  ASSERT_OK(set_->Update("shop", schema, {}));
  Open();
  ASSERT_OK_AND_ASSIGN(const auto blue, set_->Get("blue"));
  EXPECT_EQ(blue->record().schema.key_fields[0].temperature, 3);
}

TEST_F(AliasesTest, ListsByNameFromTheOneAfterAndNoCatalogs) {
  for (const char* name : {"c", "a", "h"}) {
    ASSERT_OK(set_->SetAlias(name, "blue", std::nullopt));
  }
  EXPECT_THAT(set_->ListAliases("", 2),
              ElementsAre(Alias{"a", "blue"}, Alias{"c", "blue"}));
  EXPECT_THAT(set_->ListAliases("c", 2), ElementsAre(Alias{"h", "blue"}));
  EXPECT_EQ(set_->List("", 10).size(), 2u);
}

}  // namespace
}  // namespace attendant
