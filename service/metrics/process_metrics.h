// What any process tells Prometheus of itself, by the names that it has for it.
#ifndef ATTENDANT_SERVICE_METRICS_PROCESS_METRICS_H_
#define ATTENDANT_SERVICE_METRICS_PROCESS_METRICS_H_

#include "service/metrics/metric_page.h"

namespace attendant {

// CPU time, memory, open files and start time of this process. What the system
// does not tell is left out.
void AddProcessMetrics(MetricPage& page);

}  // namespace attendant

#endif  // ATTENDANT_SERVICE_METRICS_PROCESS_METRICS_H_
