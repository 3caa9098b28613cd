// Credentials of a connection: whom the client trusts, and who it is.
#ifndef ATTENDANT_CLIENT_API_CREDENTIALS_H_
#define ATTENDANT_CLIENT_API_CREDENTIALS_H_

#include <grpcpp/security/credentials.h>

#include <memory>
#include <string>

#include "absl/status/statusor.h"

namespace attendant {

// The security of a connection. By default it has neither TLS nor a token.
struct ClientSecurity {
  // PEM file of the authorities that may have signed the server's certificate;
  // no TLS if empty.
  std::string ca_path = "";
  // PEM files of the client's own certificate and key, for a server that asks
  // for them. Both or neither, and only with ca_path.
  std::string certificate_path = "";
  std::string key_path = "";
  // Sent with each call unless empty. Without TLS, a client with a token
  // connects only to servers on this machine.
  std::string token = "";
};

// Returns gRPC's credentials. InvalidArgument if files do not go together or
// can't be read, naming them, or if the token has blanks or control characters.
absl::StatusOr<std::shared_ptr<grpc::ChannelCredentials>>
MakeChannelCredentials(const ClientSecurity& security);

}  // namespace attendant

#endif  // ATTENDANT_CLIENT_API_CREDENTIALS_H_
