// Fixture shared by the tests of TLS and tokens.
#ifndef ATTENDANT_TESTS_SERVICE_SECURE_SERVER_H_
#define ATTENDANT_TESTS_SERVICE_SECURE_SERVER_H_

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "client/api/client.h"
#include "core/catalog/live/catalog_set.h"
#include "service/metrics/metric_page.h"
#include "service/security/access.h"
#include "service/security/token_table.h"
#include "service/server.h"
#include "tests/service/internal_errors.h"
#include "tests/support/scratch_directory.h"
#include "tests/support/status_matchers.h"

namespace attendant {

// A server on a free loopback port, initially without catalogs, and a directory
// for certificate and token files.
class SecureServer : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_OK_AND_ASSIGN(catalogs_, CatalogSet::Open(data_.path(), {}));
  }
  void TearDown() override {
    if (server_ != nullptr) {
      server_->Shutdown(absl::ZeroDuration());
      MetricPage page;
      server_->WriteMetrics(page);
      internal_errors_.Check(page);
    }
    server_.reset();
    catalogs_.reset();
  }

  absl::Status Start() {
    options_.listen = "127.0.0.1:0";
    auto server = Server::Start(options_, catalogs_.get());
    if (server.ok()) server_ = *std::move(server);
    return server.status();
  }

  std::string address() const {
    return absl::StrCat("127.0.0.1:", server_->port());
  }

  absl::StatusOr<std::unique_ptr<Client>> Connect(
      const ClientSecurity& security) const {
    return Client::Connect({.server = address(),
                            .deadline = absl::Seconds(30),
                            .security = security});
  }

  // Replaces a file by renaming a new one over it, as certificate renewal does.
  std::string Write(const std::string& name, const std::string& content) const {
    const std::string path = files_ / name;
    std::ofstream(path + ".new") << content;
    std::filesystem::rename(path + ".new", path);
    return path;
  }

  void AddToken(const std::string& name, Role role, const std::string& scope) {
    ASSERT_OK_AND_ASSIGN(const auto catalogs, CatalogScope::FromText(scope));
    ASSERT_OK_AND_ASSIGN(
        const NewToken made,
        MakeToken({.name = name, .role = role, .scope = catalogs}));
    tokens_[name] = made.token;
    lines_[name] = made.line;
  }
  // Writes the added tokens to the token file, which a starting server reads
  // and a running one reloads.
  void WriteTokens() {
    std::string text;
    for (const auto& [name, line] : lines_) absl::StrAppend(&text, line, "\n");
    options_.security.token_path = Write("tokens", text);
  }

  std::map<std::string, std::string> tokens_;  // by name
  std::map<std::string, std::string> lines_;   // of the token file, by name
  Server::Options options_;
  InternalErrors internal_errors_;
  ScratchDirectory data_;
  ScratchDirectory files_;
  std::unique_ptr<CatalogSet> catalogs_;
  std::unique_ptr<Server> server_;
};

}  // namespace attendant

#endif  // ATTENDANT_TESTS_SERVICE_SECURE_SERVER_H_
