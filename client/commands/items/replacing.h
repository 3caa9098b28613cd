// What an import would remove from the items that it replaces.
#ifndef ATTENDANT_CLIENT_COMMANDS_ITEMS_REPLACING_H_
#define ATTENDANT_CLIENT_COMMANDS_ITEMS_REPLACING_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "client/api/client.h"
#include "client/commands/items/item_source.h"

namespace attendant {

// FailedPrecondition if a stored item of `catalog` has the id of a row of the
// import and one of the parts that no row has; names the item, its parts and
// `way_out`. Lists all stored items, with those parts, until it finds one.
absl::Status CheckNothingIsLost(Client& client, const std::string& catalog,
                                const UnseenParts& unseen,
                                absl::string_view way_out);

}  // namespace attendant

#endif  // ATTENDANT_CLIENT_COMMANDS_ITEMS_REPLACING_H_
