// Chooses the connections to end that keep others from being read.
#ifndef ATTENDANT_SERVICE_WATCHES_READ_WATCH_H_
#define ATTENDANT_SERVICE_WATCHES_READ_WATCH_H_

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "absl/container/flat_hash_map.h"

namespace attendant {

// A thread of gRPC's goes on with a connection for as long as there is more to
// read of it, and there are as few as two: so many clients that never stop, as
// with headers that have no end, leave everybody else unread. Nobody else does:
// who sends messages waits now and then for what may be sent. Where nothing of
// a connection is read for kLooks looks, though bytes wait, those go of which
// much was read between any two of them; the longer it waits, the less is much,
// as on a machine that is busy with other things little is read at all. Not
// thread-safe.
class ReadWatch {
 public:
  static constexpr int kLooks = 3;
  // Bytes between two looks: at kLooks, and half as many for each look more,
  // down to the least.
  static constexpr std::int64_t kMuch = std::int64_t{4} << 20;
  static constexpr std::int64_t kMinMuch = std::int64_t{64} << 10;

  struct Connection {
    int descriptor = 0;
    std::int64_t received_bytes = 0;  // since it was opened
    std::int64_t waiting_bytes = 0;   // of those, the ones that nobody has read
    // Bytes that its client has not taken: gRPC reads no more of one that asks
    // for replies without end.
    std::int64_t unsent_bytes = 0;
  };

  // Every quarter of a second, with the connections of which bytes wait, and
  // those that the watch knows. The descriptors of those to end.
  std::vector<int> Look(std::span<const Connection> connections);
  bool Knows(int descriptor) const { return seen_.contains(descriptor); }
  // Bytes of somebody waited at the last look and the one before, of which none
  // were read.
  bool is_behind() const { return is_behind_; }
  // It was closed: its number may be another's.
  void Forget(int descriptor) { seen_.erase(descriptor); }

 private:
  struct Seen {
    std::int64_t read_bytes = 0;
    int unread_count = 0;  // looks in a row
    // Bytes until each of the last kLooks looks, oldest first.
    std::array<std::int64_t, kLooks> reads = {};
  };

  // Of which bytes waited at the last look, or were read until then.
  absl::flat_hash_map<int, Seen> seen_;
  bool is_behind_ = false;
};

}  // namespace attendant

#endif  // ATTENDANT_SERVICE_WATCHES_READ_WATCH_H_
