// What --show asks for.
#ifndef ATTENDANT_CLIENT_COMMANDS_ATTENTION_SHOWN_ATTRIBUTES_H_
#define ATTENDANT_CLIENT_COMMANDS_ATTENTION_SHOWN_ATTRIBUTES_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "client/api/client.h"

namespace attendant {

// The error of a request that asked for these attributes. Where the catalog
// declares none of such a name, it says so of --show, and which there are; it
// is `error` otherwise. Asks the server for the catalog.
absl::Status ErrorOfShown(const absl::Status& error,
                          const std::vector<std::string>& shown,
                          const std::string& catalog, Client& client);

}  // namespace attendant

#endif  // ATTENDANT_CLIENT_COMMANDS_ATTENTION_SHOWN_ATTRIBUTES_H_
