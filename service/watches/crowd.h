// The number of calls above which the watches look at their owners.
#ifndef ATTENDANT_SERVICE_WATCHES_CROWD_H_
#define ATTENDANT_SERVICE_WATCHES_CROWD_H_

#include <cstdint>

namespace attendant {

// As many calls as this number of connections may have at once are always
// allowed (ArrivalWatch, CallWatch, ResetWatch).
inline constexpr std::int64_t kConnectionsLetBe = 4;

}  // namespace attendant

#endif  // ATTENDANT_SERVICE_WATCHES_CROWD_H_
