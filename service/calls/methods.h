// The RPCs of the server.
#ifndef ATTENDANT_SERVICE_CALLS_METHODS_H_
#define ATTENDANT_SERVICE_CALLS_METHODS_H_

#include <span>

#include "absl/strings/string_view.h"
#include "service/metrics/server_metrics.h"

namespace attendant {

// All RPCs of package attendant.v1, as its services declare them. They live as
// long as the process.
std::span<const Method> AllMethods();

// The one of this name, which must be one.
const Method& FindMethod(absl::string_view name);

}  // namespace attendant

#endif  // ATTENDANT_SERVICE_CALLS_METHODS_H_
