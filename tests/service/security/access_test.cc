#include "service/security/access.h"

#include <gmock/gmock.h>
#include <google/protobuf/descriptor.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "service/calls/methods.h"
#include "tests/service/security/rpc_roles.h"
#include "tests/support/status_matchers.h"

namespace attendant {
namespace {

using ::testing::HasSubstr;

TEST(AccessTest, EachMethodNeedsTheRoleOfWhatItDoes) {
  for (const Method& method : AllMethods()) {
    const auto* descriptor =
        google::protobuf::DescriptorPool::generated_pool()->FindMethodByName(
            absl::StrCat(method.service, ".", method.name));
    ASSERT_NE(descriptor, nullptr) << method.name;
    EXPECT_EQ(RoleFor(absl::StrCat("/", method.service, "/", method.name)),
              RoleByName(*descriptor))
        << method.name;
  }
}

TEST(AccessTest, OnlyHealthIsOpenAndWhatIsUnknownIsClosed) {
  EXPECT_EQ(RoleFor("/grpc.health.v1.Health/Check"), std::nullopt);
  EXPECT_EQ(RoleFor("/grpc.health.v1.Health/Watch"), std::nullopt);
  EXPECT_EQ(RoleFor("/grpc.reflection.v1alpha.ServerReflection/"
                    "ServerReflectionInfo"),
            Role::kRead);
  for (const char* path :
       {"", "/", "/grpc.health.v1", "/grpc.health.v1.Healthy/Check",
        "/attendant.v1.ItemService/DropItems", "/attendant.v2.A/ListItems",
        "/attendant.v1.ItemService/ListItems/", "ItemService/ListItems"}) {
    EXPECT_EQ(RoleFor(path), Role::kAdmin) << path;
  }
}

TEST(AccessTest, RolesHaveNames) {
  for (const Role role : {Role::kRead, Role::kWrite, Role::kAdmin}) {
    ASSERT_OK_AND_ASSIGN(const Role parsed, RoleFromName(RoleName(role)));
    EXPECT_EQ(parsed, role);
  }
  EXPECT_THAT(RoleFromName("root"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("role: got \"root\", want read, write")));
}

TEST(CatalogScopeTest, HoldsNamesAndTheirBeginnings) {
  ASSERT_OK_AND_ASSIGN(const auto scope,
                       CatalogScope::FromText("films,shop-*"));
  EXPECT_FALSE(scope.HoldsAll());
  EXPECT_TRUE(scope.Holds("films"));
  EXPECT_TRUE(scope.Holds("shop-1"));
  EXPECT_TRUE(scope.Holds("shop-"));
  EXPECT_FALSE(scope.Holds("films2"));
  EXPECT_FALSE(scope.Holds("film"));
  EXPECT_FALSE(scope.Holds("shop"));
  EXPECT_FALSE(scope.Holds(""));
  EXPECT_EQ(scope.ToText(), "films,shop-*");
}

TEST(CatalogScopeTest, AStarAloneHoldsAll) {
  ASSERT_OK_AND_ASSIGN(const auto scope, CatalogScope::FromText("*"));
  EXPECT_TRUE(scope.HoldsAll());
  EXPECT_TRUE(scope.Holds("films"));
  EXPECT_TRUE(scope.Holds(""));
}

TEST(CatalogScopeTest, RefusesWhatIsNoListOfNames) {
  for (const char* text :
       {"", ",", "films,", "films,*", "*,*", "fi*lms", "**", "Films", "a b"}) {
    EXPECT_THAT(CatalogScope::FromText(text),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr("catalogs: got ")))
        << text;
  }
  EXPECT_THAT(CatalogScope::FromText(absl::string_view()),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("catalogs: got \"\"")));
}

}  // namespace
}  // namespace attendant
