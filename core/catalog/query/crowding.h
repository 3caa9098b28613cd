// Diversity by attributes: at most so many returned items of the same brand.
#ifndef ATTENDANT_CORE_CATALOG_QUERY_CROWDING_H_
#define ATTENDANT_CORE_CATALOG_QUERY_CROWDING_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "core/base/interrupt.h"
#include "core/catalog/query/attend.h"
#include "core/catalog/segments/snapshot.h"

namespace attendant {

// A CrowdingLimit, resolved: an attribute with values that can be equal.
struct ResolvedCrowdingLimit {
  int attribute = 0;
  std::int64_t max_count = 1;
};

// Resolves `limits` against the schema. InvalidArgument, naming
// crowding_limits[i], if an attribute or a count does not fit;
// ResourceExhausted if there are more than kMaxCrowdingLimitCount.
absl::StatusOr<std::vector<ResolvedCrowdingLimit>> ResolveCrowdingLimits(
    const CatalogSchema& schema, const std::vector<CrowdingLimit>& limits);

// Returns the positions of the first `count` of `rows`, in their order, without
// the crowded ones: those with a value that max_count rows before them have,
// crowded ones apart. A list has the value of each of its texts. Errors of the
// interrupt.
absl::StatusOr<std::vector<std::size_t>> WithoutCrowds(
    const Snapshot& snapshot, std::span<const ResolvedCrowdingLimit> limits,
    std::span<const RowAddress> rows, std::size_t count,
    const Interrupt& interrupt);

}  // namespace attendant

#endif  // ATTENDANT_CORE_CATALOG_QUERY_CROWDING_H_
