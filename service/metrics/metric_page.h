// Builds the text that Prometheus scrapes.
#ifndef ATTENDANT_SERVICE_METRICS_METRIC_PAGE_H_
#define ATTENDANT_SERVICE_METRICS_METRIC_PAGE_H_

#include <prometheus/metric_family.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "service/metrics/instruments.h"

namespace attendant {

// Metrics in the order in which they were first added. Metrics with the same
// name form a family and differ in their labels. Not thread-safe.
//
//   MetricPage page;
//   page.AddGauge("attendant_queue_depth", "Requests that wait.", 3,
//                 {{"pool", "attend"}});
//   page.Text();
class MetricPage {
 public:
  using Labels = std::vector<std::pair<absl::string_view, std::string>>;

  // Adds a number that only increases; its name ends in _total.
  void AddCounter(absl::string_view name, absl::string_view help, double value,
                  const Labels& labels = {});
  void AddGauge(absl::string_view name, absl::string_view help, double value,
                const Labels& labels = {});
  void AddHistogram(absl::string_view name, absl::string_view help,
                    const Histogram& histogram, const Labels& labels = {});

  // Returns the page in Prometheus text format, version 0.0.4.
  std::string Text() const;

 private:
  // Adds a metric without a value to the family `name`.
  prometheus::ClientMetric& Add(absl::string_view name, absl::string_view help,
                                prometheus::MetricType type,
                                const Labels& labels);

  std::vector<prometheus::MetricFamily> families_;
  std::map<std::string, std::size_t, std::less<>> positions_;  // by name
};

}  // namespace attendant

#endif  // ATTENDANT_SERVICE_METRICS_METRIC_PAGE_H_
