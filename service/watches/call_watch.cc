#include "service/watches/call_watch.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/string_view.h"
#include "service/watches/crowd.h"

namespace attendant {
namespace {

absl::Duration TimeFrom(SteadyTime begin, SteadyTime end) {
  return absl::FromChrono(end - begin);
}

}  // namespace

std::int64_t CallWatch::MostCalls(std::int64_t limit_bytes) const {
  if (limit_bytes == 0) return std::numeric_limits<std::int64_t>::max();
  return std::max(limit_bytes / kShareOfMemory / kBytesPerCall,
                  kConnectionsLetBe * options_.max_stream_count);
}

std::vector<std::string> CallWatch::Crowding(
    std::span<const Connection> connections, std::int64_t most_calls) {
  struct Host {
    std::int64_t count = 0;
    std::vector<const Connection*> connections;
  };
  absl::flat_hash_map<absl::string_view, Host> hosts;
  std::int64_t count = 0;
  for (const Connection& connection : connections) {
    if (connection.open_count <= 0) continue;
    Host& host = hosts[connection.host];
    host.count += connection.open_count;
    host.connections.push_back(&connection);
    count += connection.open_count;
  }
  std::vector<std::string> crowding;
  while (count > most_calls && !hosts.empty()) {
    Host& host = std::ranges::max_element(hosts, [](const auto& left,
                                                    const auto& right) {
                   return left.second.count < right.second.count;
                 })->second;
    const auto most = std::ranges::max_element(
        host.connections, [](const Connection* left, const Connection* right) {
          return left->open_count < right->open_count;
        });
    // All connections of this host are chosen, and no host has more.
    if (most == host.connections.end()) break;
    crowding.push_back((*most)->peer);
    count -= (*most)->open_count;
    host.count -= (*most)->open_count;
    host.connections.erase(most);
  }
  return crowding;
}

std::vector<std::string> CallWatch::Silent(
    std::span<const Connection> connections, SteadyTime now) {
  const absl::Duration patience =
      options_.stall_time +
      absl::Seconds(static_cast<double>(options_.max_message_bytes) /
                    kMinBytesPerSecond);
  absl::flat_hash_map<std::string, Waiting> waiting;
  std::vector<std::string> silent;
  for (const Connection& connection : connections) {
    if (connection.open_count <= connection.known_count) continue;
    const auto before = waiting_.find(connection.peer);
    if (before == waiting_.end() ||
        before->second.message_count != connection.message_count) {
      waiting[connection.peer] = {now, connection.message_count, now,
                                  connection.received_bytes};
      continue;
    }
    Waiting& current = waiting[connection.peer] = before->second;
    const auto bytes =
        static_cast<double>(connection.received_bytes - current.received_bytes);
    if (bytes >= kMinBytesPerSecond *
                     absl::ToDoubleSeconds(TimeFrom(current.in_time, now))) {
      current.in_time = now;
      current.received_bytes = connection.received_bytes;
    }
    if (TimeFrom(current.since, now) > patience &&
        TimeFrom(current.in_time, now) > options_.stall_time) {
      silent.push_back(connection.peer);
    }
  }
  waiting_ = std::move(waiting);
  return silent;
}

}  // namespace attendant
