// Counts latencies.
#ifndef ATTENDANT_CLIENT_LOAD_RESULTS_LATENCY_HISTOGRAM_H_
#define ATTENDANT_CLIENT_LOAD_RESULTS_LATENCY_HISTOGRAM_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace attendant {

// Convert to milliseconds; FormatMs as text with three decimals.
double ToMs(std::int64_t nanoseconds);
std::string FormatMs(std::int64_t nanoseconds);

// A histogram of latencies with buckets that grow with the latency, as in
// Tene's HdrHistogram: exact below 2,048 ns and within 0.1 % above. Takes at
// most 250 KB. Not thread-safe.
class LatencyHistogram {
 public:
  // Adds a latency; one below 0 counts as 0.
  void Add(std::int64_t latency_ns);
  void Merge(const LatencyHistogram& other);
  void Clear();

  std::int64_t count() const { return count_; }
  // Exact values of what was added; 0 if nothing was.
  std::int64_t min_ns() const { return min_ns_; }
  std::int64_t max_ns() const { return max_ns_; }
  double mean_ns() const;

  // Returns the smallest latency, to the precision of a bucket, that at least
  // `percent` of all don't exceed; percent in (0, 100]. 0 if there are none.
  std::int64_t AtPercentile(double percent) const;
  // Returns how many latencies are beyond that percentile.
  std::int64_t CountAbove(double percent) const {
    return count_ - RankOf(percent);
  }

 private:
  // Returns how many latencies the percentile covers; 0 if there are none.
  std::int64_t RankOf(double percent) const;
  static std::size_t BucketOf(std::int64_t latency_ns);
  // Returns the largest latency of a bucket.
  static std::int64_t TopOf(std::size_t bucket);

  std::vector<std::int64_t> counts_;  // by bucket, up to the last non-zero one
  std::int64_t count_ = 0;
  std::int64_t min_ns_ = 0;
  std::int64_t max_ns_ = 0;
  double sum_ns_ = 0;
};

}  // namespace attendant

#endif  // ATTENDANT_CLIENT_LOAD_RESULTS_LATENCY_HISTOGRAM_H_
