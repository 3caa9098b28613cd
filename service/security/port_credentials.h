// How gRPC's port is secured.
#ifndef ATTENDANT_SERVICE_SECURITY_PORT_CREDENTIALS_H_
#define ATTENDANT_SERVICE_SECURITY_PORT_CREDENTIALS_H_

#include <grpc/grpc_security.h>
#include <grpcpp/security/server_credentials.h>

#include <functional>
#include <memory>

#include "service/security/security.h"

namespace attendant {

// Credentials for a port on a host that ValidateSecurity accepts, which share
// `security`.
//
// The files of TLS are looked at before each handshake. Those that don't hold a
// certificate with its key change nothing, and the log says so once. The tokens
// are checked for each call before it begins, but for grpc.health.v1; then
// `admits` says whether its connection may begin it.
std::shared_ptr<grpc::ServerCredentials> MakePortCredentials(
    std::shared_ptr<Security> security,
    std::function<bool(grpc_auth_context* connection)> admits);

}  // namespace attendant

#endif  // ATTENDANT_SERVICE_SECURITY_PORT_CREDENTIALS_H_
