// Ranked candidates for programs.
#ifndef ATTENDANT_CLIENT_COMMANDS_ATTENTION_RANK_JSON_H_
#define ATTENDANT_CLIENT_COMMANDS_ATTENTION_RANK_JSON_H_

#include <string>

#include "absl/container/flat_hash_map.h"
#include "attendant/v1/item_service.pb.h"
#include "attendant/v1/sequence_service.pb.h"

namespace attendant {

// Items with what was read of them, by id.
using ItemsById = absl::flat_hash_map<std::string, v1::Item>;

// The reply as ToJson, and with each event its itemId and time, where the
// request has them; with it, and with each candidate, the attributes of its
// item in `items`. The reply has the shape that CheckShape wants.
std::string RankJson(const v1::RankCandidatesRequest& request,
                     const v1::RankCandidatesResponse& response,
                     const ItemsById& items);

}  // namespace attendant

#endif  // ATTENDANT_CLIENT_COMMANDS_ATTENTION_RANK_JSON_H_
