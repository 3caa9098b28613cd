// From how many calls on the watches look at whose they are.
#ifndef ATTENDANT_SERVICE_WATCHES_CROWD_H_
#define ATTENDANT_SERVICE_WATCHES_CROWD_H_

#include <cstdint>

namespace attendant {

// As many calls as so many connections may have at once are let be
// (ArrivalWatch, CallWatch, ResetWatch).
inline constexpr std::int64_t kConnectionsLetBe = 4;

}  // namespace attendant

#endif  // ATTENDANT_SERVICE_WATCHES_CROWD_H_
