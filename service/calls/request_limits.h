// Limits on requests that an operator may lower.
#ifndef ATTENDANT_SERVICE_CALLS_REQUEST_LIMITS_H_
#define ATTENDANT_SERVICE_CALLS_REQUEST_LIMITS_H_

#include <cstdint>

#include "absl/status/status.h"
#include "attendant/v1/attention_service.pb.h"
#include "attendant/v1/catalog_service.pb.h"
#include "attendant/v1/item_service.pb.h"
#include "attendant/v1/sequence_service.pb.h"
#include "core/base/ids.h"
#include "core/catalog/filter/filter.h"
#include "core/catalog/filter/parse_filter.h"
#include "core/catalog/live/catalog_set.h"
#include "core/catalog/query/attend.h"
#include "core/storage/records/item.h"

namespace attendant {

inline constexpr int kMaxBatchSize = 256;

// The defaults are also the maximums, which hold in any case. All limits are at
// least 1.
struct RequestLimits {
  std::int64_t dimension = kMaxDimension;  // of keys and values in new catalogs
  std::int64_t batch = kMaxBatchSize;      // items, ids or queries in a batch
  std::int64_t id_bytes = kMaxItemIdBytes;  // of written items
  // Total text in the attributes of a written item.
  std::int64_t attribute_bytes = kMaxAttributeBytes;
  std::int64_t filter_bytes = kMaxFilterBytes;  // of a filter as text
  int filter_depth = kMaxFilterDepth;           // nesting depth of a filter
  // Limits of a query. A field it leaves out counts with its default value,
  // which may exceed a limit like any other value.
  std::int64_t result_count = kMaxResultCount;
  std::int64_t shortlist_count = kMaxShortlistCount;
  std::int64_t example_count = kMaxExampleCount;  // of one head
  std::int64_t id_list_count = kMaxIdListCount;  // ids in an allow or deny list
  std::int64_t opaque_value_bytes = kMaxOpaqueValueBytes;  // of a written item
  std::int64_t catalog_count =
      kMaxCatalogs;  // enforced through CatalogSet::Options
};

// OK if the item is within the limits; otherwise ResourceExhausted naming the
// field.
absl::Status CheckItem(const RequestLimits& limits, const v1::Item& item);

// OK if the schema of a new catalog is within the limits; otherwise
// ResourceExhausted naming the field.
absl::Status CheckNewSchema(const RequestLimits& limits,
                            const v1::CatalogSchema& schema);

// OK if the request is within the limits; otherwise ResourceExhausted naming
// the field. The fixed maximums are checked elsewhere, with the same error; so
// are the items of an import and the queries of a batch, each of which may be
// refused separately.
template <typename Request>
absl::Status CheckLimits(const RequestLimits& /*limits*/,
                         const Request& /*request*/) {
  return absl::OkStatus();
}
absl::Status CheckLimits(const RequestLimits& limits,
                         const v1::BatchUpsertItemsRequest& request);
absl::Status CheckLimits(const RequestLimits& limits,
                         const v1::BatchUpdateItemsRequest& request);
absl::Status CheckLimits(const RequestLimits& limits,
                         const v1::BatchGetItemsRequest& request);
absl::Status CheckLimits(const RequestLimits& limits,
                         const v1::BatchDeleteItemsRequest& request);
absl::Status CheckLimits(const RequestLimits& limits,
                         const v1::ListItemsRequest& request);
absl::Status CheckLimits(const RequestLimits& limits,
                         const v1::DeleteMatchingItemsRequest& request);
absl::Status CheckLimits(const RequestLimits& limits,
                         const v1::AttendRequest& request);
absl::Status CheckLimits(const RequestLimits& limits,
                         const v1::BatchAttendRequest& request);
absl::Status CheckLimits(const RequestLimits& limits,
                         const v1::RankCandidatesRequest& request);

}  // namespace attendant

#endif  // ATTENDANT_SERVICE_CALLS_REQUEST_LIMITS_H_
