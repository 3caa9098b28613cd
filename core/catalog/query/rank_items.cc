#include "core/catalog/query/rank_items.h"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <span>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/attention/sequences/rank_candidates.h"
#include "core/base/status.h"
#include "core/catalog/query/attend.h"
#include "core/catalog/query/query_heads.h"
#include "core/catalog/segments/item_keys.h"

namespace attendant {
namespace {

// The event that a row of the matrices comes from.
struct Entry {
  bool profile = false;
  std::int64_t index = 0;
};

// The resolved history and profile.
struct Events {
  std::vector<Entry> entries;
  Matrix keys;
  Matrix values;
  std::vector<absl::Time> times;
  std::vector<ItemId> unknown_item_ids;
};

struct RankPlan {
  int field = 0;
  const KeyFieldSchema* schema = nullptr;
  std::int64_t value_dim = 0;  // of the pooled values
  std::int64_t interest_dim = 0;
  ScoreKind score_kind = ScoreKind::kScaledDot;
  // The request's vectors are compared without projection, and by direction.
  bool normalises = false;
};

// Checks an event that is a vector. Errors name no field, except a component's.
absl::Status CheckVector(const RankPlan& plan, std::span<const float> vector) {
  if (static_cast<std::int64_t>(vector.size()) != plan.schema->dim) {
    return InvalidField("", absl::StrCat(vector.size(), " components"),
                        absl::StrCat(plan.schema->dim, ", the dimension of '",
                                     plan.schema->name, "'"));
  }
  ATTENDANT_RETURN_IF_ERROR(ValidateFinite(vector, ""));
  if (plan.normalises && Norm(vector) == 0) {
    return InvalidField("", "a vector of norm 0", "a norm above 0 for COSINE");
  }
  if (plan.value_dim != plan.schema->dim) {
    return InvalidField("", "a vector, which is its own value",
                        absl::StrCat("an item_id: values of this catalog have ",
                                     plan.value_dim, " components"));
  }
  return absl::OkStatus();
}

absl::StatusOr<RankPlan> MakePlan(const Snapshot& snapshot,
                                  const RankQuery& query) {
  const CatalogSchema& schema = *snapshot.schema;
  RankPlan plan;
  ATTENDANT_ASSIGN_OR_RETURN(
      plan.field, FindKeyField(schema, query.key_field, "key_field"));
  plan.schema = &schema.key_fields[plan.field];
  plan.value_dim = schema.PooledDim(plan.field);
  const ScoreKind kind = plan.schema->score_kind;
  plan.score_kind =
      query.score_kind.value_or(IsDotLike(kind) ? kind : ScoreKind::kScaledDot);
  plan.normalises =
      plan.score_kind == ScoreKind::kCosine && query.model == nullptr;
  if (query.model != nullptr && query.model->multi_head() == nullptr) {
    return InvalidField("model", "a model of another kind",
                        "a multi-head model");
  }
  plan.interest_dim =
      query.model != nullptr
          ? query.model->multi_head()->output_dim(plan.value_dim)
          : plan.value_dim;
  if (query.result_count) {
    ATTENDANT_RETURN_IF_ERROR(
        CheckCount(*query.result_count, 1, kMaxSequenceCount, "result_count"));
  }
  const auto event_count =
      static_cast<std::int64_t>(query.history.size() + query.profile.size());
  if (event_count == 0) {
    return InvalidField("history", "nothing", "events here or in profile");
  }
  ATTENDANT_RETURN_IF_ERROR(CheckCount(event_count, 1, kMaxSequenceCount,
                                       "history", " events, profile included"));
  return plan;
}

// Returns the ids that a query for candidates leaves out.
absl::StatusOr<std::vector<ItemId>> DenyList(const CandidateQuery& asked,
                                             const RankQuery& query) {
  std::vector<ItemId> ids = asked.deny_list;
  const auto add = [&ids](const HistoryEvent& event) {
    const auto* id = std::get_if<ItemId>(&event.what);
    if (id != nullptr) ids.push_back(*id);
  };
  if (asked.exclude_events) {
    for (const HistoryEvent& event : query.history) {
      if (event.time <= query.time) add(event);
    }
    for (const HistoryEvent& event : query.profile) add(event);
  }
  ATTENDANT_RETURN_IF_ERROR(CheckCount(
      static_cast<std::int64_t>(ids.size()), 0, kMaxIdListCount,
      "candidates.query.deny_list.ids", " ids, events left out included"));
  return ids;
}

// The ids of events must have been checked before: an error of Attend about ids
// is then one of the deny list.
absl::StatusOr<std::vector<RowAddress>> FindCandidates(
    const Snapshot& snapshot, const RankQuery& query, const RankPlan& plan,
    const Interrupt& interrupt) {
  std::vector<RowAddress> addresses;
  if (const auto* asked = std::get_if<CandidateQuery>(&query.candidates)) {
    const NamedModel& own = snapshot.models[plan.field];
    const std::int64_t heads = own.model ? own.model->head_count() : 1;
    // The default shortlist of Attend, or less if there are many heads.
    const std::int64_t most_shortlisted = kMaxUnionScores / (heads * heads);
    ATTENDANT_RETURN_IF_ERROR(
        CheckCount(asked->candidate_count, 1,
                   std::min(kMaxSequenceCount, most_shortlisted),
                   "candidates.query.candidate_count"));
    // Attend checks the vector, since a model of the field may take another
    // dimension.
    AttendQuery attend;
    attend.query = asked->vector;
    attend.key_field = plan.schema->name;
    attend.result_count = asked->candidate_count;
    attend.shortlist_count =
        std::min(DefaultShortlistCount(asked->candidate_count,
                                       /*has_min_mass=*/false),
                 most_shortlisted);
    attend.omit_pooled_value = true;
    ATTENDANT_ASSIGN_OR_RETURN(attend.deny_list, DenyList(*asked, query));
    attend.filter = asked->filter;
    const absl::StatusOr<AttendAnswer> answer =
        Attend(snapshot, attend, interrupt);
    if (const auto field = FieldOf(answer.status())) {
      // candidates.query.vector is the query of Attend; the other fields are
      // next to it there.
      return PrefixField(answer.status(), absl::StartsWith(*field, "query")
                                              ? "candidates."
                                              : "candidates.query.");
    }
    ATTENDANT_RETURN_IF_ERROR(answer.status());
    for (const AttendedItem& item : answer->items) {
      addresses.push_back(item.address);
    }
    return addresses;
  }
  const auto& ids = std::get<std::vector<ItemId>>(query.candidates);
  constexpr absl::string_view kPath = "candidates.items.ids";
  ATTENDANT_RETURN_IF_ERROR(CheckCount(static_cast<std::int64_t>(ids.size()), 1,
                                       kMaxSequenceCount, kPath));
  absl::flat_hash_set<absl::string_view> seen;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const auto path = [&] { return absl::StrCat(kPath, "[", i, "]"); };
    const std::optional<RowAddress> address = snapshot.Find(ids[i]);
    // An id that was found is valid.
    if (!address) ATTENDANT_RETURN_IF_ERROR(ValidateItemId(ids[i], path()));
    if (!seen.insert(ids[i]).second) {
      return InvalidField(path(), absl::StrCat("'", ids[i], "' again"),
                          "distinct ids");
    }
    if (!address || snapshot.KeyOf(*address, plan.field).empty()) {
      return NoItemWithKey(*plan.schema, ids[i], path());
    }
    addresses.push_back(*address);
  }
  return addresses;
}

absl::Status AddEvent(const Snapshot& snapshot, const RankPlan& plan,
                      const HistoryEvent& event, const Entry& entry,
                      Events& events) {
  const absl::string_view list = entry.profile ? "profile" : "history";
  std::span<const float> key;
  std::span<const float> value;
  if (const auto* id = std::get_if<ItemId>(&event.what)) {
    const std::optional<RowAddress> address = snapshot.Find(*id);
    if (!address) {
      ATTENDANT_RETURN_IF_ERROR(ValidateItemId(
          *id, absl::StrCat(list, "[", entry.index, "].item_id")));
    }
    if (address) key = snapshot.KeyOf(*address, plan.field);
    if (key.empty()) {
      events.unknown_item_ids.push_back(*id);
      return absl::OkStatus();
    }
    const auto& segment = snapshot.segments[address->segment].segment;
    const float* own = segment->rows->ValueOf(address->row);
    value = own == nullptr
                ? key
                : std::span(own, static_cast<std::size_t>(plan.value_dim));
  } else {
    key = std::get<std::vector<float>>(event.what);
    const absl::Status checked = CheckVector(plan, key);
    if (!checked.ok()) {
      return PrefixField(checked,
                         absl::StrCat(list, "[", entry.index, "].vector"));
    }
    value = key;
  }
  events.keys.data.insert(events.keys.data.end(), key.begin(), key.end());
  events.values.data.insert(events.values.data.end(), value.begin(),
                            value.end());
  events.times.push_back(entry.profile ? absl::InfinitePast() : event.time);
  events.entries.push_back(entry);
  return absl::OkStatus();
}

absl::StatusOr<Events> FindEvents(const Snapshot& snapshot,
                                  const RankQuery& query, const RankPlan& plan,
                                  const Interrupt& interrupt) {
  Events events;
  const std::size_t most = query.history.size() + query.profile.size();
  events.keys.data.reserve(most * static_cast<std::size_t>(plan.schema->dim));
  events.values.data.reserve(most * static_cast<std::size_t>(plan.value_dim));
  for (const bool profile : {false, true}) {
    const auto& list = profile ? query.profile : query.history;
    for (std::size_t i = 0; i < list.size(); ++i) {
      ATTENDANT_RETURN_IF_ERROR(interrupt.Check());
      ATTENDANT_RETURN_IF_ERROR(
          AddEvent(snapshot, plan, list[i],
                   {profile, static_cast<std::int64_t>(i)}, events));
    }
  }
  const auto count = static_cast<std::int64_t>(events.entries.size());
  events.keys.row_count = events.values.row_count = count;
  events.keys.column_count = plan.schema->dim;
  events.values.column_count = plan.value_dim;
  return events;
}

// Interests are held for all candidates, even those that are not returned.
absl::Status CheckInterests(const RankPlan& plan, std::size_t candidate_count) {
  const std::int64_t bytes = static_cast<std::int64_t>(candidate_count) *
                             plan.interest_dim * std::int64_t{sizeof(float)};
  if (bytes <= kMaxInterestBytes) return absl::OkStatus();
  return OverLimit("candidates",
                   absl::StrCat(candidate_count, " with interests of ",
                                plan.interest_dim, " components"),
                   absl::StrCat("at most ", kMaxInterestBytes,
                                " bytes of interests in all"));
}

}  // namespace

absl::StatusOr<std::int64_t> InterestDim(const Snapshot& snapshot,
                                         const RankQuery& query) {
  ATTENDANT_ASSIGN_OR_RETURN(const RankPlan plan, MakePlan(snapshot, query));
  return plan.interest_dim;
}

absl::StatusOr<RankAnswer> RankItems(const Snapshot& snapshot,
                                     const RankQuery& query,
                                     const Interrupt& interrupt) {
  ATTENDANT_ASSIGN_OR_RETURN(const RankPlan plan, MakePlan(snapshot, query));
  ATTENDANT_ASSIGN_OR_RETURN(Events events,
                             FindEvents(snapshot, query, plan, interrupt));
  ATTENDANT_ASSIGN_OR_RETURN(const std::vector<RowAddress> addresses,
                             FindCandidates(snapshot, query, plan, interrupt));
  ATTENDANT_RETURN_IF_ERROR(CheckInterests(plan, addresses.size()));
  RankAnswer answer;
  answer.unknown_item_ids = std::move(events.unknown_item_ids);
  // A query over a catalog without items is checked too, and finds none.
  Matrix candidates = {
      static_cast<std::int64_t>(addresses.size()), plan.schema->dim, {}};
  candidates.data.reserve(addresses.size() *
                          static_cast<std::size_t>(plan.schema->dim));
  for (const RowAddress address : addresses) {
    ATTENDANT_RETURN_IF_ERROR(interrupt.Check());
    const std::span<const float> key = snapshot.KeyOf(address, plan.field);
    candidates.data.insert(candidates.data.end(), key.begin(), key.end());
  }
  RankInput input;
  if (query.model != nullptr) input.heads = query.model->multi_head();
  input.candidates = candidates.view();
  input.keys = events.keys.view();
  input.values = events.values.view();
  input.times = events.times;
  input.time = query.time;
  input.score_kind = plan.score_kind;
  input.temperature = query.temperature.value_or(plan.schema->temperature);
  input.activation_kind = query.activation_kind;
  input.attribution_count = query.attribution_count;
  input.approximation = query.approximation;
  input.interrupt = interrupt;
  ATTENDANT_ASSIGN_OR_RETURN(const RankedInterests ranked,
                             RankCandidates(input));
  answer.future_event_count = ranked.future_event_count;
  answer.scored_count = ranked.scored_count;

  std::vector<std::size_t> order(addresses.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto id = [&](std::size_t i) {
    return snapshot.IdOf(addresses[i].segment, addresses[i].row);
  };
  std::ranges::sort(order, [&](std::size_t a, std::size_t b) {
    if (ranked.scores[a] != ranked.scores[b]) {
      return ranked.scores[a] > ranked.scores[b];
    }
    return id(a) < id(b);
  });
  if (query.result_count &&
      *query.result_count < static_cast<std::int64_t>(order.size())) {
    order.resize(static_cast<std::size_t>(*query.result_count));
  }
  for (const std::size_t i : order) {
    ATTENDANT_RETURN_IF_ERROR(interrupt.Check());
    const std::span<const float> interest =
        ranked.interests.view().Row(static_cast<std::int64_t>(i));
    RankedItem& item = answer.items.emplace_back();
    item.address = addresses[i];
    item.score = ranked.scores[i];
    item.interest.assign(interest.begin(), interest.end());
    for (const EventWeight& event : ranked.attributions[i]) {
      const Entry& entry = events.entries[event.event];
      item.events.push_back({entry.profile, entry.index, event.weight});
    }
  }
  return answer;
}

}  // namespace attendant
