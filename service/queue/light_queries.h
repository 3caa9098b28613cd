// Which queries are answered on the thread that they arrive on.
#ifndef ATTENDANT_SERVICE_QUEUE_LIGHT_QUERIES_H_
#define ATTENDANT_SERVICE_QUEUE_LIGHT_QUERIES_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "absl/hash/hash.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace attendant {

// Learns from queries that were answered alone how long those of a group take:
// to wake a worker and hand it a query takes longer than many answers. An
// estimate falls fast and rises slowly, so that a query which was interrupted
// counts little. Groups share 256 places by their hashes; one that shares a
// place with a heavy one may wait for workers, and a heavy one be taken for
// light until it was answered some times. Thread-safe.
class LightQueries {
 public:
  // What takes longer would keep gRPC from reading other requests.
  static constexpr absl::Duration kMost = absl::Microseconds(100);

  static std::size_t PlaceOf(absl::string_view group) {
    return absl::Hash<absl::string_view>()(group) % kPlaces;
  }

  // False while nothing is known.
  bool IsLight(std::size_t place) const {
    const std::int64_t expected_ns =
        expected_ns_[place].load(std::memory_order_relaxed);
    return expected_ns > 0 && expected_ns <= absl::ToInt64Nanoseconds(kMost);
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
  static constexpr std::size_t kPlaces = 256;

  std::array<std::atomic<std::int64_t>, kPlaces> expected_ns_ = {};
};

}  // namespace attendant

#endif  // ATTENDANT_SERVICE_QUEUE_LIGHT_QUERIES_H_
