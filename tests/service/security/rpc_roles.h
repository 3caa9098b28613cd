// The role that a method should require of its caller.
#ifndef ATTENDANT_TESTS_SERVICE_SECURITY_RPC_ROLES_H_
#define ATTENDANT_TESTS_SERVICE_SECURITY_RPC_ROLES_H_

#include <google/protobuf/descriptor.h>

#include <string>

#include "absl/strings/match.h"
#include "service/security/access.h"

namespace attendant {

// Derives the role from the method's name: Get, List and attention methods
// read, item methods write, and all others administer.
inline Role RoleByName(const google::protobuf::MethodDescriptor& method) {
  const std::string& service = method.service()->name();
  if (absl::StartsWith(method.name(), "Get") ||
      absl::StartsWith(method.name(), "List") ||
      absl::StrContains(method.name(), "BatchGet") ||
      service == "AttentionService" || service == "SequenceService") {
    return Role::kRead;
  }
  return service == "ItemService" ? Role::kWrite : Role::kAdmin;
}

}  // namespace attendant

#endif  // ATTENDANT_TESTS_SERVICE_SECURITY_RPC_ROLES_H_
