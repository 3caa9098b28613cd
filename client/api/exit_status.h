// Exit statuses of `attendant` and `attendant-load`.
#ifndef ATTENDANT_CLIENT_API_EXIT_STATUS_H_
#define ATTENDANT_CLIENT_API_EXIT_STATUS_H_

#include "absl/status/status.h"

namespace attendant {

inline constexpr int kExitOk = 0;
// The server or the data refused, or a load is not as good as was asked.
inline constexpr int kExitRefused = 1;
inline constexpr int kExitUsage = 2;        // the command line is wrong
inline constexpr int kExitUnreachable = 3;  // no server that speaks

// Returns the exit status of a program that ends with this status.
int ExitStatusOf(const absl::Status& status);

}  // namespace attendant

#endif  // ATTENDANT_CLIENT_API_EXIT_STATUS_H_
