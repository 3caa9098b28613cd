// Whom a client trusts, and how it says who it is.
#ifndef ATTENDANT_CLIENT_API_CREDENTIALS_H_
#define ATTENDANT_CLIENT_API_CREDENTIALS_H_

#include <grpcpp/security/credentials.h>

#include <memory>
#include <string>

#include "absl/status/statusor.h"

namespace attendant {

// Of a connection. By default there is neither TLS nor a token.
struct ClientSecurity {
  // PEM file of the authorities that the server's certificate must come from;
  // empty: no TLS.
  std::string ca_path = "";
  // PEM files of the client's own certificate, for a server that asks for one,
  // and of its key. Both or neither, and only with ca_path.
  std::string certificate_path = "";
  std::string key_path = "";
  // Sent with each call; empty: none. Without TLS only to this machine: a
  // server elsewhere can't be reached then.
  std::string token = "";
};

// InvalidArgument for files that don't go together or can't be read, naming
// them.
absl::StatusOr<std::shared_ptr<grpc::ChannelCredentials>>
MakeChannelCredentials(const ClientSecurity& security);

}  // namespace attendant

#endif  // ATTENDANT_CLIENT_API_CREDENTIALS_H_
