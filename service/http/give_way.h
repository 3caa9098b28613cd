// Chooses the connection to close when the limit on connections is reached.
#ifndef ATTENDANT_SERVICE_HTTP_GIVE_WAY_H_
#define ATTENDANT_SERVICE_HTTP_GIVE_WAY_H_

#include <cstddef>
#include <span>
#include <string>

#include "core/base/clock.h"

namespace attendant {

// The relevant properties of a connection.
struct Guest {
  std::string host = {};    // of the peer; see connections/peer.h
  bool has_spoken = false;  // a byte was received
  SteadyTime since = SteadyTime::min();
};

// Time for an exchange of a few bytes over a wide-area network while other
// connections perform handshakes.
inline constexpr absl::Duration kExchangeTime = absl::Seconds(1);

// Returns the index of the connection to close. `guests` is not empty and
// sorted from oldest to newest. Among the connections from the address with the
// most: the oldest that has sent nothing; otherwise the oldest, if it is older
// than kExchangeTime; otherwise the newest. So a flooding client displaces its
// own connections rather than a probe, silent connections go first, and the
// work spent on a handshake is not lost to later arrivals.
std::size_t WhoGivesWay(std::span<const Guest> guests, SteadyTime now);

}  // namespace attendant

#endif  // ATTENDANT_SERVICE_HTTP_GIVE_WAY_H_
