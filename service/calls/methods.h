// The RPCs of the server.
#ifndef ATTENDANT_SERVICE_CALLS_METHODS_H_
#define ATTENDANT_SERVICE_CALLS_METHODS_H_

#include <span>

#include "absl/strings/string_view.h"
#include "service/metrics/server_metrics.h"

namespace attendant {

// Returns all RPCs of package attendant.v1, as its services declare them. They
// are never destroyed.
std::span<const Method> AllMethods();

// Returns the method with this name, which must exist.
const Method& FindMethod(absl::string_view name);

}  // namespace attendant

#endif  // ATTENDANT_SERVICE_CALLS_METHODS_H_
