// Build information as a metric.
#ifndef ATTENDANT_SERVICE_BUILD_METRICS_H_
#define ATTENDANT_SERVICE_BUILD_METRICS_H_

#include "service/metrics/metric_page.h"

namespace attendant {

// Adds attendant_build_info: always 1, with versions as labels.
void AddBuildMetrics(MetricPage& page);

}  // namespace attendant

#endif  // ATTENDANT_SERVICE_BUILD_METRICS_H_
