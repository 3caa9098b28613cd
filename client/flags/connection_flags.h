// The flags by which a command line reaches a server.
#ifndef ATTENDANT_CLIENT_FLAGS_CONNECTION_FLAGS_H_
#define ATTENDANT_CLIENT_FLAGS_CONNECTION_FLAGS_H_

#include <CLI/CLI.hpp>
#include <string>

#include "absl/status/statusor.h"
#include "client/api/client.h"

namespace attendant {

struct ConnectionFlags {
  std::string server = "127.0.0.1:7600";
  ClientSecurity security;  // but for the token
  // File that holds the token; empty: ATTENDANT_AUTH_TOKEN, if set, is the
  // token. Never an argument, which other users of the machine can see.
  std::string token_path;
};

// Of the options but --server, in the help.
inline constexpr char kSecurityGroup[] = "Security";

// What is wrong with an address, as a check of a flag says it; nothing if it is
// HOST:PORT.
std::string CheckAddress(const std::string& address);

// Adds --server, which must be HOST:PORT, --ca, --client-cert, --client-key and
// --auth-token-file, with their environment variables. `flags` must outlive
// `app`.
void AddConnectionFlags(CLI::App& app, ConnectionFlags& flags);

// The flags as a shell takes them, a space before each: the server, and the
// files that were given.
std::string ShellFlags(const ConnectionFlags& flags);

// Without this gRPC writes lines of its own beside the messages of a program,
// unless GRPC_VERBOSITY asks for them. Before any other use of gRPC.
void SilenceGrpc();

// Options of Client::Connect that name the server and hold what it wants to
// see. UsageError if the token's file can't be read or holds no token.
absl::StatusOr<Client::Options> ClientOptions(const ConnectionFlags& flags);

// UsageError for what MakeChannelCredentials refuses: files that don't go
// together or can't be read. A command line is wrong then, and no server.
absl::Status CheckSecurity(const ClientSecurity& security);

}  // namespace attendant

#endif  // ATTENDANT_CLIENT_FLAGS_CONNECTION_FLAGS_H_
