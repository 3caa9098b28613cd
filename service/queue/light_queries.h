// Which queries are answered on the thread that they arrive on.
#ifndef ATTENDANT_SERVICE_QUEUE_LIGHT_QUERIES_H_
#define ATTENDANT_SERVICE_QUEUE_LIGHT_QUERIES_H_

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "absl/hash/hash.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace attendant {

// Learns from queries that were answered alone how long those of a group and an
// effort take: to wake a worker and hand it a query takes longer than many
// answers. An estimate falls fast and rises slowly, so that a query which was
// interrupted counts little. So an effort is all that tells light queries from
// heavy ones: of those that share a place a few heavy ones are taken for light.
// All share 1,024 places by their hashes. Thread-safe.
class LightQueries {
 public:
  // What takes longer does more for others in a pass that it shares with them.
  static constexpr absl::Duration kMost = absl::Microseconds(100);
  // Where no other query runs. What takes longer would keep gRPC from reading
  // other requests.
  static constexpr absl::Duration kMaxAlone = absl::Microseconds(250);

  // Of them at a time, on so many cores. gRPC has a thread for every second
  // core, from 2 to 16, to read requests and to start calls with. Where those
  // are all the cores that there are, nothing is lost if all of them answer
  // queries; else every second must be left to hand queries to workers.
  static int MostAtOnce(int core_count) {
    const int readers = std::clamp(core_count / 2, 2, 16);
    return std::max(1, readers >= core_count ? core_count : readers / 2);
  }

  // `effort` stands for what a query asks for, of those of its group.
  static std::size_t PlaceOf(absl::string_view group, std::uint64_t effort) {
    return absl::HashOf(group, effort) % kPlaces;
  }

  // True if a query of the place is expected to take at most `most`. False
  // while nothing is known.
  bool IsLight(std::size_t place, absl::Duration most) const {
    const std::int64_t expected_ns =
        expected_ns_[place].load(std::memory_order_relaxed);
    return expected_ns > 0 && expected_ns <= absl::ToInt64Nanoseconds(most);
  }

  // A query was answered alone in so long.
  void Took(std::size_t place, absl::Duration duration) {
    const std::int64_t took_ns = absl::ToInt64Nanoseconds(duration);
    std::atomic<std::int64_t>& expected = expected_ns_[place];
    const std::int64_t before = expected.load(std::memory_order_relaxed);
    const std::int64_t share = before == 0 ? 1 : took_ns < before ? 4 : 16;
    // Of two at once, one may be lost.
    expected.store(before + (took_ns - before) / share,
                   std::memory_order_relaxed);
  }

 private:
  static constexpr std::size_t kPlaces = 1024;

  std::array<std::atomic<std::int64_t>, kPlaces> expected_ns_ = {};
};

}  // namespace attendant

#endif  // ATTENDANT_SERVICE_QUEUE_LIGHT_QUERIES_H_
