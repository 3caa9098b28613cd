// How often each latency was met.
#ifndef ATTENDANT_CLIENT_LOAD_RESULTS_LATENCY_HISTOGRAM_H_
#define ATTENDANT_CLIENT_LOAD_RESULTS_LATENCY_HISTOGRAM_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace attendant {

// Milliseconds; as text, with three decimals.
double ToMs(std::int64_t nanoseconds);
std::string FormatMs(std::int64_t nanoseconds);

// Counts of latencies in buckets that grow with them, in the manner of Tene's
// HdrHistogram: exact below 2,048 ns, and off by less than 0.1 % above. Memory
// is bounded (250 KB), however many are added. Not thread-safe.
class LatencyHistogram {
 public:
  // Below 0 counts as 0.
  void Add(std::int64_t latency_ns);
  void Merge(const LatencyHistogram& other);
  void Clear();

  std::int64_t count() const { return count_; }
  // Of what was added, exactly; 0 if nothing was.
  std::int64_t min_ns() const { return min_ns_; }
  std::int64_t max_ns() const { return max_ns_; }
  double mean_ns() const;

  // The smallest latency, as its bucket has it, that at least `percent` of all
  // don't exceed; percent in (0, 100]. 0 if there are none.
  std::int64_t AtPercentile(double percent) const;
  // How many are not among those that it covers.
  std::int64_t CountAbove(double percent) const {
    return count_ - RankOf(percent);
  }

 private:
  // How many of all have to be covered; 0 if there are none.
  std::int64_t RankOf(double percent) const;
  static std::size_t BucketOf(std::int64_t latency_ns);
  // The largest latency of a bucket.
  static std::int64_t TopOf(std::size_t bucket);

  std::vector<std::int64_t> counts_;  // up to the last that is not 0
  std::int64_t count_ = 0;
  std::int64_t min_ns_ = 0;
  std::int64_t max_ns_ = 0;
  double sum_ns_ = 0;
};

}  // namespace attendant

#endif  // ATTENDANT_CLIENT_LOAD_RESULTS_LATENCY_HISTOGRAM_H_
