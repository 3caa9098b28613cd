#include "client/flags/connection_flags.h"

#include <cstdlib>
#include <fstream>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "client/api/error_json.h"
#include "core/base/host_port.h"
#include "core/base/status.h"

namespace attendant {
namespace {

// Returns the first word of the file.
absl::StatusOr<std::string> ReadToken(const std::string& path) {
  std::string token;
  if (std::ifstream(path) >> token) return token;
  return UsageError(absl::StrCat(path, " can't be read or holds no token"));
}

void AddFile(CLI::App& app, const std::string& flag,
             const std::string& variable, std::string& path,
             const std::string& description) {
  app.add_option(flag, path, description)
      ->envname(variable)
      ->type_name("FILE")
      ->group(kSecurityGroup);
}

}  // namespace

std::string CheckAddress(const std::string& address) {
  const absl::string_view host = HostOf(address);
  // An IPv6 address needs brackets, so that its last group is not the port.
  const bool has_host =
      !host.empty() && (host.front() == '[' || !absl::StrContains(host, ':'));
  if (has_host && PortOf(address) != 0) return "";
  return absl::StrCat("got '", address, "', want HOST:PORT");
}

void AddConnectionFlags(CLI::App& app, ConnectionFlags& flags) {
  app.add_option("--server", flags.server, "The server as HOST:PORT")
      ->envname("ATTENDANT_SERVER")
      ->check(&CheckAddress)
      ->capture_default_str();
  AddFile(app, "--ca", "ATTENDANT_CA", flags.security.ca_path,
          "Connect with TLS; the server's certificate must be issued by one "
          "of these authorities, PEM");
  AddFile(app, "--client-cert", "ATTENDANT_CLIENT_CERT",
          flags.security.certificate_path,
          "The certificate to show to a server that asks for one, PEM");
  AddFile(app, "--client-key", "ATTENDANT_CLIENT_KEY", flags.security.key_path,
          "The key of --client-cert, PEM");
  AddFile(app, "--auth-token-file", "ATTENDANT_AUTH_TOKEN_FILE",
          flags.token_path,
          "File with the token to send. Or set ATTENDANT_AUTH_TOKEN to the "
          "token itself");
}

std::string ShellFlags(const ConnectionFlags& flags) {
  std::string text = absl::StrCat(" --server ", flags.server);
  const std::pair<absl::string_view, const std::string&> files[] = {
      {"--ca", flags.security.ca_path},
      {"--client-cert", flags.security.certificate_path},
      {"--client-key", flags.security.key_path},
      {"--auth-token-file", flags.token_path}};
  for (const auto& [flag, path] : files) {
    if (path.empty()) continue;
    absl::StrAppend(&text, " ", flag, " '",
                    absl::StrReplaceAll(path, {{"'", "'\\''"}}), "'");
  }
  return text;
}

void SilenceGrpc() { setenv("GRPC_VERBOSITY", "NONE", /*overwrite=*/0); }

absl::StatusOr<Client::Options> ClientOptions(const ConnectionFlags& flags) {
  Client::Options options;
  options.server = flags.server;
  options.security = flags.security;
  if (flags.token_path.empty()) {
    const char* token = std::getenv("ATTENDANT_AUTH_TOKEN");
    // Stores of secrets often append a line end.
    if (token != nullptr) {
      options.security.token = std::string(absl::StripAsciiWhitespace(token));
    }
    return options;
  }
  ATTENDANT_ASSIGN_OR_RETURN(options.security.token,
                             ReadToken(flags.token_path));
  return options;
}

absl::Status CheckSecurity(const ClientSecurity& security) {
  const absl::Status status = MakeChannelCredentials(security).status();
  return status.ok() ? status : UsageError(status.message());
}

}  // namespace attendant
