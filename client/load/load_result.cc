#include "client/load/load_result.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace attendant {

void LoadResult::Add(const absl::Status& status, std::int64_t latency_ns) {
  ++status_counts[status.code()];
  if (status.ok()) {
    latencies_ns.push_back(latency_ns);
  } else {
    ++error_counts[std::string(status.message())];
  }
}

void LoadResult::Merge(const LoadResult& other) {
  latencies_ns.insert(latencies_ns.end(), other.latencies_ns.begin(),
                      other.latencies_ns.end());
  for (const auto& [code, count] : other.status_counts) {
    status_counts[code] += count;
  }
  for (const auto& [message, count] : other.error_counts) {
    error_counts[message] += count;
  }
  late_count += other.late_count;
  latest_ns = std::max(latest_ns, other.latest_ns);
}

void LoadResult::Finish() {
  std::sort(latencies_ns.begin(), latencies_ns.end());
}

std::int64_t LoadResult::request_count() const {
  std::int64_t count = 0;
  for (const auto& [code, code_count] : status_counts) count += code_count;
  return count;
}

std::int64_t LoadResult::failed_count() const {
  return request_count() - static_cast<std::int64_t>(latencies_ns.size());
}

std::int64_t LoadResult::refused_count() const {
  std::int64_t count = 0;
  for (const auto& [code, code_count] : status_counts) {
    if (code == absl::StatusCode::kResourceExhausted ||
        code == absl::StatusCode::kUnavailable) {
      count += code_count;
    }
  }
  return count;
}

double LoadResult::requests_per_second() const {
  return static_cast<double>(request_count()) / absl::ToDoubleSeconds(duration);
}

double LoadResult::answers_per_second() const {
  return static_cast<double>(latencies_ns.size()) /
         absl::ToDoubleSeconds(duration);
}

double LoadResult::mean_latency_ns() const {
  if (latencies_ns.empty()) return 0;
  return std::accumulate(latencies_ns.begin(), latencies_ns.end(), 0.0) /
         static_cast<double>(latencies_ns.size());
}

std::int64_t LoadResult::LatencyAtPercentile(double percent) const {
  if (latencies_ns.empty()) return 0;
  // 99.9 % of 1,000 is 999, also where the product is a rounding above.
  const double share = percent * static_cast<double>(latencies_ns.size()) / 100;
  const double rank = std::ceil(share * (1 - 1e-12));
  const std::size_t last = latencies_ns.size() - 1;
  return latencies_ns[std::min(
      last, static_cast<std::size_t>(std::max(rank, 1.0)) - 1)];
}

}  // namespace attendant
