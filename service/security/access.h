// Authorization: roles, the role that each method needs, and the catalogs that
// a caller may name.
#ifndef ATTENDANT_SERVICE_SECURITY_ACCESS_H_
#define ATTENDANT_SERVICE_SECURITY_ACCESS_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace attendant {

// Each role includes those before it.
enum class Role {
  kRead,   // queries, descriptions, reads of items
  kWrite,  // writes of items
  kAdmin,  // catalogs, aliases, models and snapshots
};

// Returns the role named "read", "write" or "admin"; InvalidArgument naming
// "role" for other names.
absl::StatusOr<Role> RoleFromName(absl::string_view name);
absl::string_view RoleName(Role role);

// Returns the role needed to begin a call of `path`, such as
// "/attendant.v1.ItemService/ListItems". Nothing for grpc.health.v1, which is
// open to all; kAdmin for an unknown method.
std::optional<Role> RoleFor(absl::string_view path);

// The names of catalogs and aliases that a caller may use.
class CatalogScope {
 public:
  // Parses "*" for all, or comma-separated patterns; each is a name, or a
  // prefix of names followed by '*', as in "films,shop-*". InvalidArgument
  // naming "catalogs" for anything else.
  static absl::StatusOr<CatalogScope> FromText(absl::string_view text);

  // The scope of all catalogs.
  CatalogScope() : patterns_({"*"}) {}

  bool HoldsAll() const { return patterns_.front() == "*"; }
  bool Holds(absl::string_view name) const;
  std::string ToText() const;

 private:
  std::vector<std::string> patterns_;
};

// What a token permits its bearer.
struct Grant {
  std::string name;  // of the token
  Role role = Role::kRead;
  CatalogScope scope = {};
};

}  // namespace attendant

#endif  // ATTENDANT_SERVICE_SECURITY_ACCESS_H_
