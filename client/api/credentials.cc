#include "client/api/credentials.h"

#include <fstream>
#include <map>
#include <sstream>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "core/base/status.h"

namespace attendant {
namespace {

absl::StatusOr<std::string> ReadPem(const std::string& path) {
  if (path.empty()) return std::string();
  std::ifstream file(path, std::ios::binary);
  std::ostringstream content;
  content << file.rdbuf();
  if (file.good() && !content.str().empty()) return content.str();
  return absl::InvalidArgumentError(
      absl::StrCat(path, " can't be read or is empty"));
}

// Adds the token to the metadata of each call.
class TokenPlugin final : public grpc::MetadataCredentialsPlugin {
 public:
  explicit TokenPlugin(const std::string& token)
      : header_(absl::StrCat("Bearer ", token)) {}
  bool IsBlocking() const override { return false; }
  grpc::Status GetMetadata(
      grpc::string_ref /*service_url*/, grpc::string_ref /*method*/,
      const grpc::AuthContext& /*channel*/,
      std::multimap<grpc::string, grpc::string>* metadata) override {
    metadata->emplace("authorization", header_);
    return grpc::Status::OK;
  }

 private:
  const std::string header_;
};

}  // namespace

absl::StatusOr<std::shared_ptr<grpc::ChannelCredentials>>
MakeChannelCredentials(const ClientSecurity& security) {
  if (security.certificate_path.empty() != security.key_path.empty()) {
    return InvalidField(
        security.key_path.empty() ? "client-key" : "client-cert", "nothing",
        "a file: a certificate and its key go together");
  }
  const bool has_tls = !security.ca_path.empty();
  if (!has_tls && !security.key_path.empty()) {
    return InvalidField("ca", "nothing",
                        "the server's authority with a client certificate");
  }
  if (!absl::c_all_of(security.token,
                      [](char c) { return c > ' ' && c < 127; })) {
    return InvalidField("auth-token", "one with blanks or control characters",
                        "NAME.SECRET as attendantd token made it");
  }
  grpc::SslCredentialsOptions tls;
  ATTENDANT_ASSIGN_OR_RETURN(tls.pem_root_certs, ReadPem(security.ca_path));
  ATTENDANT_ASSIGN_OR_RETURN(tls.pem_cert_chain,
                             ReadPem(security.certificate_path));
  ATTENDANT_ASSIGN_OR_RETURN(tls.pem_private_key, ReadPem(security.key_path));
  if (security.token.empty()) {
    return has_tls ? grpc::SslCredentials(tls)
                   : grpc::InsecureChannelCredentials();
  }
  // Local credentials refuse to connect to another machine: a token does not
  // cross a network in the clear.
  return grpc::CompositeChannelCredentials(
      has_tls ? grpc::SslCredentials(tls)
              : grpc::experimental::LocalCredentials(LOCAL_TCP),
      grpc::experimental::MetadataCredentialsFromPlugin(
          std::make_unique<TokenPlugin>(security.token),
          has_tls ? GRPC_PRIVACY_AND_INTEGRITY : GRPC_SECURITY_NONE));
}

}  // namespace attendant
