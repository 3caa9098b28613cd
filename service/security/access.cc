#include "service/security/access.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "core/base/status.h"

namespace attendant {
namespace {

constexpr std::pair<absl::string_view, Role> kRoles[] = {
    {"read", Role::kRead}, {"write", Role::kWrite}, {"admin", Role::kAdmin}};

constexpr absl::string_view kHealth = "/grpc.health.v1.Health/";
constexpr absl::string_view kReflection =
    "/grpc.reflection.v1alpha.ServerReflection/";

using MethodRoles = absl::flat_hash_map<absl::string_view, Role>;

const MethodRoles& RolesOfMethods() {
  // Never deleted: calls may arrive until the process exits.
  static const MethodRoles* const roles = new MethodRoles({
      {"CatalogService/CreateCatalog", Role::kAdmin},
      {"CatalogService/GetCatalog", Role::kRead},
      {"CatalogService/ListCatalogs", Role::kRead},
      {"CatalogService/UpdateCatalog", Role::kAdmin},
      {"CatalogService/DeleteCatalog", Role::kAdmin},
      {"AliasService/SetAlias", Role::kAdmin},
      {"AliasService/GetAlias", Role::kRead},
      {"AliasService/ListAliases", Role::kRead},
      {"AliasService/DeleteAlias", Role::kAdmin},
      {"ItemService/BatchUpsertItems", Role::kWrite},
      {"ItemService/ImportItems", Role::kWrite},
      {"ItemService/BatchUpdateItems", Role::kWrite},
      {"ItemService/BatchGetItems", Role::kRead},
      {"ItemService/ListItems", Role::kRead},
      {"ItemService/BatchDeleteItems", Role::kWrite},
      {"ItemService/DeleteMatchingItems", Role::kWrite},
      {"ModelService/CreateModel", Role::kAdmin},
      {"ModelService/GetModel", Role::kRead},
      {"ModelService/ListModels", Role::kRead},
      {"ModelService/DeleteModel", Role::kAdmin},
      {"AttentionService/Attend", Role::kRead},
      {"AttentionService/BatchAttend", Role::kRead},
      {"SequenceService/Contextualize", Role::kRead},
      {"SequenceService/RankCandidates", Role::kRead},
      {"SnapshotService/CreateSnapshot", Role::kAdmin},
      {"SnapshotService/GetSnapshot", Role::kRead},
      {"SnapshotService/ListSnapshots", Role::kRead},
      {"SnapshotService/VerifySnapshot", Role::kAdmin},
      {"SnapshotService/RestoreSnapshot", Role::kAdmin},
      {"SnapshotService/DeleteSnapshot", Role::kAdmin},
      {"SnapshotService/ExportSnapshot", Role::kAdmin},
      {"SnapshotService/ImportSnapshot", Role::kAdmin},
  });
  return *roles;
}

bool IsPattern(absl::string_view text) {
  absl::ConsumeSuffix(&text, "*");
  return std::ranges::all_of(text, [](char c) {
    return absl::ascii_islower(static_cast<unsigned char>(c)) ||
           absl::ascii_isdigit(static_cast<unsigned char>(c)) || c == '-' ||
           c == '_';
  });
}

}  // namespace

absl::StatusOr<Role> RoleFromName(absl::string_view name) {
  for (const auto& [role_name, role] : kRoles) {
    if (role_name == name) return role;
  }
  return InvalidField("role", absl::StrCat("\"", name, "\""),
                      "read, write or admin");
}

absl::string_view RoleName(Role role) {
  return kRoles[static_cast<int>(role)].first;
}

std::optional<Role> RoleFor(absl::string_view path) {
  if (absl::StartsWith(path, kHealth)) return std::nullopt;
  if (absl::StartsWith(path, kReflection)) return Role::kRead;
  if (!absl::ConsumePrefix(&path, "/attendant.v1.")) return Role::kAdmin;
  const auto found = RolesOfMethods().find(path);
  return found == RolesOfMethods().end() ? Role::kAdmin : found->second;
}

absl::StatusOr<CatalogScope> CatalogScope::FromText(absl::string_view text) {
  CatalogScope scope;
  // For a null view StrSplit returns no parts instead of an empty one.
  scope.patterns_ = absl::StrSplit(text.empty() ? "" : text, ',');
  for (const std::string& pattern : scope.patterns_) {
    // "*" among other patterns is probably a mistake that would permit
    // everything.
    if (pattern.empty() || !IsPattern(pattern) ||
        (pattern == "*" && scope.patterns_.size() > 1)) {
      return InvalidField(
          "catalogs", absl::StrCat("\"", text, "\""),
          "* alone, or comma-separated names, each of which may end in *");
    }
  }
  return scope;
}

bool CatalogScope::Holds(absl::string_view name) const {
  return std::ranges::any_of(patterns_, [&](absl::string_view pattern) {
    return absl::ConsumeSuffix(&pattern, "*") ? absl::StartsWith(name, pattern)
                                              : name == pattern;
  });
}

std::string CatalogScope::ToText() const {
  return absl::StrJoin(patterns_, ",");
}

}  // namespace attendant
