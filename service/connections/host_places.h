// Which hosts have the places that there are for connections.
#ifndef ATTENDANT_SERVICE_CONNECTIONS_HOST_PLACES_H_
#define ATTENDANT_SERVICE_CONNECTIONS_HOST_PLACES_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"

namespace attendant {

// Connections by host: where no place is left, who has most of them gives one
// up for who has fewer. So one host can fill a server, and keep no other out.
// Not thread-safe.
class HostPlaces {
 public:
  // Connections of one host that are thought of: it takes time to look at each.
  static constexpr std::size_t kMaxCandidates = 64;

  void Add(const std::string& host, int connection);
  // Does nothing if it is not there.
  void Remove(const std::string& host, int connection);
  std::size_t connection_count() const { return connection_count_; }

  // Some connections, up to kMaxCandidates, of the host that has most. None
  // unless it has two more than `host`: else places would go to and fro. Takes
  // time for each host.
  std::vector<int> CandidatesFor(const std::string& host) const;

 private:
  absl::flat_hash_map<std::string, absl::flat_hash_set<int>> connections_;
  std::size_t connection_count_ = 0;
};

}  // namespace attendant

#endif  // ATTENDANT_SERVICE_CONNECTIONS_HOST_PLACES_H_
