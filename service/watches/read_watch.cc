#include "service/watches/read_watch.h"

#include <algorithm>
#include <utility>

namespace attendant {

std::vector<int> ReadWatch::Look(std::span<const Connection> connections) {
  absl::flat_hash_map<int, Seen> seen;
  int longest_unread = 0;  // in looks
  for (const Connection& connection : connections) {
    const bool waits = connection.waiting_bytes > 0;
    Seen now = {.read_bytes =
                    connection.received_bytes - connection.waiting_bytes};
    const auto before = seen_.find(connection.descriptor);
    if (before == seen_.end()) {
      if (waits) seen[connection.descriptor] = now;
      continue;
    }
    const std::int64_t read = now.read_bytes - before->second.read_bytes;
    if (!waits && read == 0) continue;  // idle
    if (read == 0 && connection.unsent_bytes == 0) {
      now.unread_count = before->second.unread_count + 1;
    }
    std::shift_left(before->second.reads.begin(), before->second.reads.end(),
                    1);
    now.reads = before->second.reads;
    now.reads.back() = read;
    seen[connection.descriptor] = now;
    longest_unread = std::max(longest_unread, now.unread_count);
  }
  seen_ = std::move(seen);
  is_behind_ = longest_unread > 0;
  if (longest_unread < kLooks) return {};
  const int halvings = std::min(longest_unread - kLooks, 62);
  const std::int64_t much = std::max(kMuch >> halvings, kMinMuch);
  std::vector<int> keeping;
  for (const Connection& connection : connections) {
    const auto now = seen_.find(connection.descriptor);
    if (now != seen_.end() &&
        *std::ranges::min_element(now->second.reads) >= much) {
      keeping.push_back(connection.descriptor);
    }
  }
  return keeping;
}

}  // namespace attendant
