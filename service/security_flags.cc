#include "service/security_flags.h"

#include "absl/strings/str_cat.h"
#include "service/flags.h"

namespace attendant {
namespace {

constexpr char kGroup[] = "Security";

void AddFile(CLI::App& app, const std::string& flag,
             const std::string& variable, std::string& path,
             const std::string& description) {
  app.add_option(flag, path, description)
      ->envname(variable)
      ->group(kGroup)
      ->type_name("FILE")
      ->check(CLI::Validator(CheckConfigText, "", "text"));
}

}  // namespace

void AddSecurityFlags(CLI::App& app, SecurityOptions& options) {
  AddFile(app, "--tls-cert", "ATTENDANT_TLS_CERT", options.tls.certificate,
          "The server's certificate and those above it, PEM. All files here "
          "are read again when they change");
  AddFile(app, "--tls-key", "ATTENDANT_TLS_KEY", options.tls.key,
          "The key of --tls-cert, PEM");
  AddFile(app, "--tls-client-ca", "ATTENDANT_TLS_CLIENT_CA",
          options.tls.client_ca,
          "Authorities, PEM: only clients with a certificate of one of them "
          "may connect");
  AddFile(app, "--auth-tokens", "ATTENDANT_AUTH_TOKENS", options.token_path,
          "Salted hashes of tokens, a line each (see attendantd token --help): "
          "each call needs a token that allows it. Without the file whoever "
          "can connect may do everything");
  app.add_flag("--anonymous-read", options.anonymous_read,
               "With --auth-tokens: calls without a token may read")
      ->envname("ATTENDANT_ANONYMOUS_READ")
      ->group(kGroup);
  app.add_flag("--plaintext-on-network", options.plaintext_on_network,
               "Listen without TLS where other machines can connect: all of "
               "them may read and change everything")
      ->envname("ATTENDANT_PLAINTEXT_ON_NETWORK")
      ->group(kGroup);
}

std::string ToText(const SecurityOptions& options) {
  const auto flag = [](bool value) { return value ? "true" : "false"; };
  return absl::StrCat(
      "tls-cert = \"", options.tls.certificate, "\"\n",         //
      "tls-key = \"", options.tls.key, "\"\n",                  //
      "tls-client-ca = \"", options.tls.client_ca, "\"\n",      //
      "auth-tokens = \"", options.token_path, "\"\n",           //
      "anonymous-read = ", flag(options.anonymous_read), "\n",  //
      "plaintext-on-network = ", flag(options.plaintext_on_network), "\n");
}

}  // namespace attendant
