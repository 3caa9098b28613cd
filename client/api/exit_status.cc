#include "client/api/exit_status.h"

#include "client/api/advice.h"
#include "client/api/error_json.h"
#include "core/base/status.h"

namespace attendant {

int ExitStatusOf(const absl::Status& status) {
  if (status.ok()) return kExitOk;
  if (ReasonOf(status) == kUsageReason) return kExitUsage;
  return IsUnreachable(status) ? kExitUnreachable : kExitRefused;
}

}  // namespace attendant
