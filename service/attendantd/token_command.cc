#include "service/attendantd/token_command.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdio>
#include <iostream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/base/file_descriptor.h"
#include "core/base/status.h"
#include "service/attendantd/flags.h"
#include "service/security/token_table.h"
#include "service/security/watched_files.h"

namespace attendant {
namespace {

constexpr char kTokenDescription[] =
    "Makes a bearer token: adds its salted hash to a file for --auth-tokens\n"
    "and prints the token, which is stored nowhere else. Keep it in a file\n"
    "that only its user can read, as with umask 077. A running server accepts\n"
    "the token within a second. To revoke a token, delete its line.\n";

constexpr char kTokenExamples[] =
    "\n"
    "Roles: read (queries and reads), write (also items), admin (also\n"
    "catalogs, aliases, models and snapshots).\n"
    "\n"
    "Examples:\n"
    "  (umask 077\n"
    "   attendantd token web --file /etc/attendant/tokens > web.token\n"
    "   attendantd token loader --role write --catalog films \\\n"
    "       --catalog 'shop-*' --file /etc/attendant/tokens > loader.token)\n"
    "  chgrp attendant /etc/attendant/tokens; chmod 640 /etc/attendant/tokens\n"
    "      lets the user of the packaged server read the file; needed only\n"
    "      once, since the file keeps its owner and mode\n";

struct TokenFlags {
  std::string name;
  std::string role = "read";
  std::vector<std::string> catalogs = {"*"};
  std::string path;
};

// A file locked against concurrent runs of this command.
class LockedFile {
 public:
  explicit LockedFile(const std::string& path)
      : path_(path),
        file_(open(path.c_str(), O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC,
                   0600)) {}

  absl::Status Lock() {
    return file_.valid() && flock(file_.get(), LOCK_EX) == 0 ? absl::OkStatus()
                                                             : Failure(errno);
  }

  // Writes with a single append, so that the file keeps its owner and a server
  // sees either the whole line or nothing.
  absl::Status Append(const std::string& line) {
    const off_t end = lseek(file_.get(), 0, SEEK_END);
    const ssize_t written = write(file_.get(), line.data(), line.size());
    const bool is_whole = written == static_cast<ssize_t>(line.size());
    if (is_whole && fsync(file_.get()) == 0) return absl::OkStatus();
    // A short write sets no errno: the disk is full.
    const bool is_short = written >= 0 && !is_whole;
    const absl::Status failure = Failure(is_short ? ENOSPC : errno);
    if (ftruncate(file_.get(), end) == 0) return failure;
    return absl::Status(
        failure.code(),
        absl::StrCat(failure.message(), "; remove its last, incomplete line"));
  }

 private:
  absl::Status Failure(int error) const {
    return absl::ErrnoToStatus(error, absl::StrCat(path_, " can't be written"));
  }

  const std::string path_;
  const FileDescriptor file_;
};

absl::Status AddToken(const TokenFlags& flags) {
  Grant grant{.name = flags.name};
  ATTENDANT_ASSIGN_OR_RETURN(grant.role, RoleFromName(flags.role));
  ATTENDANT_ASSIGN_OR_RETURN(
      grant.scope, CatalogScope::FromText(absl::StrJoin(flags.catalogs, ",")));
  ATTENDANT_ASSIGN_OR_RETURN(const NewToken made, MakeToken(grant));

  LockedFile file(flags.path);
  ATTENDANT_RETURN_IF_ERROR(file.Lock());
  ATTENDANT_ASSIGN_OR_RETURN(const std::string before,
                             ReadSmallFile(flags.path));
  const auto table = TokenTable::FromText(before);
  if (!table.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat(flags.path, ": ", table.status().message()));
  }
  if (table->HasName(flags.name)) {
    return absl::AlreadyExistsError(absl::StrCat(
        "there is a token '", flags.name, "' already; choose another name"));
  }
  const bool ends_line = before.empty() || before.back() == '\n';
  const std::string added =
      absl::StrCat(ends_line ? "" : "\n", made.line, "\n");
  if (before.size() + added.size() > kMaxSmallFileBytes) {
    return absl::ResourceExhaustedError(
        absl::StrCat(flags.path, " is full: servers read at most ",
                     kMaxSmallFileBytes, " bytes"));
  }
  // Print the token first: a line in the file whose token nobody has seen would
  // only block its name.
  if (!(std::cout << made.token << "\n" << std::flush)) {
    return absl::DataLossError("standard output can't be written");
  }
  return file.Append(added);
}

}  // namespace

int RunTokenCommand(int argc, const char* const* argv) {
  TokenFlags flags;
  CLI::App app(kTokenDescription, "attendantd token");
  app.footer(kTokenExamples);
  app.add_option("name", flags.name,
                 "Name of the token: at most 64 letters, digits, '-' and '_'")
      ->required();
  app.add_option("--role", flags.role, "What the token permits")
      ->check(CLI::IsMember({"read", "write", "admin"}))
      ->capture_default_str();
  app.add_option("--catalog", flags.catalogs,
                 "A catalog or alias that calls with the token may name, or a "
                 "prefix of such names followed by *; may be repeated; *: all")
      ->type_name("NAME")
      ->capture_default_str();
  app.add_option("--file", flags.path, "File to which the hash is appended")
      ->type_name("FILE")
      ->required();
  try {
    app.parse(argc - 1, argv + 1);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);  // help
    std::cerr << "attendantd token: " << error.what()
              << "; see attendantd token --help\n";
    return kUsageExitStatus;
  }
  const absl::Status added = AddToken(flags);
  if (added.ok()) return 0;
  std::cerr << "attendantd token: " << added.message() << "\n";
  return FieldOf(added) ? kUsageExitStatus : 1;
}

}  // namespace attendant
