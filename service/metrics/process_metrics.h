// The standard Prometheus metrics of a process.
#ifndef ATTENDANT_SERVICE_METRICS_PROCESS_METRICS_H_
#define ATTENDANT_SERVICE_METRICS_PROCESS_METRICS_H_

#include "service/metrics/metric_page.h"

namespace attendant {

// Adds CPU time, memory, open files and start time of this process, except what
// the system does not report.
void AddProcessMetrics(MetricPage& page);

}  // namespace attendant

#endif  // ATTENDANT_SERVICE_METRICS_PROCESS_METRICS_H_
