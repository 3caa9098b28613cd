#include "service/attendantd/security_flags.h"

#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "core/base/status.h"
#include "service/attendantd/flags.h"

namespace attendant {
namespace {

constexpr char kSecurityGroup[] = "Security";

constexpr char kCertificateVariable[] = "ATTENDANT_TLS_CERT";
constexpr char kKeyVariable[] = "ATTENDANT_TLS_KEY";
constexpr char kClientCaVariable[] = "ATTENDANT_TLS_CLIENT_CA";
constexpr char kTokensVariable[] = "ATTENDANT_AUTH_TOKENS";
constexpr const char* kVariables[] = {kCertificateVariable, kKeyVariable,
                                      kClientCaVariable, kTokensVariable};

void AddFile(CLI::App& app, const std::string& flag,
             const std::string& variable, std::string& path,
             const std::string& description) {
  app.add_option(flag, path, description)
      ->envname(variable)
      ->group(kSecurityGroup)
      ->type_name("FILE")
      ->check(CLI::Validator(
          [](const std::string& text) {
            return text.empty()
                       ? "got nothing, want a file; to use none, omit the flag"
                       : CheckConfigText(text);
          },
          "", "text"));
}

// CLI11 accepts any number as a boolean, so the values are checked here.
void AddFlag(CLI::App& app, const std::string& flag,
             const std::string& variable, bool& value,
             const std::string& description) {
  app.add_flag(flag, value, description)
      ->envname(variable)
      ->group(kSecurityGroup)
      ->check(CLI::Validator(
          [](const std::string& text) {
            const bool fits =
                text == "true" || text == "false" || text == "1" || text == "0";
            return fits ? ""
                        : absl::StrCat("got '", text, "', want true or false");
          },
          "", "truth"));
}

}  // namespace

void AddSecurityFlags(CLI::App& app, SecurityOptions& options) {
  AddFile(app, "--tls-cert", kCertificateVariable, options.tls.certificate,
          "The server's certificate chain, PEM. Changes to the files of this "
          "group take effect without a restart");
  AddFile(app, "--tls-key", kKeyVariable, options.tls.key,
          "Private key of --tls-cert, PEM");
  AddFile(app, "--tls-client-ca", kClientCaVariable, options.tls.client_ca,
          "CA certificates, PEM: only clients with a certificate from one of "
          "these CAs may connect or read /metrics; /livez and /readyz need no "
          "certificate");
  AddFile(app, "--auth-tokens", kTokensVariable, options.token_path,
          "File of salted token hashes, one per line (see attendantd token "
          "--help): each call needs a token that permits it. Without this flag "
          "anyone who can connect may do everything");
  AddFlag(app, "--anonymous-read", "ATTENDANT_ANONYMOUS_READ",
          options.anonymous_read,
          "With --auth-tokens: allow calls without a token to read, and anyone "
          "to read /metrics");
  AddFlag(app, "--plaintext-on-network", "ATTENDANT_PLAINTEXT_ON_NETWORK",
          options.plaintext_on_network,
          "Listen without TLS where other machines can connect: any of them "
          "may read and change everything");
}

absl::Status CheckSecurityVariables() {
  for (const char* variable : kVariables) {
    const char* value = std::getenv(variable);
    if (value != nullptr && *value == '\0') {
      return InvalidField(variable, "nothing",
                          "a file, or the variable unset: an empty one would "
                          "turn this protection off");
    }
  }
  return absl::OkStatus();
}

std::string ToText(const SecurityOptions& options) {
  const auto flag = [](bool value) { return value ? "true" : "false"; };
  // Omits an unset file: if a path could be empty, an empty path given by
  // mistake would turn security off.
  const auto file = [](absl::string_view name, const std::string& path) {
    return path.empty() ? "" : absl::StrCat(name, " = \"", path, "\"\n");
  };
  return absl::StrCat(
      file("tls-cert", options.tls.certificate),                //
      file("tls-key", options.tls.key),                         //
      file("tls-client-ca", options.tls.client_ca),             //
      file("auth-tokens", options.token_path),                  //
      "anonymous-read = ", flag(options.anonymous_read), "\n",  //
      "plaintext-on-network = ", flag(options.plaintext_on_network), "\n");
}

}  // namespace attendant
