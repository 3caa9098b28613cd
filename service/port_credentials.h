// How a port is secured: TLS, tokens, or neither.
#ifndef ATTENDANT_SERVICE_PORT_CREDENTIALS_H_
#define ATTENDANT_SERVICE_PORT_CREDENTIALS_H_

#include <grpcpp/security/server_credentials.h>

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "service/authenticator.h"
#include "service/tls_files.h"

namespace attendant {

struct SecurityOptions {
  TlsPaths tls = {};
  // File of token_table.h; empty: whoever can connect may do everything.
  std::string token_path = "";
  // Calls without a token may read.
  bool anonymous_read = false;
  // Listening without TLS where others than this machine may connect.
  bool plaintext_on_network = false;
};

// True if only this machine can connect to `host`: localhost, 127.0.0.0/8 and
// ::1, with or without brackets.
bool IsLoopback(absl::string_view host);

// OK if a port of `host` may be opened so. InvalidArgument naming the option:
// parts of TLS that are missing; tokens, or no plaintext_on_network, without
// TLS on another host than loopback; anonymous_read without tokens. `field` is
// the name of the option that names the host.
absl::Status ValidateSecurity(const SecurityOptions& options,
                              absl::string_view host,
                              absl::string_view field = "listen");

// Credentials for a port on a host that ValidateSecurity accepts.
//
// The files of TLS are looked at before each handshake. Those that don't hold a
// certificate with its key change nothing, and the log says so once.
//
// `authenticator`, which must outlive the server, checks each call before it
// begins, but for grpc.health.v1; null: none is. Errors are those of
// ReadTlsFiles.
absl::StatusOr<std::shared_ptr<grpc::ServerCredentials>> MakePortCredentials(
    const SecurityOptions& options, Authenticator* authenticator);

}  // namespace attendant

#endif  // ATTENDANT_SERVICE_PORT_CREDENTIALS_H_
