// Examines a running attendantd.
#ifndef ATTENDANT_CLIENT_DOCTOR_SERVER_H_
#define ATTENDANT_CLIENT_DOCTOR_SERVER_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/api/client.h"
#include "client/api/credentials.h"
#include "client/doctor/finding.h"

namespace attendant {

struct ServerToExamine {
  std::string server;  // HOST:PORT of gRPC
  std::string http;    // HOST:PORT of HTTP
  // For both ports. Without TLS the token is sent to this machine only.
  ClientSecurity security = {};
  std::function<absl::StatusOr<std::unique_ptr<Client>>()> connect;
};

// Returns the default HTTP address of a server at HOST:PORT: PORT plus 1000, on
// IPv4's loopback if HOST is IPv6's. Empty if `server` is not HOST:PORT.
std::string DefaultHttpAddress(const std::string& server);

// Examines whether gRPC and HTTP can be reached; when the certificate expires,
// with TLS; readiness and warnings; the version; the limit of open files; and
// the catalogs. The first finding is about gRPC.
std::vector<Finding> ExamineServer(const ServerToExamine& server);

}  // namespace attendant

#endif  // ATTENDANT_CLIENT_DOCTOR_SERVER_H_
