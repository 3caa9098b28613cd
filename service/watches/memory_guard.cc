#include "service/watches/memory_guard.h"

namespace attendant {

std::optional<int> MemoryGuard::Look(std::int64_t resident_bytes,
                                     std::int64_t limit_bytes,
                                     std::span<const Received> received,
                                     SteadyTime now) {
  if (limit_bytes == 0 || resident_bytes <= limit_bytes) {
    over_ = false;
    return std::nullopt;
  }
  if (!over_ || resident_bytes < resident_bytes_ || now - begin_ > kWindow) {
    over_ = true;
    Begin(resident_bytes, received, now);
    return std::nullopt;
  }
  if (resident_bytes < resident_bytes_ + kGrowth) return std::nullopt;
  // A sender of less would not explain the growth.
  std::int64_t most = (resident_bytes - resident_bytes_) / kMinShare;
  std::optional<int> sender;
  for (const Received& from : received) {
    const auto before = received_.find(from.connection);
    std::int64_t bytes = from.bytes;
    // The descriptor may have been reused for a new connection.
    if (before != received_.end() && before->second <= bytes) {
      bytes -= before->second;
    }
    if (bytes < most) continue;
    most = bytes;
    sender = from.connection;
  }
  Begin(resident_bytes, received, now);
  return sender;
}

void MemoryGuard::Begin(std::int64_t resident_bytes,
                        std::span<const Received> received, SteadyTime now) {
  begin_ = now;
  resident_bytes_ = resident_bytes;
  received_.clear();
  for (const Received& from : received) received_[from.connection] = from.bytes;
}

}  // namespace attendant
