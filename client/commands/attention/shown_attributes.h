// Explains errors of --show.
#ifndef ATTENDANT_CLIENT_COMMANDS_ATTENTION_SHOWN_ATTRIBUTES_H_
#define ATTENDANT_CLIENT_COMMANDS_ATTENTION_SHOWN_ATTRIBUTES_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "client/api/client.h"

namespace attendant {

// Returns the error of a request that asked for the attributes `shown`. If the
// catalog does not declare one of them, the error is about --show and names the
// attributes that exist; otherwise, it is `error`. Reads the catalog's schema
// from the server.
absl::Status ErrorOfShown(const absl::Status& error,
                          const std::vector<std::string>& shown,
                          const std::string& catalog, Client& client);

}  // namespace attendant

#endif  // ATTENDANT_CLIENT_COMMANDS_ATTENTION_SHOWN_ATTRIBUTES_H_
