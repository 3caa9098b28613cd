#include "service/token_command.h"

#include <fcntl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdio>
#include <iostream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/base/status.h"
#include "service/token_table.h"
#include "service/watched_files.h"

namespace attendant {
namespace {

constexpr int kUsageExitStatus = 2;

constexpr char kDescription[] =
    "Makes a bearer token: adds its salted hash to a file for --auth-tokens,\n"
    "and prints the token, which is kept nowhere else. A server that runs "
    "takes\n"
    "it within a second. To take a token back, delete its line.\n";

constexpr char kExamples[] =
    "\nRoles: read (queries and reads), write (items too), admin (catalogs,\n"
    "aliases, models and snapshots too).\n"
    "\nExamples:\n"
    "  attendantd token web --file /etc/attendant/tokens > web.token\n"
    "  attendantd token loader --role write --catalog films --catalog 'shop-*' "
    "\\\n"
    "      --file /etc/attendant/tokens > loader.token\n";

struct TokenFlags {
  std::string name;
  std::string role = "read";
  std::vector<std::string> catalogs = {"*"};
  std::string path;
};

// By one append, so that whoever owns the file still does, and a server sees
// the whole line or none of it.
absl::Status AppendLine(const std::string& path, const std::string& line) {
  const int file =
      open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
  const bool written = file >= 0 &&
                       write(file, line.data(), line.size()) ==
                           static_cast<ssize_t>(line.size()) &&
                       fsync(file) == 0;
  const absl::Status failure =
      absl::ErrnoToStatus(errno, absl::StrCat(path, " can't be written"));
  if (file >= 0) close(file);
  return written ? absl::OkStatus() : failure;
}

absl::StatusOr<std::string> AddToken(const TokenFlags& flags) {
  Grant grant{.name = flags.name};
  ATTENDANT_ASSIGN_OR_RETURN(grant.role, RoleFromName(flags.role));
  ATTENDANT_ASSIGN_OR_RETURN(
      grant.scope, CatalogScope::FromText(absl::StrJoin(flags.catalogs, ",")));
  ATTENDANT_ASSIGN_OR_RETURN(const NewToken made, MakeToken(grant));

  absl::StatusOr<std::string> before = ReadSmallFile(flags.path);
  if (absl::IsNotFound(before.status())) before = std::string();
  if (!before.ok()) return before.status();
  const bool ends_line = before->empty() || before->back() == '\n';
  const std::string added =
      absl::StrCat(ends_line ? "" : "\n", made.line, "\n");
  // A name twice, or a file that was no good before.
  const auto table = TokenTable::FromText(absl::StrCat(*before, added));
  if (!table.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat(flags.path, ": ", table.status().message()));
  }
  ATTENDANT_RETURN_IF_ERROR(AppendLine(flags.path, added));
  return made.token;
}

}  // namespace

int RunTokenCommand(int argc, const char* const* argv) {
  TokenFlags flags;
  CLI::App app(kDescription, "attendantd token");
  app.footer(kExamples);
  app.add_option("name", flags.name,
                 "What the token is called: letters, digits, '-' and '_'")
      ->required();
  app.add_option("--role", flags.role, "What it allows")
      ->check(CLI::IsMember({"read", "write", "admin"}))
      ->capture_default_str();
  app.add_option("--catalog", flags.catalogs,
                 "A catalog or alias that it may name, or the beginning of "
                 "such names with a * behind; many, or * for all")
      ->type_name("NAME")
      ->capture_default_str();
  app.add_option("--file", flags.path, "The file that the hash is added to")
      ->type_name("FILE")
      ->required();
  try {
    app.parse(argc - 1, argv + 1);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kUsageExitStatus;
  }
  const absl::StatusOr<std::string> token = AddToken(flags);
  if (!token.ok()) {
    std::cerr << "attendantd token: " << token.status().message() << "\n";
    return FieldOf(token.status()) ? kUsageExitStatus : 1;
  }
  std::cout << *token << "\n" << std::flush;
  return std::cout.good() ? 0 : 1;
}

}  // namespace attendant
