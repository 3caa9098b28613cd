// Security of the gRPC port.
#ifndef ATTENDANT_SERVICE_SECURITY_PORT_CREDENTIALS_H_
#define ATTENDANT_SERVICE_SECURITY_PORT_CREDENTIALS_H_

#include <grpc/grpc_security.h>
#include <grpcpp/security/server_credentials.h>

#include <functional>
#include <memory>

#include "absl/status/status.h"
#include "service/security/security.h"

namespace attendant {

// OK if the connection may begin a call whose token has been accepted.
// Thread-safe.
using CallAdmission =
    std::function<absl::Status(grpc_auth_context* connection)>;

// Returns credentials for a port on a host that ValidateSecurity accepts.
//
// The TLS files are examined before each handshake. Files that do not hold a
// certificate and its key change nothing, and are logged once. Tokens are
// checked before each call begins, except for grpc.health.v1.
std::shared_ptr<grpc::ServerCredentials> MakePortCredentials(
    std::shared_ptr<Security> security, CallAdmission admit);

}  // namespace attendant

#endif  // ATTENDANT_SERVICE_SECURITY_PORT_CREDENTIALS_H_
