// What an operator writes, and headers of each call:
// - attendantd's configuration file is refused as bad usage with a reason, or
//   its values are in range and read back the same.
// - The token file, a token's scope and traceparent are refused, or the result
//   is well-formed.
// - authorization is refused unless it has the only token.
// - A method's path allows nobody more than its role.
// - Addresses are refused, or have an existing port.
// - A token's name is refused, or the new token matches its line.
#include <netinet/in.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "service/attendantd/flags.h"
#include "service/connections/listen_address.h"
#include "service/log/trace_parent.h"
#include "service/security/access.h"
#include "service/security/authenticator.h"
#include "service/security/token_table.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/scratch.h"

namespace attendant {
namespace {

std::variant<Flags, EarlyExit> ParseFile(absl::string_view text) {
  const std::string path = WriteScratch("attendantd.toml", text);
  const char* const arguments[] = {"attendantd", "--config", path.c_str()};
  return ParseFlags(3, arguments);
}

void CheckText(absl::string_view text) {
  const auto parsed = ParseFile(text);
  if (const auto* exit = std::get_if<EarlyExit>(&parsed)) {
    Require(!exit->text.empty() &&
                (exit->exit_status == 0 || exit->exit_status == 2),
            "bad usage is told");
    return;
  }
  Accept();
  const Flags& flags = std::get<Flags>(parsed);
  Require(flags.server.worker_count >= 1 && flags.server.worker_count <= 1024,
          "workers in range");
  Require(flags.server.max_message_bytes >= 64 << 10, "messages in range");
  Require(flags.grace_seconds >= 0 && flags.grace_seconds <= 3600,
          "grace in range");
  Require(flags.memory_limit_bytes >= 0, "memory in range");
  Require(flags.auto_ivf_min_count >= 1, "keys in range");
  Require(ValidateListen(flags.server.listen).ok(), "an address");
  const std::string written = ToText(flags);
  const auto again = ParseFile(written);
  const Flags* same = std::get_if<Flags>(&again);
  Require(same != nullptr, "what is written is read:\n" + written);
  Require(ToText(*same) == written, "and is the same:\n" + written);
}

// A token used only in these tests, with the role write, and its hash.
constexpr absl::string_view kToken =
    "ci.d9cbocwO4Dol2MLyiMnvQ5AMSd611obthTEe8ZA6YPQ";
constexpr absl::string_view kTokenLine =
    "ci write films hkdf-sha256:573Khj3au4_SslpuT9kfgQ:"
    "mZGhsest4o6C8UKOTnTJQOGRY18P0honO1W9drtEPhM";

// Reads a file that contains the token.
std::unique_ptr<Authenticator> OpenAuthenticator(bool anonymous_read) {
  static const std::string path = WriteScratch("tokens", kTokenLine);
  auto opened = Authenticator::Open(path, anonymous_read);
  Require(opened.ok(), "the file of tokens");
  return *std::move(opened);
}

void CheckAuthorization(absl::string_view text) {
  static const auto strict = OpenAuthenticator(false);
  static const auto open = OpenAuthenticator(true);
  const bool is_token = absl::AsciiStrToLower(text.substr(0, 7)) == "bearer " &&
                        absl::StripAsciiWhitespace(text.substr(7)) == kToken;
  if (is_token) Accept();
  for (Authenticator* authenticator : {strict.get(), open.get()}) {
    const bool may_read =
        is_token || (text.empty() && authenticator == open.get());
    Require((authenticator->GrantOf(text) != nullptr) == may_read,
            "a grant to whom may read");
    for (const Role needed : {Role::kRead, Role::kWrite, Role::kAdmin}) {
      const absl::Status status = authenticator->CheckRole(needed, text);
      if (needed == Role::kRead ? may_read
                                : is_token && needed == Role::kWrite) {
        Require(status.ok(), "the token's role");
        continue;
      }
      RequireRefusal(status, {may_read ? absl::StatusCode::kPermissionDenied
                                       : absl::StatusCode::kUnauthenticated});
      Require(!absl::StrContains(status.message(), kToken),
              "a refusal tells of no token");
    }
  }
}

// The new token is recognised by its line; the line itself is not a token.
void CheckNewToken(absl::string_view name) {
  for (const Role role : {Role::kRead, Role::kAdmin}) {
    const auto made = MakeToken({.name = std::string(name), .role = role});
    if (!made.ok()) {
      RequireRefusal(made.status(), {absl::StatusCode::kInvalidArgument});
      continue;
    }
    Accept();
    const auto table = TokenTable::FromText(made->line);
    Require(table.ok(), "the line of a new token is read");
    // The second lookup hits the cache.
    for (int i = 0; i < 2; ++i) {
      const Grant* const grant = table->Find(made->token);
      Require(grant != nullptr && grant->name == name && grant->role == role &&
                  grant->scope.HoldsAll(),
              "a new token gives what it was made for");
      Require(table->Find(made->token + "A") == nullptr &&
                  table->Find(made->line) == nullptr,
              "nothing else does");
    }
    Require(!TokenTable::FromText(made->line + "\n" + made->line).ok(),
            "a name is of one token");
  }
}

// Only methods of the health service have no role; methods for readers are
// ours.
void CheckMethod(absl::string_view path) {
  const auto role = RoleFor(path);
  if (!role.has_value()) {
    Require(absl::StartsWith(path, "/grpc.health.v1.Health/"),
            "only health is open to all");
    return;
  }
  if (*role == Role::kAdmin) return;
  Accept();
  Require(absl::StartsWith(path, "/attendant.v1.") ||
              absl::StartsWith(path, "/grpc.reflection."),
          "what is not known is for the admin");
  const auto same = RoleFromName(RoleName(*role));
  Require(same.ok() && *same == *role, "a role is known by its name");
}

// As text, and as the bytes of a socket address.
void CheckAddress(absl::string_view text) {
  if (!text.empty() && text.size() <= sizeof(sockaddr_storage)) {
    sockaddr_storage address = {};
    std::memcpy(&address, text.data(), text.size());
    const int port = PortOfAddress(address);
    Require(port >= -1 && port <= 65535, "a port is in range");
    Require(port < 0 || address.ss_family == AF_INET ||
                address.ss_family == AF_INET6,
            "only TCP has ports");
  }
  const absl::Status status = ValidateListen(text);
  if (!status.ok()) {
    RequireRefusal(status, {absl::StatusCode::kInvalidArgument});
    return;
  }
  Accept();
  for (const int error : {0, EADDRINUSE, EADDRNOTAVAIL, EACCES, EMFILE}) {
    const absl::Status failure = CannotListen(text, " for tests", error);
    RequireRefusal(failure,
                   {error == EMFILE ? absl::StatusCode::kResourceExhausted
                                    : absl::StatusCode::kUnavailable});
    Require(absl::StrContains(failure.message(), text), "it says where");
  }
}

bool IsHex(absl::string_view text) {
  return text.find_first_not_of("0123456789abcdef") == text.npos;
}

void CheckTokens(absl::string_view text) {
  const auto table = TokenTable::FromText(text);
  if (!table.ok()) {
    Require(absl::IsInvalidArgument(table.status()) &&
                absl::StartsWith(table.status().message(), "line "),
            "the line is named");
    return;
  }
  Accept();
  // Nobody knows the secret of a hash.
  for (const absl::string_view token : {absl::string_view(), text}) {
    Require(table->Find(token) == nullptr, "no token by chance");
  }
}

void CheckScope(absl::string_view text) {
  const auto scope = CatalogScope::FromText(text);
  if (!scope.ok()) {
    Require(absl::IsInvalidArgument(scope.status()), "a bad scope is told");
    return;
  }
  Accept();
  Require(scope->ToText() == text, "a scope is written as it was read");
  for (absl::string_view name : absl::StrSplit(text, ',')) {
    absl::ConsumeSuffix(&name, "*");
    Require(scope->Holds(name), "a name of the scope is in it");
  }
  Require(scope->HoldsAll() == (text == "*"), "only * is all");
  Require(scope->HoldsAll() || !scope->Holds("A"), "no name has capitals");
}

void CheckTraceParent(absl::string_view text) {
  const auto trace = ParseTraceParent(text);
  if (!trace.has_value()) return;
  Accept();
  Require(trace->trace_id.size() == 32 && IsHex(trace->trace_id), "a trace");
  Require(trace->parent_id.size() == 16 && IsHex(trace->parent_id), "a span");
  Require(trace->trace_id.find_first_not_of('0') != text.npos &&
              trace->parent_id.find_first_not_of('0') != text.npos,
          "neither is nothing");
}

}  // namespace

void CheckInput(absl::string_view input) {
  CheckText(input);
  CheckTokens(input);
  CheckScope(input);
  CheckTraceParent(input);
  CheckAuthorization(input);
  CheckNewToken(input);
  CheckMethod(input);
  CheckAddress(input);
}

}  // namespace attendant
