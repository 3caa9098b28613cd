// What is counted while requests are answered. Updates are one or two relaxed
// additions to memory that few other threads write to: no lock, no allocation.
//
// Thread-safe. Readings of several numbers are not of one moment.
#ifndef ATTENDANT_SERVICE_METRICS_INSTRUMENTS_H_
#define ATTENDANT_SERVICE_METRICS_INSTRUMENTS_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace attendant {

// Copies of each number; a thread writes to one of them.
inline constexpr std::size_t kShardCount = 8;

// The copy that this thread writes to.
std::size_t ThreadShard();

// A number that only grows.
class Counter {
 public:
  void Add(std::int64_t count = 1) {
    cells_[ThreadShard()].value.fetch_add(count, std::memory_order_relaxed);
  }
  std::int64_t value() const {
    std::int64_t sum = 0;
    for (const Cell& cell : cells_) {
      sum += cell.value.load(std::memory_order_relaxed);
    }
    return sum;
  }

 private:
  struct alignas(64) Cell {
    std::atomic<std::int64_t> value = 0;
  };
  std::array<Cell, kShardCount> cells_;
};

// A counter for each value of an enum, whose last value is kCount.
template <typename Enum>
class CounterFor {
 public:
  static constexpr std::size_t kSize = static_cast<std::size_t>(Enum::kCount);

  Counter& operator[](Enum value) {
    return counters_[static_cast<std::size_t>(value)];
  }
  const Counter& operator[](Enum value) const {
    return counters_[static_cast<std::size_t>(value)];
  }

 private:
  std::array<Counter, kSize> counters_;
};

// How often values lay up to each of some bounds, and their sum.
class Histogram {
 public:
  static constexpr std::size_t kMaxBoundCount = 22;

  struct Reading {
    // By bound, not cumulative; the last are those above all bounds.
    std::vector<std::int64_t> counts;
    double sum = 0;

    std::int64_t count() const;
  };

  // bounds: ascending, at most kMaxBoundCount; must outlive the histogram. A
  // value counts at the first bound that it is not above; NaN above all.
  explicit Histogram(std::span<const double> bounds);

  void Observe(double value);
  Reading Read() const;
  std::span<const double> bounds() const { return bounds_; }

 private:
  struct alignas(64) Shard {
    std::array<std::atomic<std::int64_t>, kMaxBoundCount + 1> counts = {};
    std::atomic<double> sum = 0;
  };
  const std::span<const double> bounds_;
  std::array<Shard, kShardCount> shards_;
};

// Bounds for what takes time, in seconds: 50 us to 60 s.
std::span<const double> SecondsBounds();

// Bounds for counts: 1 to 256, each twice the one before.
std::span<const double> CountBounds();

// Bounds for shares of 0 to 1, close to each other at both ends.
std::span<const double> ShareBounds();

}  // namespace attendant

#endif  // ATTENDANT_SERVICE_METRICS_INSTRUMENTS_H_
