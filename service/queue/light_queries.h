// Decides which queries are answered on the thread that received them.
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

// Learns, from queries that were answered alone, how long queries of a group
// and effort take: waking a worker and handing it a query takes longer than
// many answers. An estimate falls fast and rises slowly, so an interrupted
// query has little influence, and the effort is the only thing that separates
// light from heavy queries: a few heavy queries that share a place with light
// ones are taken for light. All estimates share 1,024 places by hash.
// Thread-safe.
class LightQueries {
 public:
  // Maximum expected time of a light query; a longer one gains more from a pass
  // shared with others.
  static constexpr absl::Duration kMost = absl::Microseconds(100);
  // The maximum while no other query runs; a longer one would keep gRPC from
  // reading other requests.
  static constexpr absl::Duration kMaxAlone = absl::Microseconds(250);

  // Maximum number of queries answered this way at a time, with `core_count`
  // cores. gRPC has one thread for every second core, from 2 to 16, to read
  // requests and start calls. If those occupy all cores, nothing is lost if all
  // of them answer queries; otherwise half of them must remain free to hand
  // queries to workers.
  static int MostAtOnce(int core_count) {
    const int readers = std::clamp(core_count / 2, 2, 16);
    return std::max(1, readers >= core_count ? core_count : readers / 2);
  }

  // `effort` is a hash of what a query of its group asks for.
  static std::size_t PlaceOf(absl::string_view group, std::uint64_t effort) {
    return absl::HashOf(group, effort) % kPlaces;
  }

  // True if a query of the place is expected to take at most `most`; false
  // while nothing is known.
  bool IsLight(std::size_t place, absl::Duration most) const {
    const std::int64_t expected_ns =
        expected_ns_[place].load(std::memory_order_relaxed);
    return expected_ns > 0 && expected_ns <= absl::ToInt64Nanoseconds(most);
  }

  // Records that a query was answered alone in `duration`.
  void Took(std::size_t place, absl::Duration duration) {
    const std::int64_t took_ns = absl::ToInt64Nanoseconds(duration);
    std::atomic<std::int64_t>& expected = expected_ns_[place];
    const std::int64_t before = expected.load(std::memory_order_relaxed);
    const std::int64_t share = before == 0 ? 1 : took_ns < before ? 4 : 16;
    // Of two concurrent updates, one may be lost.
    expected.store(before + (took_ns - before) / share,
                   std::memory_order_relaxed);
  }

 private:
  static constexpr std::size_t kPlaces = 1024;

  std::array<std::atomic<std::int64_t>, kPlaces> expected_ns_ = {};
};

}  // namespace attendant

#endif  // ATTENDANT_SERVICE_QUEUE_LIGHT_QUERIES_H_
