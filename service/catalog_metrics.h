// What catalogs hold and what they cost, looked at when it is asked for.
#ifndef ATTENDANT_SERVICE_CATALOG_METRICS_H_
#define ATTENDANT_SERVICE_CATALOG_METRICS_H_

#include "core/catalog/live/catalog_set.h"
#include "service/metrics/metric_page.h"

namespace attendant {

// Gauges of each catalog, by name, and of memory.
void AddCatalogMetrics(const CatalogSet& catalogs, MetricPage& page);

}  // namespace attendant

#endif  // ATTENDANT_SERVICE_CATALOG_METRICS_H_
