#include "service/metrics/metric_page.h"

#include <prometheus/metric_type.h>
#include <prometheus/text_serializer.h>

#include <cstddef>
#include <cstdint>

namespace attendant {

void MetricPage::AddCounter(absl::string_view name, absl::string_view help,
                            double value, const Labels& labels) {
  Add(name, help, prometheus::MetricType::Counter, labels).counter.value =
      value;
}

void MetricPage::AddGauge(absl::string_view name, absl::string_view help,
                          double value, const Labels& labels) {
  Add(name, help, prometheus::MetricType::Gauge, labels).gauge.value = value;
}

void MetricPage::AddHistogram(absl::string_view name, absl::string_view help,
                              const Histogram& histogram,
                              const Labels& labels) {
  const Histogram::Reading reading = histogram.Read();
  auto& into =
      Add(name, help, prometheus::MetricType::Histogram, labels).histogram;
  std::int64_t count = 0;
  for (std::size_t i = 0; i < histogram.bounds().size(); ++i) {
    count += reading.counts[i];
    into.bucket.push_back(
        {static_cast<std::uint64_t>(count), histogram.bounds()[i]});
  }
  into.sample_count = static_cast<std::uint64_t>(reading.count());
  into.sample_sum = reading.sum;
}

std::string MetricPage::Text() const {
  return prometheus::TextSerializer().Serialize(families_);
}

prometheus::ClientMetric& MetricPage::Add(absl::string_view name,
                                          absl::string_view help,
                                          prometheus::MetricType type,
                                          const Labels& labels) {
  auto position = positions_.find(name);
  if (position == positions_.end()) {
    position = positions_.emplace(std::string(name), families_.size()).first;
    families_.push_back({std::string(name), std::string(help), type, {}});
  }
  prometheus::ClientMetric& metric =
      families_[position->second].metric.emplace_back();
  for (const auto& [label, value] : labels) {
    metric.label.push_back({std::string(label), value});
  }
  return metric;
}

}  // namespace attendant
