// Who may do what: the roles, the role that each method needs, and the catalogs
// that a caller may name.
#ifndef ATTENDANT_SERVICE_SECURITY_ACCESS_H_
#define ATTENDANT_SERVICE_SECURITY_ACCESS_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace attendant {

// Each may do what those before it may.
enum class Role {
  kRead,   // queries, descriptions, reads of items
  kWrite,  // writes of items
  kAdmin,  // catalogs, aliases, models and snapshots
};

// "read", "write" or "admin"; else InvalidArgument naming "role".
absl::StatusOr<Role> RoleFromName(absl::string_view name);
absl::string_view RoleName(Role role);

// What a caller must have to begin a call of `path`, as in
// "/attendant.v1.ItemService/ListItems". Nothing for grpc.health.v1, which is
// open to all; kAdmin for a method that is not known.
std::optional<Role> RoleFor(absl::string_view path);

// The names of catalogs and aliases that a caller may use.
class CatalogScope {
 public:
  // "*" for all, or patterns with commas between, each a name or the beginning
  // of names with a '*' at its end, as in "films,shop-*". InvalidArgument
  // naming "catalogs" for anything else.
  static absl::StatusOr<CatalogScope> FromText(absl::string_view text);

  // All.
  CatalogScope() : patterns_({"*"}) {}

  bool HoldsAll() const { return patterns_.front() == "*"; }
  bool Holds(absl::string_view name) const;
  std::string ToText() const;

 private:
  std::vector<std::string> patterns_;
};

// What a token gives to whoever brings it.
struct Grant {
  std::string name;  // of the token
  Role role = Role::kRead;
  CatalogScope scope = {};
};

}  // namespace attendant

#endif  // ATTENDANT_SERVICE_SECURITY_ACCESS_H_
