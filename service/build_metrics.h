// What this program was made of.
#ifndef ATTENDANT_SERVICE_BUILD_METRICS_H_
#define ATTENDANT_SERVICE_BUILD_METRICS_H_

#include "service/metrics/metric_page.h"

namespace attendant {

// attendant_build_info, which is 1: versions are its labels.
void AddBuildMetrics(MetricPage& page);

}  // namespace attendant

#endif  // ATTENDANT_SERVICE_BUILD_METRICS_H_
