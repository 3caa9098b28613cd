// Finds the items that a filter matches, for a delete of them.
#ifndef ATTENDANT_CORE_CATALOG_WRITES_MATCHING_IDS_H_
#define ATTENDANT_CORE_CATALOG_WRITES_MATCHING_IDS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/base/interrupt.h"
#include "core/catalog/filter/filter.h"
#include "core/catalog/segments/snapshot.h"
#include "core/storage/records/store.h"

namespace attendant {

// Ids of items, valid as long as the rows of the state that they are of.
using IdViews = std::vector<absl::string_view>;

// Returns the ids of live rows that match the filter; of these items only,
// unless `only` is null.
absl::StatusOr<IdViews> MatchingIds(const Snapshot& state, const Filter& filter,
                                    const std::vector<std::string>* only,
                                    const Interrupt& interrupt);

// Returns the ids of live rows of `state` that match the filter, given the ids
// `seen_ids` of those of an older state. `store` is in the state `state`, and
// has a log of the changes since the older one. Returns nothing if they are
// more than max_changes; it then reads no further.
absl::StatusOr<std::optional<IdViews>> MatchingIdsSince(
    const Snapshot& seen, IdViews seen_ids, const Snapshot& state,
    const CatalogStore& store, std::int64_t max_changes, const Filter& filter,
    const Interrupt& interrupt);

}  // namespace attendant

#endif  // ATTENDANT_CORE_CATALOG_WRITES_MATCHING_IDS_H_
