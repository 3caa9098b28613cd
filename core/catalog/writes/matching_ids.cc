#include "core/catalog/writes/matching_ids.h"

#include <cstdint>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "core/base/status.h"
#include "core/catalog/segments/mask.h"
#include "core/catalog/segments/matching.h"

namespace attendant {

absl::StatusOr<IdViews> MatchingIds(const Snapshot& state, const Filter& filter,
                                    const std::vector<std::string>* only,
                                    const Interrupt& interrupt) {
  Masks masks(state);
  if (only != nullptr) {
    ATTENDANT_RETURN_IF_ERROR(masks.AllowOnly(*only, "ids", interrupt));
  }
  ATTENDANT_RETURN_IF_ERROR(masks.Keep(filter, interrupt));
  IdViews ids;
  const auto take = [&](absl::string_view id) { ids.push_back(id); };
  ATTENDANT_RETURN_IF_ERROR(ForEachAllowed(masks, state, take, interrupt));
  return ids;
}

absl::StatusOr<std::optional<IdViews>> MatchingIdsSince(
    const Snapshot& seen, IdViews seen_ids, const Snapshot& state,
    const CatalogStore& store, std::int64_t max_changes, const Filter& filter,
    const Interrupt& interrupt) {
  absl::flat_hash_set<std::string> changed;
  // Not the size of `changed`: a few items may have changed any number of
  // times.
  std::int64_t change_count = 0;
  ATTENDANT_RETURN_IF_ERROR(
      store.ScanChanges(seen.sequence, [&](absl::string_view id) {
        if (++change_count > max_changes) return false;
        changed.emplace(id);
        return true;
      }));
  if (change_count > max_changes) return std::nullopt;
  std::erase_if(seen_ids,
                [&](absl::string_view id) { return changed.contains(id); });
  const std::vector<std::string> again(changed.begin(), changed.end());
  ATTENDANT_ASSIGN_OR_RETURN(const IdViews matching,
                             MatchingIds(state, filter, &again, interrupt));
  seen_ids.insert(seen_ids.end(), matching.begin(), matching.end());
  return seen_ids;
}

}  // namespace attendant
