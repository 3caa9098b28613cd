// Chooses connections to end because they keep others from being read.
#ifndef ATTENDANT_SERVICE_WATCHES_READ_WATCH_H_
#define ATTENDANT_SERVICE_WATCHES_READ_WATCH_H_

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "absl/container/flat_hash_map.h"

namespace attendant {

// A gRPC thread keeps reading a connection for as long as there is data, and
// there may be only two such threads: as many clients that never stop, as with
// endless headers, leave all others unread. Regular clients do stop: a sender
// of messages must wait now and then for flow control.
//
// If nothing of a connection is read for kLooks looks although bytes wait, the
// watch ends the connections of which much was read between any two of those
// looks. The longer the connection waits, the lower the threshold for "much",
// because on a busy machine little is read at all. Not thread-safe.
class ReadWatch {
 public:
  static constexpr int kLooks = 3;
  // Threshold in bytes between two looks: kMuch after kLooks looks, halved for
  // each further look, down to kMinMuch.
  static constexpr std::int64_t kMuch = std::int64_t{4} << 20;
  static constexpr std::int64_t kMinMuch = std::int64_t{64} << 10;

  struct Connection {
    int descriptor = 0;
    std::int64_t received_bytes = 0;  // since it was opened
    std::int64_t waiting_bytes = 0;   // received bytes that have not been read
    // Bytes that its client has not taken: gRPC stops reading a connection that
    // requests replies without end.
    std::int64_t unsent_bytes = 0;
  };

  // Call every quarter of a second, with the connections that have waiting
  // bytes and those that the watch knows. Returns the descriptors of the
  // connections to end.
  std::vector<int> Look(std::span<const Connection> connections);
  bool Knows(int descriptor) const { return seen_.contains(descriptor); }
  // True if, at the last look and the one before, some connection had waiting
  // bytes and none of them were read in between.
  bool is_behind() const { return is_behind_; }
  // Call when a connection was closed, since its descriptor may be reused.
  void Forget(int descriptor) { seen_.erase(descriptor); }

 private:
  struct Seen {
    std::int64_t read_bytes = 0;
    int unread_count = 0;  // consecutive looks
    // Bytes read before each of the last kLooks looks, oldest first.
    std::array<std::int64_t, kLooks> reads = {};
  };

  // Connections that had waiting bytes at the last look, or were read before
  // it.
  absl::flat_hash_map<int, Seen> seen_;
  bool is_behind_ = false;
};

}  // namespace attendant

#endif  // ATTENDANT_SERVICE_WATCHES_READ_WATCH_H_
