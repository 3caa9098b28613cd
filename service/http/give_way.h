// Which connection gives way where there are as many as there may be.
#ifndef ATTENDANT_SERVICE_HTTP_GIVE_WAY_H_
#define ATTENDANT_SERVICE_HTTP_GIVE_WAY_H_

#include <cstddef>
#include <span>
#include <string>

#include "core/base/clock.h"

namespace attendant {

// A connection, as far as that matters.
struct Guest {
  std::string host = {};    // of the peer: see connections/peer.h
  bool has_spoken = false;  // a byte has come
  SteadyTime since = SteadyTime::min();
};

// What an exchange of a few bytes takes, over a wide network and while others
// shake hands.
inline constexpr absl::Duration kExchangeTime = absl::Seconds(1);

// One of `guests`, at least one, the oldest first. Of those from the address
// that most are from: the oldest that said nothing; or the oldest, if it is
// older than kExchangeTime; or the newest. So whoever floods gives way to
// himself and not to a probe, what came of silence is not missed, and work that
// went into a handshake is not lost to those who come after it.
std::size_t WhoGivesWay(std::span<const Guest> guests, SteadyTime now);

}  // namespace attendant

#endif  // ATTENDANT_SERVICE_HTTP_GIVE_WAY_H_
