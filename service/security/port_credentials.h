// How gRPC's port is secured.
#ifndef ATTENDANT_SERVICE_SECURITY_PORT_CREDENTIALS_H_
#define ATTENDANT_SERVICE_SECURITY_PORT_CREDENTIALS_H_

#include <grpc/grpc_security.h>
#include <grpcpp/security/server_credentials.h>

#include <functional>
#include <memory>

#include "absl/status/status.h"
#include "service/security/security.h"

namespace attendant {

// OK if the connection may begin a call, whose token was found to be good.
// Thread-safe.
using CallAdmission =
    std::function<absl::Status(grpc_auth_context* connection)>;

// Credentials for a port on a host that ValidateSecurity accepts.
//
// The files of TLS are looked at before each handshake. Those that don't hold a
// certificate with its key change nothing, and the log says so once. The tokens
// are checked for each call before it begins, but for grpc.health.v1.
std::shared_ptr<grpc::ServerCredentials> MakePortCredentials(
    std::shared_ptr<Security> security, CallAdmission admit);

}  // namespace attendant

#endif  // ATTENDANT_SERVICE_SECURITY_PORT_CREDENTIALS_H_
