// Adds the flags that say how to reach a server.
#ifndef ATTENDANT_CLIENT_FLAGS_CONNECTION_FLAGS_H_
#define ATTENDANT_CLIENT_FLAGS_CONNECTION_FLAGS_H_

#include <CLI/CLI.hpp>
#include <string>

#include "absl/status/statusor.h"
#include "client/api/client.h"

namespace attendant {

struct ConnectionFlags {
  std::string server = "127.0.0.1:7600";
  ClientSecurity security;  // without the token
  // The file with the token. If empty, the environment variable
  // ATTENDANT_AUTH_TOKEN is the token. There is no flag with the token itself,
  // since other users of the machine can see arguments.
  std::string token_path;
};

// The help's group of all these options but --server.
inline constexpr char kSecurityGroup[] = "Security";

// Returns what is wrong with an address, or "" if it is HOST:PORT. A check for
// CLI11.
std::string CheckAddress(const std::string& address);

// Adds --server, which must be HOST:PORT, --ca, --client-cert, --client-key and
// --auth-token-file, with their environment variables. `flags` must outlive
// `app`.
void AddConnectionFlags(CLI::App& app, ConnectionFlags& flags);

// Returns the flags for a command line of a shell, each after a space: --server
// and the files that were given.
std::string ShellFlags(const ConnectionFlags& flags);

// Keeps gRPC from writing its own lines to standard error, unless
// GRPC_VERBOSITY asks for them. Call it before any other use of gRPC.
void SilenceGrpc();

// Returns options for Client::Connect with the server, its certificates and the
// token. UsageError if the token's file can't be read or holds no token.
absl::StatusOr<Client::Options> ClientOptions(const ConnectionFlags& flags);

// Returns a UsageError for what MakeChannelCredentials refuses: files that
// can't be read or don't belong together. That is a wrong command line, not a
// server that can't be reached.
absl::Status CheckSecurity(const ClientSecurity& security);

}  // namespace attendant

#endif  // ATTENDANT_CLIENT_FLAGS_CONNECTION_FLAGS_H_
