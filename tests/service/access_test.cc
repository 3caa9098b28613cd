#include "service/access.h"

#include <gmock/gmock.h>
#include <google/protobuf/descriptor.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "attendant/v1/alias_service.pb.h"
#include "attendant/v1/attention_service.pb.h"
#include "attendant/v1/catalog_service.pb.h"
#include "attendant/v1/item_service.pb.h"
#include "attendant/v1/model_service.pb.h"
#include "attendant/v1/sequence_service.pb.h"
#include "attendant/v1/snapshot_service.pb.h"
#include "tests/support/status_matchers.h"

namespace attendant {
namespace {

using ::testing::HasSubstr;

// What the method ought to need, from its name: reading is named Get or List,
// or is attention; items are written; what is left changes what is there.
Role RoleByName(const google::protobuf::MethodDescriptor& method) {
  const std::string& service = method.service()->name();
  if (absl::StartsWith(method.name(), "Get") ||
      absl::StartsWith(method.name(), "List") ||
      absl::StrContains(method.name(), "BatchGet") ||
      service == "AttentionService" || service == "SequenceService") {
    return Role::kRead;
  }
  return service == "ItemService" ? Role::kWrite : Role::kAdmin;
}

TEST(AccessTest, EachMethodNeedsTheRoleOfWhatItDoes) {
  int count = 0;
  for (const google::protobuf::FileDescriptor* file :
       {v1::SetAliasRequest::descriptor()->file(),
        v1::AttendRequest::descriptor()->file(),
        v1::GetCatalogRequest::descriptor()->file(),
        v1::ListItemsRequest::descriptor()->file(),
        v1::GetModelRequest::descriptor()->file(),
        v1::RankCandidatesRequest::descriptor()->file(),
        v1::GetSnapshotRequest::descriptor()->file()}) {
    for (int i = 0; i < file->service_count(); ++i) {
      for (int j = 0; j < file->service(i)->method_count(); ++j) {
        const auto& method = *file->service(i)->method(j);
        EXPECT_EQ(RoleFor(absl::StrCat("/", method.service()->full_name(), "/",
                                       method.name())),
                  RoleByName(method))
            << method.full_name();
        ++count;
      }
    }
  }
  EXPECT_GE(count, 32);
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
}

}  // namespace
}  // namespace attendant
