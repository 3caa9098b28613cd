#include "client/commands/attention/rank_json.h"

#include <google/protobuf/util/time_util.h>

#include <cstddef>

#include "absl/strings/str_cat.h"
#include "client/commands/shared/command.h"
#include "nlohmann/json.hpp"

namespace attendant {
namespace {

using Json = nlohmann::ordered_json;

Json Parse(const google::protobuf::Message& message) {
  return Json::parse(ToJson(message), nullptr, /*allow_exceptions=*/false);
}

void AddAttributes(const ItemsById& items, const std::string& id, Json& json) {
  const auto item = items.find(id);
  if (item != items.end()) {
    json["attributes"] = Parse(item->second)["attributes"];
  }
}

}  // namespace

std::string RankJson(const v1::RankCandidatesRequest& request,
                     const v1::RankCandidatesResponse& response,
                     const ItemsById& items) {
  Json json = Parse(response);
  for (int c = 0; c < response.candidates_size(); ++c) {
    const v1::RankedCandidate& candidate = response.candidates(c);
    Json& candidate_json = json["candidates"][c];
    AddAttributes(items, candidate.id(), candidate_json);
    for (int e = 0; e < candidate.events_size(); ++e) {
      const v1::EventAttribution& event = candidate.events(e);
      const v1::HistoryEvent& from = event.profile()
                                         ? request.profile(event.index())
                                         : request.history(event.index());
      Json& event_json = candidate_json["events"][e];
      if (!from.has_vector()) {
        event_json["itemId"] = from.item_id();
        AddAttributes(items, from.item_id(), event_json);
      }
      if (from.has_time()) {
        event_json["time"] =
            google::protobuf::util::TimeUtil::ToString(from.time());
      }
    }
  }
  return absl::StrCat(json.dump(1), "\n");
}

}  // namespace attendant
