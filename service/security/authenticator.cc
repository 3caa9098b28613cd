#include "service/security/authenticator.h"

#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/base/clock.h"
#include "core/base/status.h"
#include "service/log/log.h"

namespace attendant {
namespace {

absl::StatusOr<TokenTable> ReadTable(const std::string& path) {
  ATTENDANT_ASSIGN_OR_RETURN(const std::string text, ReadSmallFile(path));
  absl::StatusOr<TokenTable> table = TokenTable::FromText(text);
  if (table.ok()) return table;
  return absl::InvalidArgumentError(
      absl::StrCat(path, ": ", table.status().message()));
}

// Returns nothing if the header uses another scheme.
std::optional<absl::string_view> BearerToken(absl::string_view header) {
  constexpr absl::string_view kScheme = "bearer ";
  if (!absl::StartsWithIgnoreCase(header, kScheme)) return std::nullopt;
  return absl::StripAsciiWhitespace(header.substr(kScheme.size()));
}

const std::shared_ptr<const Grant>& Anonymous() {
  static const auto& grant = *new std::shared_ptr<const Grant>(
      std::make_shared<Grant>(Grant{.name = "anonymous"}));
  return grant;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Authenticator>> Authenticator::Open(
    const std::string& path, bool anonymous_read) {
  // Watched before it is read, so that no change is missed.
  WatchedFiles files({path});
  ATTENDANT_ASSIGN_OR_RETURN(TokenTable table, ReadTable(path));
  return std::unique_ptr<Authenticator>(new Authenticator(
      path, anonymous_read, std::move(files), std::move(table)));
}

Authenticator::Authenticator(const std::string& path, bool anonymous_read,
                             WatchedFiles files, TokenTable table)
    : path_(path),
      anonymous_read_(anonymous_read),
      next_look_(SteadyNow()),
      table_(std::make_shared<TokenTable>(std::move(table))),
      files_(std::move(files)) {}

absl::Status Authenticator::CheckRole(Role needed, absl::string_view header) {
  const std::shared_ptr<const Grant> grant = GrantOf(header);
  if (grant != nullptr) return CheckRole(needed, *grant);
  if (header.empty()) {
    refusals_[AuthRefusal::kNoToken].Add();
    return StatusWithReason(absl::StatusCode::kUnauthenticated,
                            "authorization: got nothing, want a token of this "
                            "server as \"Bearer NAME.SECRET\"",
                            "TOKEN_MISSING");
  }
  refusals_[AuthRefusal::kUnknownToken].Add();
  return StatusWithReason(
      absl::StatusCode::kUnauthenticated,
      "authorization: got one that is no token of this server, want "
      "\"Bearer NAME.SECRET\" as attendantd token made it",
      "TOKEN_UNKNOWN");
}

absl::Status Authenticator::CheckRole(Role needed, const Grant& grant) {
  if (grant.role >= needed) return absl::OkStatus();
  refusals_[AuthRefusal::kRoleTooLow].Add();
  return StatusWithReason(
      absl::StatusCode::kPermissionDenied,
      absl::StrCat("this call wants the role ", RoleName(needed), ", and ",
                   &grant == Anonymous().get() ? "without a token it is "
                                               : "the token's is ",
                   RoleName(grant.role)),
      "ROLE_TOO_LOW");
}

std::shared_ptr<const Grant> Authenticator::GrantOf(absl::string_view header) {
  ReloadIfChanged();
  if (header.empty()) return anonymous_read_ ? Anonymous() : nullptr;
  const std::optional<absl::string_view> token = BearerToken(header);
  const std::shared_ptr<const TokenTable> table = table_.Load();
  return {table, token ? table->Find(*token) : nullptr};
}

void Authenticator::ReloadIfChanged() {
  const SteadyTime now = SteadyNow();
  SteadyTime next = next_look_.load(std::memory_order_relaxed);
  // One of the concurrent calls examines the file; the others do not wait.
  if (now < next || !next_look_.compare_exchange_strong(
                        next, now + absl::ToChronoNanoseconds(kLookInterval))) {
    return;
  }
  // Reload logs failures.
  Reload().IgnoreError();
}

absl::Status Authenticator::Reload() {
  MutexLock lock(&mutex_);
  if (!files_.HaveChanged()) return absl::OkStatus();
  absl::StatusOr<TokenTable> table = ReadTable(path_);
  // The file changed while it was read, so the content may be partial.
  if (files_.HaveChanged()) {
    table = absl::AbortedError(
        absl::StrCat(path_, " was written while it was read"));
  }
  if (!table.ok()) {
    files_.ReadAgain();
    const bool is_known = table.status() == last_failure_;
    last_failure_ = table.status();
    if (is_known) return last_failure_;
    LogEvent(LogLevel::kError, "tokens_not_reloaded",
             {{"error", std::string(table.status().message())},
              {"what_now", "the tokens read before remain valid"}});
    return last_failure_;
  }
  last_failure_ = absl::OkStatus();
  if (table->empty()) {
    LogEvent(LogLevel::kWarning, "tokens_empty",
             {{"path", path_},
              {"what_now",
               "no token is valid any more; to restore one, replace the file "
               "with one that contains its line"}});
  }
  table_.Store(std::make_shared<TokenTable>(*std::move(table)));
  LogEvent(LogLevel::kInfo, "tokens_reloaded", {{"path", path_}});
  return absl::OkStatus();
}

}  // namespace attendant
