#include "service/metrics/instruments.h"

#include <cstdlib>
#include <numeric>

namespace attendant {

std::size_t ThreadShard() {
  static std::atomic<std::size_t> next = 0;
  thread_local const std::size_t shard =
      next.fetch_add(1, std::memory_order_relaxed) % kShardCount;
  return shard;
}

Histogram::Histogram(std::span<const double> bounds) : bounds_(bounds) {
  if (bounds.size() > kMaxBoundCount) std::abort();
}

void Histogram::Observe(double value) {
  std::size_t bucket = 0;
  while (bucket < bounds_.size() && !(value <= bounds_[bucket])) ++bucket;
  Shard& shard = shards_[ThreadShard()];
  shard.counts[bucket].fetch_add(1, std::memory_order_relaxed);
  shard.sum.fetch_add(value, std::memory_order_relaxed);
}

Histogram::Reading Histogram::Read() const {
  Reading reading;
  reading.counts.assign(bounds_.size() + 1, 0);
  for (const Shard& shard : shards_) {
    for (std::size_t i = 0; i < reading.counts.size(); ++i) {
      reading.counts[i] += shard.counts[i].load(std::memory_order_relaxed);
    }
    reading.sum += shard.sum.load(std::memory_order_relaxed);
  }
  return reading;
}

std::int64_t Histogram::Reading::count() const {
  return std::accumulate(counts.begin(), counts.end(), std::int64_t{0});
}

std::span<const double> SecondsBounds() {
  static constexpr double kBounds[] = {
      50e-6, 100e-6, 250e-6, 500e-6, 1e-3, 2.5e-3, 5e-3, 10e-3, 25e-3, 50e-3,
      0.1,   0.25,   0.5,    1,      2.5,  5,      10,   30,    60};
  return kBounds;
}

std::span<const double> CountBounds() {
  static constexpr double kBounds[] = {1, 2, 4, 8, 16, 32, 64, 128, 256};
  return kBounds;
}

std::span<const double> ShareBounds() {
  static constexpr double kBounds[] = {0.001, 0.01, 0.05, 0.1,  0.25,  0.5,
                                       0.75,  0.9,  0.95, 0.99, 0.999, 1};
  return kBounds;
}

}  // namespace attendant
