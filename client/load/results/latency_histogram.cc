#include "client/load/results/latency_histogram.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "absl/strings/str_format.h"

namespace attendant {
namespace {

// The number of buckets from one power of two to the next.
constexpr int kStepBits = 10;
constexpr std::int64_t kSteps = std::int64_t{1} << kStepBits;
// 2^41 ns is over half an hour; longer latencies count as that.
constexpr std::int64_t kMaxNs = (std::int64_t{1} << 41) - 1;

}  // namespace

std::size_t LatencyHistogram::BucketOf(std::int64_t latency_ns) {
  const std::int64_t value = std::min(latency_ns, kMaxNs);
  // The shifted value is in [kSteps, 2 kSteps).
  const int width = std::bit_width(static_cast<std::uint64_t>(value));
  const int shift = std::max(0, width - kStepBits - 1);
  return static_cast<std::size_t>(shift * kSteps + (value >> shift));
}

std::int64_t LatencyHistogram::TopOf(std::size_t bucket) {
  const auto number = static_cast<std::int64_t>(bucket);
  const std::int64_t shift = std::max<std::int64_t>(0, number / kSteps - 1);
  return ((number - shift * kSteps + 1) << shift) - 1;
}

void LatencyHistogram::Add(std::int64_t latency_ns) {
  latency_ns = std::max<std::int64_t>(0, latency_ns);
  const std::size_t bucket = BucketOf(latency_ns);
  if (bucket >= counts_.size()) counts_.resize(bucket + 1);
  ++counts_[bucket];
  min_ns_ = count_ == 0 ? latency_ns : std::min(min_ns_, latency_ns);
  max_ns_ = std::max(max_ns_, latency_ns);
  sum_ns_ += static_cast<double>(latency_ns);
  ++count_;
}

void LatencyHistogram::Merge(const LatencyHistogram& other) {
  if (other.count_ == 0) return;
  if (other.counts_.size() > counts_.size()) {
    counts_.resize(other.counts_.size());
  }
  for (std::size_t b = 0; b < other.counts_.size(); ++b) {
    counts_[b] += other.counts_[b];
  }
  min_ns_ = count_ == 0 ? other.min_ns_ : std::min(min_ns_, other.min_ns_);
  max_ns_ = std::max(max_ns_, other.max_ns_);
  sum_ns_ += other.sum_ns_;
  count_ += other.count_;
}

void LatencyHistogram::Clear() {
  std::ranges::fill(counts_, 0);
  count_ = 0;
  min_ns_ = 0;
  max_ns_ = 0;
  sum_ns_ = 0;
}

double LatencyHistogram::mean_ns() const {
  return count_ == 0 ? 0 : sum_ns_ / static_cast<double>(count_);
}

std::int64_t LatencyHistogram::RankOf(double percent) const {
  // 99.9 % of 1,000 is 999, even if rounding makes the product greater.
  const double share = percent * static_cast<double>(count_) / 100;
  return static_cast<std::int64_t>(std::ceil(share * (1 - 1e-12)));
}

std::int64_t LatencyHistogram::AtPercentile(double percent) const {
  if (count_ == 0) return 0;
  const std::int64_t wanted = RankOf(percent);
  std::int64_t covered = 0;
  for (std::size_t b = 0; b < counts_.size(); ++b) {
    covered += counts_[b];
    if (covered >= wanted) return std::clamp(TopOf(b), min_ns_, max_ns_);
  }
  return max_ns_;
}

double ToMs(std::int64_t nanoseconds) {
  return static_cast<double>(nanoseconds) / 1e6;
}

std::string FormatMs(std::int64_t nanoseconds) {
  return absl::StrFormat("%.3f", ToMs(nanoseconds));
}

}  // namespace attendant
