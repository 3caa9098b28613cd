#include "service/connections/read_watch.h"

#include <algorithm>
#include <utility>

namespace attendant {

std::vector<int> ReadWatch::Look(std::span<const Connection> connections) {
  absl::flat_hash_map<int, Seen> seen;
  int longest_unread = 0;  // looks
  std::vector<int> keeping;
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
    if (!waits && read == 0) continue;  // it has come to rest
    if (read == 0 && connection.unsent_bytes == 0) {
      now.unread_count = before->second.unread_count + 1;
    }
    if (read >= kMuch) now.busy_count = before->second.busy_count + 1;
    seen[connection.descriptor] = now;
    longest_unread = std::max(longest_unread, now.unread_count);
    if (now.busy_count >= kLooks) keeping.push_back(connection.descriptor);
  }
  seen_ = std::move(seen);
  is_behind_ = longest_unread > 0;
  if (longest_unread < kLooks) keeping.clear();
  return keeping;
}

}  // namespace attendant
