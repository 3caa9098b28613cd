// Logs callers that are refused.
#ifndef ATTENDANT_SERVICE_SECURITY_REFUSAL_LOG_H_
#define ATTENDANT_SERVICE_SECURITY_REFUSAL_LOG_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "service/log/log_limiter.h"

namespace attendant {

// Logs call_refused, at most 10 times a second, since callers control the rate.
// Thread-safe.
class RefusalLog {
 public:
  // `path` is an RPC, such as "/attendant.v1.ItemService/ListItems", or a page
  // of the HTTP port.
  void Note(absl::string_view path, const absl::Status& status);

 private:
  LogLimiter limiter_{10};
};

}  // namespace attendant

#endif  // ATTENDANT_SERVICE_SECURITY_REFUSAL_LOG_H_
