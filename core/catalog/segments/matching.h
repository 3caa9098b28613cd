// Finds the items that a filter matches.
#ifndef ATTENDANT_CORE_CATALOG_SEGMENTS_MATCHING_H_
#define ATTENDANT_CORE_CATALOG_SEGMENTS_MATCHING_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/base/interrupt.h"
#include "core/catalog/filter/filter.h"
#include "core/catalog/segments/mask.h"
#include "core/catalog/segments/snapshot.h"
#include "core/storage/records/item.h"

namespace attendant {

// Calls `visit` with the id of each item that `masks` allow, in no particular
// order. They must be of `state`, with a filter or an allow list. Ids are valid
// as long as the state's rows. Errors: Cancelled, DeadlineExceeded.
absl::Status ForEachAllowed(const Masks& masks, const Snapshot& state,
                            absl::FunctionRef<void(absl::string_view id)> visit,
                            const Interrupt& interrupt);

struct MatchingPage {
  std::vector<std::string> ids;  // ascending
  std::int64_t total_count = 0;  // items that match, on this page or not
};

// Returns the first `most` >= 1 of the matching ids after `after`. Looks at all
// that match. Errors as Masks::Keep.
absl::StatusOr<MatchingPage> FindMatchingPage(const Snapshot& state,
                                              const Filter& filter,
                                              absl::string_view after,
                                              std::size_t most,
                                              const Interrupt& interrupt);

// True if the filter, which must be valid for the schema, matches the item.
// Prepares the filter anew: for few items. Errors: Cancelled, DeadlineExceeded.
absl::StatusOr<bool> Matches(const Filter& filter, const CatalogSchema& schema,
                             const Item& item, const Interrupt& interrupt);

}  // namespace attendant

#endif  // ATTENDANT_CORE_CATALOG_SEGMENTS_MATCHING_H_
