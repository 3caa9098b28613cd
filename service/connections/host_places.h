// Distributes the places for connections among hosts.
#ifndef ATTENDANT_SERVICE_CONNECTIONS_HOST_PLACES_H_
#define ATTENDANT_SERVICE_CONNECTIONS_HOST_PLACES_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"

namespace attendant {

// Tracks connections by host. When no place is left, the host with the most
// connections gives one up for a host with fewer, so a single host can fill a
// server without locking others out. Not thread-safe.
class HostPlaces {
 public:
  // Maximum number of candidates returned: examining each takes time.
  static constexpr std::size_t kMaxCandidates = 64;

  void Add(const std::string& host, int connection);
  // Does nothing if the connection is unknown.
  void Remove(const std::string& host, int connection);
  std::size_t connection_count() const { return connection_count_; }

  // Returns up to kMaxCandidates connections of the host with the most. Returns
  // none unless that host has at least two more than `host`, so that places do
  // not bounce back and forth. Takes time linear in the number of hosts.
  std::vector<int> CandidatesFor(const std::string& host) const;

 private:
  absl::flat_hash_map<std::string, absl::flat_hash_set<int>> connections_;
  std::size_t connection_count_ = 0;
};

}  // namespace attendant

#endif  // ATTENDANT_SERVICE_CONNECTIONS_HOST_PLACES_H_
