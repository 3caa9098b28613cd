// Metrics about the contents and cost of catalogs, computed on request.
#ifndef ATTENDANT_SERVICE_CATALOG_METRICS_H_
#define ATTENDANT_SERVICE_CATALOG_METRICS_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "core/catalog/live/catalog_set.h"
#include "service/metrics/metric_page.h"

namespace attendant {

// Adds gauges for each catalog, labelled by name, for memory and, unless
// `free_disk_bytes` is an error, for the disk.
void AddCatalogMetrics(const CatalogSet& catalogs,
                       const absl::StatusOr<std::uint64_t>& free_disk_bytes,
                       MetricPage& page);

}  // namespace attendant

#endif  // ATTENDANT_SERVICE_CATALOG_METRICS_H_
