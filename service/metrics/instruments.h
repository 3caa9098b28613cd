// Instruments updated while requests are served. An update is one or two
// relaxed atomic additions to memory that few other threads write: no lock, no
// allocation.
//
// Thread-safe. A reading of several numbers is not an atomic snapshot.
#ifndef ATTENDANT_SERVICE_METRICS_INSTRUMENTS_H_
#define ATTENDANT_SERVICE_METRICS_INSTRUMENTS_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace attendant {

// Number of copies of each value; each thread writes to one of them.
inline constexpr std::size_t kShardCount = 8;

// Returns the index of the copy that the calling thread writes.
std::size_t ThreadShard();

// A number that only increases.
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

// One counter for each value of an enum whose last value is kCount.
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

// Counts of values per bucket, and the sum of the values.
class Histogram {
 public:
  static constexpr std::size_t kMaxBoundCount = 22;

  struct Reading {
    // By bound, not cumulative; the last entry counts values above all bounds.
    std::vector<std::int64_t> counts;
    double sum = 0;

    std::int64_t count() const;
  };

  // `bounds` is ascending, has at most kMaxBoundCount entries and must outlive
  // the histogram. A value is counted at the first bound that is >= it; NaN
  // above all bounds.
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

// Bounds for durations in seconds: 50 us to 60 s.
std::span<const double> SecondsBounds();

// Bounds for counts: powers of 2 from 1 to 256.
std::span<const double> CountBounds();

// Bounds for shares in [0, 1], denser at both ends.
std::span<const double> ShareBounds();

}  // namespace attendant

#endif  // ATTENDANT_SERVICE_METRICS_INSTRUMENTS_H_
