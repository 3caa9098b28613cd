// Formats ranked candidates as JSON.
#ifndef ATTENDANT_CLIENT_COMMANDS_ATTENTION_RANK_JSON_H_
#define ATTENDANT_CLIENT_COMMANDS_ATTENTION_RANK_JSON_H_

#include <string>

#include "absl/container/flat_hash_map.h"
#include "attendant/v1/item_service.pb.h"
#include "attendant/v1/sequence_service.pb.h"

namespace attendant {

// Items by id, with the fields that were read.
using ItemsById = absl::flat_hash_map<std::string, v1::Item>;

// Returns the reply in the JSON of ToJson, extended as follows: each event has
// the itemId and time of the request's event, where given; each event and each
// candidate has the attributes of its item in `items`. The reply must have
// passed CheckShape.
std::string RankJson(const v1::RankCandidatesRequest& request,
                     const v1::RankCandidatesResponse& response,
                     const ItemsById& items);

}  // namespace attendant

#endif  // ATTENDANT_CLIENT_COMMANDS_ATTENTION_RANK_JSON_H_
