// What catalogs hold and what they cost, looked at when it is asked for.
#ifndef ATTENDANT_SERVICE_CATALOG_METRICS_H_
#define ATTENDANT_SERVICE_CATALOG_METRICS_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "core/catalog/live/catalog_set.h"
#include "service/metrics/metric_page.h"

namespace attendant {

// Gauges of each catalog, by name, of memory and, unless it is an error, of the
// disk.
void AddCatalogMetrics(const CatalogSet& catalogs,
                       const absl::StatusOr<std::uint64_t>& free_disk_bytes,
                       MetricPage& page);

}  // namespace attendant

#endif  // ATTENDANT_SERVICE_CATALOG_METRICS_H_
