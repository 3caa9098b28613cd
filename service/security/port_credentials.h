// How gRPC's port is secured.
#ifndef ATTENDANT_SERVICE_SECURITY_PORT_CREDENTIALS_H_
#define ATTENDANT_SERVICE_SECURITY_PORT_CREDENTIALS_H_

#include <grpcpp/security/server_credentials.h>

#include <memory>

#include "service/connections/arrival_watch.h"
#include "service/security/security.h"

namespace attendant {

// Credentials for a port on a host that ValidateSecurity accepts, which share
// `security`.
//
// The files of TLS are looked at before each handshake. Those that don't hold a
// certificate with its key change nothing, and the log says so once. The tokens
// are checked for each call before it begins, but for grpc.health.v1; then
// `arrivals`, which must outlive the server, says whether it may.
std::shared_ptr<grpc::ServerCredentials> MakePortCredentials(
    std::shared_ptr<Security> security, ArrivalWatch* arrivals);

}  // namespace attendant

#endif  // ATTENDANT_SERVICE_SECURITY_PORT_CREDENTIALS_H_
