// What a method ought to need of its caller.
#ifndef ATTENDANT_TESTS_SERVICE_SECURITY_RPC_ROLES_H_
#define ATTENDANT_TESTS_SERVICE_SECURITY_RPC_ROLES_H_

#include <google/protobuf/descriptor.h>

#include <string>

#include "absl/strings/match.h"
#include "service/security/access.h"

namespace attendant {

// From its name: reading is named Get or List, or is attention; items are
// written; what is left changes what is there.
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
