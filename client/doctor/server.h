// How a running attendantd is doing.
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
  // Of both ports. Without TLS the token goes to this machine only.
  ClientSecurity security = {};
  std::function<absl::StatusOr<std::unique_ptr<Client>>()> connect;
};

// Where a server of HOST:PORT has its HTTP port unless told otherwise: at PORT
// plus 1000, and of IPv6's loopback at IPv4's. Empty if `server` is no such
// thing.
std::string DefaultHttpAddress(const std::string& server);

// Whether it can be reached, both ways; how long its certificate is good, where
// there is TLS; whether it is ready and what it warns of; whether it is of this
// program's version; how many files it may open; and its catalogs.
std::vector<Finding> ExamineServer(const ServerToExamine& server);

}  // namespace attendant

#endif  // ATTENDANT_CLIENT_DOCTOR_SERVER_H_
