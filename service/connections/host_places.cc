#include "service/connections/host_places.h"

namespace attendant {

void HostPlaces::Add(const std::string& host, int connection) {
  connection_count_ += connections_[host].insert(connection).second;
}

void HostPlaces::Remove(const std::string& host, int connection) {
  const auto found = connections_.find(host);
  if (found == connections_.end()) return;
  connection_count_ -= found->second.erase(connection);
  if (found->second.empty()) connections_.erase(found);
}

std::vector<int> HostPlaces::CandidatesFor(const std::string& host) const {
  const auto own = connections_.find(host);
  const std::size_t own_count =
      own == connections_.end() ? 0 : own->second.size();
  const absl::flat_hash_set<int>* most = nullptr;
  std::size_t most_count = own_count + 1;
  for (const auto& [other, connections] : connections_) {
    if (connections.size() <= most_count) continue;
    most = &connections;
    most_count = connections.size();
  }
  std::vector<int> candidates;
  if (most == nullptr) return candidates;
  for (const int connection : *most) {
    if (candidates.size() == kMaxCandidates) break;
    candidates.push_back(connection);
  }
  return candidates;
}

}  // namespace attendant
