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
    return "check that --server names the gRPC port, not the HTTP port; "
           "for a server with TLS give --ca FILE";
  }
  if (reason == kNotTrusted) {
    return "a server with --tls-client-ca wants --client-cert and "
           "--client-key, a server without TLS no --ca; otherwise check that "
           "--ca is its authority and --server the name in its certificate";
  }
  if (reason == kSilent) {
    return "it hangs or is overloaded: --timeout waits longer, and its log or "
           "`top` may tell why";
  }
  if (reason == "CATALOG_NOT_FOUND") {
    return "`attendant catalog list` lists the catalogs";
  }
  if (absl::IsUnauthenticated(status)) {
    return "give a token: --auth-token-file FILE, or ATTENDANT_AUTH_TOKEN in "
           "the environment";
  }
  return "";
}

bool IsUnreachable(const absl::Status& status) {
  if (!absl::IsUnavailable(status)) return false;
  // A server gives these reasons for problems with its disk.
  const auto reason = ReasonOf(status);
  return reason != kFilesNotAccessible && reason != "TAKING_BACK";
}

std::string MessageWithAdvice(const absl::Status& status) {
  const std::string advice = AdviceOn(status);
  return absl::StrCat(status.message(), advice.empty() ? "" : "; ", advice);
}

}  // namespace attendant
