// Metrics of a worker pool.
#ifndef ATTENDANT_SERVICE_QUEUE_POOL_METRICS_H_
#define ATTENDANT_SERVICE_QUEUE_POOL_METRICS_H_

#include "absl/strings/string_view.h"
#include "service/metrics/metric_page.h"
#include "service/queue/work_queue.h"

namespace attendant {

// Adds the counts of the pool `name`, which becomes the label "pool".
void AddPoolMetrics(absl::string_view name, const WorkCounts& counts,
                    MetricPage& page);

}  // namespace attendant

#endif  // ATTENDANT_SERVICE_QUEUE_POOL_METRICS_H_
