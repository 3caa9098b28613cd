// How gRPC's port is secured.
#ifndef ATTENDANT_SERVICE_SECURITY_PORT_CREDENTIALS_H_
#define ATTENDANT_SERVICE_SECURITY_PORT_CREDENTIALS_H_

#include <grpc/grpc_security.h>
#include <grpcpp/security/server_credentials.h>

#include <functional>
#include <memory>

#include "absl/status/status.h"
#include "service/log/log_limiter.h"
#include "service/security/security.h"

namespace attendant {

// What all ports of a server ask before a call begins, when its token was found
// to be good. Thread-safe if `admit` is.
struct CallAdmission {
  // OK if the call's connection may begin it.
  std::function<absl::Status(grpc_auth_context* connection)> admit;
  LogLimiter refusals_logged{10};  // those of tokens, too
};

// Credentials for a port on a host that ValidateSecurity accepts, which share
// `security` and `admission`.
//
// The files of TLS are looked at before each handshake. Those that don't hold a
// certificate with its key change nothing, and the log says so once. The tokens
// are checked for each call before it begins, but for grpc.health.v1.
std::shared_ptr<grpc::ServerCredentials> MakePortCredentials(
    std::shared_ptr<Security> security,
    std::shared_ptr<CallAdmission> admission);

}  // namespace attendant

#endif  // ATTENDANT_SERVICE_SECURITY_PORT_CREDENTIALS_H_
