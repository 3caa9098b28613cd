#include "client/api/advice.h"

#include "absl/strings/str_cat.h"
#include "client/api/client.h"
#include "core/base/status.h"

namespace attendant {

std::string AdviceOn(const absl::Status& status) {
  const std::string reason = ReasonOf(status).value_or("");
  if (reason == kNoServer) {
    return "start one: attendantd --data-dir DIR; or say where it is: --server "
           "HOST:PORT (ATTENDANT_SERVER)";
  }
  if (reason == kOtherProtocol) {
    return "for a server with TLS give --ca FILE; its HTTP port is another one";
  }
  if (reason == kNotTrusted) {
    return "a server with --tls-client-ca wants --client-cert and "
           "--client-key, one without TLS no --ca; else see that --ca is its "
           "authority and --server the name in its certificate";
  }
  if (reason == kSilent) {
    return "it hangs, or has more to do than it can: --timeout waits longer, "
           "and its log or `top` may tell";
  }
  if (reason == "CATALOG_NOT_FOUND") {
    return "`attendant catalog list` shows those there are";
  }
  if (absl::IsUnauthenticated(status)) {
    return "give a token: --auth-token-file FILE, or ATTENDANT_AUTH_TOKEN in "
           "the environment";
  }
  return "";
}

bool IsUnreachable(const absl::Status& status) {
  if (!absl::IsUnavailable(status)) return false;
  // These a server says of its disk.
  const auto reason = ReasonOf(status);
  return reason != kFilesNotAccessible && reason != "TAKING_BACK";
}

std::string MessageWithAdvice(const absl::Status& status) {
  const std::string advice = AdviceOn(status);
  return absl::StrCat(status.message(), advice.empty() ? "" : "; ", advice);
}

}  // namespace attendant
