#include "service/attendantd/flags.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <memory>
#include <set>
#include <sstream>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "absl/time/time.h"
#include "core/base/host_port.h"
#include "core/base/misspelled.h"
#include "core/base/process_memory.h"
#include "core/base/status.h"
#include "core/catalog/live/live_catalog.h"
#include "service/attendantd/flag_values.h"
#include "service/attendantd/limit_flags.h"
#include "service/attendantd/security_flags.h"
#include "service/connections/listen_address.h"
#include "service/security/watched_files.h"

namespace attendant {
namespace {

constexpr absl::string_view kNone = "none";

constexpr char kDescription[] =
    "attendantd serves catalogs of items over gRPC. A query attends over a\n"
    "catalog and returns weighted items, the pooled value and the share of\n"
    "the catalog's attention that the answer holds.\n"
    "For access tokens see `attendantd token --help`.\n";

constexpr char kExamples[] =
    "\n"
    "A flag overrides the --config file, which overrides the environment\n"
    "variable, which overrides the default. Names may use _ instead of -.\n"
    "\n"
    "Examples:\n"
    "  attendantd --data-dir /var/lib/attendant\n"
    "  attendantd --data-dir /tmp/try --listen 127.0.0.1:0\n"
    "      picks a free port and prints it: attendantd ready on "
    "127.0.0.1:PORT\n"
    "  attendantd --listen 0.0.0.0:7600 --tls-cert server.pem --tls-key "
    "server.key\n"
    "      accepts connections from other machines, over TLS\n"
    "  (umask 077; attendantd token reader --file tokens > reader.token)\n"
    "      makes a token for --auth-tokens tokens; see attendantd token "
    "--help\n"
    "  ATTENDANT_LISTEN=127.0.0.1:7601 attendantd --config "
    "/etc/attendant.toml\n"
    "      reads a file with lines such as data-dir = \"/var/lib/attendant\"\n"
    "\n"
    "The environment variable ATTENDANT_KERNELS (scalar, avx2 or avx512)\n"
    "selects the instruction set of the inner loops; default: the best\n"
    "available.\n"
    "\n"
    "SIGTERM or SIGINT stops the server after the requests in progress; a\n"
    "second signal stops it at once. In both cases every acknowledged write\n"
    "is on disk. SIGHUP reloads the TLS certificate and the token file.\n";

// Returns the flag's value; 0: slow queries are not logged.
int SlowQueryMs(const Flags& flags) {
  const absl::Duration time = flags.server.slow_query_time;
  return time == absl::InfiniteDuration()
             ? 0
             : static_cast<int>(absl::ToInt64Milliseconds(time));
}

// Returns a flag or key in its canonical spelling, with '-' for '_'.
std::string WithDashes(absl::string_view name) {
  return absl::StrReplaceAll(name, {{"_", "-"}});
}

// Returns the arguments with the flag names in canonical spelling.
std::vector<std::string> WithDashes(int argc, const char* const* argv) {
  std::vector<std::string> arguments(argv, argv + argc);
  for (std::string& argument : arguments) {
    if (!absl::StartsWith(argument, "--")) continue;
    const std::size_t name_end = std::min(argument.find('='), argument.size());
    argument.replace(0, name_end, WithDashes(argument.substr(0, name_end)));
  }
  return arguments;
}

// Rejects duplicate keys: otherwise, if a file sets a key twice, or in both
// spellings, the first value would win.
class EachKeyOnce final : public CLI::ConfigTOML {
 public:
  std::vector<CLI::ConfigItem> from_config(std::istream& file) const override {
    std::string bytes(kMaxSmallFileBytes + 1, '\0');
    file.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    bytes.resize(static_cast<std::size_t>(file.gcount()));
    if (bytes.size() > kMaxSmallFileBytes) {
      throw CLI::ConfigError(absl::StrCat("the --config file has more than ",
                                          kMaxSmallFileBytes, " bytes"));
    }
    // Some editors write a UTF-8 byte order mark.
    std::istringstream text(
        std::string(absl::StripPrefix(bytes, "\xEF\xBB\xBF")));
    std::vector<CLI::ConfigItem> found = CLI::ConfigTOML::from_config(text);
    std::set<std::string> keys;
    for (CLI::ConfigItem& item : found) {
      // Sections are not supported; keys in one are rejected later.
      if (!item.parents.empty()) continue;
      item.name = WithDashes(item.name);
      if (!keys.insert(item.name).second) {
        throw CLI::ConfigError(
            absl::StrCat("the --config file sets ", item.name, " twice"));
      }
    }
    return found;
  }
};

// Checks HOST:PORT; the caller prefixes the message with the flag's name.
std::string WrongWithListen(const std::string& listen) {
  const std::string wrong = CheckConfigText(listen);
  if (!wrong.empty()) return wrong;
  const absl::Status status = ValidateListen(listen);
  return std::string(absl::StripPrefix(status.message(), "listen: "));
}

void AddServingFlags(CLI::App& app, Flags& flags) {
  constexpr char kGroup[] = "Serving";
  app.add_option("--listen", flags.server.listen,
                 "Address to listen on, HOST:PORT; port 0 picks a free port")
      ->envname("ATTENDANT_LISTEN")
      ->group(kGroup)
      ->type_name("HOST:PORT")
      ->check(CLI::Validator(&WrongWithListen, "", "listen"))
      ->capture_default_str();
  app.add_option(
         "--http-listen", flags.http_listen,
         "Address of /metrics, /livez and /readyz, HOST:PORT, or none to "
         "disable them. Default: 127.0.0.1 and the port of --listen plus 1000; "
         "a free port if --listen has port 0 or that is above 65535")
      ->envname("ATTENDANT_HTTP_LISTEN")
      ->group(kGroup)
      ->type_name("HOST:PORT")
      ->check(CLI::Validator(
          [](const std::string& listen) {
            return listen == kNone ? std::string() : WrongWithListen(listen);
          },
          "", "listen"));
  app.add_option("--workers", flags.server.worker_count,
                 "Threads that answer queries; 0: one per core")
      ->envname("ATTENDANT_WORKERS")
      ->group(kGroup)
      ->type_name("COUNT")
      ->check(InRange(0, 1024))
      ->capture_default_str();
  app.add_option(
         "--max-message-bytes", flags.server.max_message_bytes,
         "Maximum size of a request or a reply; larger ones are refused")
      ->envname("ATTENDANT_MAX_MESSAGE_BYTES")
      ->group(kGroup)
      ->type_name("BYTES")
      ->check(InRange(64 << 10, std::numeric_limits<int>::max()))
      ->capture_default_str();
  app.add_option("--max-waiting", flags.server.max_waiting_count,
                 "Maximum number of waiting requests of each kind; for queries "
                 "the limit falls when they wait too long")
      ->envname("ATTENDANT_MAX_WAITING")
      ->group(kGroup)
      ->type_name("COUNT")
      ->check(InRange(1, 1000000))
      ->capture_default_str();
  app.add_option("--grace-seconds", flags.grace_seconds,
                 "How long a shutdown waits for requests in progress")
      ->envname("ATTENDANT_GRACE_SECONDS")
      ->group(kGroup)
      ->type_name("SECONDS")
      ->check(InRange(0, 3600))
      ->capture_default_str();
}

void AddStorageFlags(CLI::App& app, Flags& flags) {
  constexpr char kGroup[] = "Data";
  app.add_option("--data-dir", flags.data_dir,
                 "Directory of the catalogs, created if missing; used by one "
                 "process at a time")
      ->envname("ATTENDANT_DATA_DIR")
      ->group(kGroup)
      ->type_name("DIR")
      ->check(CLI::Validator(
          [](const std::string& text) {
            return text.empty() ? "got nothing, want a directory"
                                : CheckConfigText(text);
          },
          "", "text"))
      ->capture_default_str();
  app.add_option("--memory-limit", flags.memory_limit_bytes,
                 "Maximum memory of the process: bytes, bytes with a unit "
                 "(12GiB), or a percentage of the memory of the machine or its "
                 "control group (default: 80%); 0: unlimited. Above it writes "
                 "are refused and index builds are postponed")
      ->envname("ATTENDANT_MEMORY_LIMIT")
      ->group(kGroup)
      ->type_name("BYTES")
      ->transform(AsBytes(MachineMemoryBytes()))
      ->check(
          InRange(std::int64_t{0}, std::numeric_limits<std::int64_t>::max()))
      ->capture_default_str();
  app.add_option("--auto-ivf-min-count", flags.auto_ivf_min_count,
                 "Number of keys from which the index AUTO is IVF; with fewer "
                 "it is FLAT, and answers are exact")
      ->envname("ATTENDANT_AUTO_IVF_MIN_COUNT")
      ->group(kGroup)
      ->type_name("COUNT")
      ->check(InRange(1, std::numeric_limits<int>::max()))
      ->capture_default_str();
}

void AddLoggingFlags(CLI::App& app, int& slow_query_ms,
                     std::string& log_level) {
  constexpr char kGroup[] = "Logging";
  app.add_option("--slow-query-ms", slow_query_ms,
                 "Log queries that take at least MS milliseconds, with what "
                 "they did and where the time went; 0: none")
      ->envname("ATTENDANT_SLOW_QUERY_MS")
      ->group(kGroup)
      ->type_name("MS")
      ->check(InRange(0, 3600000))
      ->capture_default_str();
  app.add_option("--log-level", log_level,
                 "Minimum level of the JSON log lines on stderr: debug, info, "
                 "warning or error")
      ->envname("ATTENDANT_LOG_LEVEL")
      ->group(kGroup)
      ->type_name("LEVEL")
      ->check(CLI::IsMember({"debug", "info", "warning", "error"}))
      ->capture_default_str();
}

EarlyExit ExitOf(const absl::Status& status) {
  return {absl::StrCat("attendantd: ", status.message(),
                       "; see attendantd --help\n"),
          kUsageExitStatus};
}

// Returns the message about words that are no flags, in their order.
std::string NotExpected(const CLI::App& app) {
  const std::vector<std::string> words = app.remaining();
  std::string nearest;
  for (const std::string& word : words) {
    if (!absl::StartsWith(word, "--")) continue;
    const std::string name = word.substr(0, word.find('='));
    std::size_t least = MaxEdits(name.substr(2)) + 1;
    for (const CLI::Option* option : app.get_options()) {
      for (const std::string& long_name : option->get_lnames()) {
        const std::string flag = absl::StrCat("--", long_name);
        const std::size_t edits = EditDistance(name, flag);
        if (edits >= least) continue;
        least = edits;
        nearest = flag;
      }
    }
    break;
  }
  return absl::StrCat(
      "not expected: ", absl::StrJoin(words, " "),
      nearest.empty() ? "" : absl::StrCat(" (did you mean ", nearest, "?)"));
}

EarlyExit ExitOf(const CLI::App& app, const CLI::ParseError& error) {
  std::ostringstream out;
  std::ostringstream err;
  const int exit_status = app.exit(error, out, err);
  if (exit_status == 0) return {out.str(), 0};
  if (error.get_exit_code() == static_cast<int>(CLI::ExitCodes::ExtrasError)) {
    return ExitOf(absl::InvalidArgumentError(NotExpected(app)));
  }
  absl::string_view text = error.what();
  // The library's message for an unknown key in a configuration file.
  const bool unknown_key =
      absl::ConsumePrefix(&text, "INI was not able to parse ");
  // The library's mark of a [section].
  if (unknown_key) absl::ConsumeSuffix(&text, ".++");
  return {
      absl::StrCat("attendantd: ",
                   unknown_key ? "the --config file has an unknown key: " : "",
                   text, "; see attendantd --help\n"),
      kUsageExitStatus};
}

// OK unless options that are valid by themselves conflict.
absl::Status CheckTogether(const Flags& flags) {
  ATTENDANT_RETURN_IF_ERROR(CheckSecurityVariables());
  const Server::Options& server = flags.server;
  ATTENDANT_RETURN_IF_ERROR(
      ValidateSecurity(server.security, HostOf(server.listen)));
  ATTENDANT_RETURN_IF_ERROR(
      ValidateTransportLimits(server.transport, server.max_message_bytes));
  if (flags.http_listen.empty()) return absl::OkStatus();
  if (flags.http_listen == server.listen && PortOf(server.listen) != 0) {
    return InvalidField("http-listen", flags.http_listen,
                        "an address other than that of listen");
  }
  return ValidateSecurity(server.security, HostOf(flags.http_listen),
                          "http-listen");
}

}  // namespace

std::string CheckConfigText(const std::string& text) {
  const bool fits =
      !absl::StartsWith(text, "'") && std::ranges::none_of(text, [](char c) {
        return c == '"' || c == '#' ||
               absl::ascii_iscntrl(static_cast<unsigned char>(c));
      });
  return fits ? "" : "want no \", #, control characters or leading '";
}

std::variant<Flags, EarlyExit> ParseFlags(int argc, const char* const* argv) {
  Flags flags;
  flags.auto_ivf_min_count = LiveCatalogOptions().auto_ivf_min_count;
  flags.memory_limit_bytes = static_cast<std::int64_t>(
      Flags::kMemoryShare * static_cast<double>(MachineMemoryBytes()));
  std::string log_level(Name(flags.log_level));
  int slow_query_ms = SlowQueryMs(flags);

  CLI::App app(kDescription, "attendantd");
  app.footer(kExamples);
  app.set_version_flag("--version", "attendantd " ATTENDANT_VERSION);
  // CLI11 reads variables after the file, too late for the file's own name.
  constexpr char kConfigVariable[] = "ATTENDANT_CONFIG";
  const char* const config = std::getenv(kConfigVariable);
  app.set_config("--config", config == nullptr ? "" : config,
                 "Read flags from a file of NAME = VALUE lines",
                 /*config_required=*/config != nullptr && *config != '\0')
      ->envname(kConfigVariable)
      ->check(CLI::Validator(
          [](const std::string& path) -> std::string {
            std::error_code error;
            // A pipe could block, and a device might never end.
            const auto kind = std::filesystem::status(path, error).type();
            return kind == std::filesystem::file_type::regular ||
                           kind == std::filesystem::file_type::not_found
                       ? ""
                       : absl::StrCat(path, " is not a regular file");
          },
          ""))
      ->type_name("FILE");
  app.config_formatter(std::make_shared<EachKeyOnce>());
  app.allow_config_extras(CLI::config_extras_mode::error);
  app.add_flag("--check-config", flags.check_config,
               "Check the configuration and the files of --tls-* and "
               "--auth-tokens as at startup, print the configuration and exit")
      ->configurable(false);
  AddStorageFlags(app, flags);
  AddServingFlags(app, flags);
  AddSecurityFlags(app, flags.server.security);
  AddLimitFlags(app, flags.server.limits);
  AddLimitFlags(app, flags.server.transport);
  AddLoggingFlags(app, slow_query_ms, log_level);
  const std::vector<std::string> arguments = WithDashes(argc, argv);
  std::vector<const char*> pointers;
  for (const std::string& argument : arguments) {
    pointers.push_back(argument.c_str());
  }
  try {
    app.parse(argc, pointers.data());
  } catch (const CLI::ParseError& error) {
    return ExitOf(app, error);
  }
  flags.log_level = *LogLevelFromName(log_level);
  flags.server.slow_query_time = slow_query_ms == 0
                                     ? absl::InfiniteDuration()
                                     : absl::Milliseconds(slow_query_ms);
  if (flags.http_listen.empty()) {
    flags.http_listen = DefaultHttpListen(flags.server.listen);
  } else if (flags.http_listen == kNone) {
    flags.http_listen.clear();
  }
  const absl::Status together = CheckTogether(flags);
  if (!together.ok()) return ExitOf(together);
  if (flags.server.worker_count == 0) {
    flags.server.worker_count =
        std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  }
  return flags;
}

std::string DefaultHttpListen(const std::string& listen) {
  const int port = PortOf(listen);
  const bool fits = port > 0 && port + kHttpPortOffset <= 65535;
  return absl::StrCat("127.0.0.1:", fits ? port + kHttpPortOffset : 0);
}

std::string ToText(const Flags& flags) {
  const absl::string_view free_http_port =
      !flags.http_listen.empty() && PortOf(flags.http_listen) == 0
          ? "# Port 0 is a free port, which the start prints.\n"
          : "";
  return absl::StrCat(
      "data-dir = \"", flags.data_dir, "\"\n",                  //
      "auto-ivf-min-count = ", flags.auto_ivf_min_count, "\n",  //
      "memory-limit = ", flags.memory_limit_bytes, "\n",        //
      "listen = \"", flags.server.listen, "\"\n",               //
      free_http_port, "http-listen = \"",
      flags.http_listen.empty() ? kNone : flags.http_listen, "\"\n",
      "workers = ", flags.server.worker_count, "\n",                 //
      "max-message-bytes = ", flags.server.max_message_bytes, "\n",  //
      "max-waiting = ", flags.server.max_waiting_count, "\n",        //
      "grace-seconds = ", flags.grace_seconds, "\n",                 //
      ToText(flags.server.security),                                 //
      ToText(flags.server.limits),                                   //
      ToText(flags.server.transport),                                //
      "slow-query-ms = ", SlowQueryMs(flags), "\n",                  //
      "log-level = \"", Name(flags.log_level), "\"\n");
}

}  // namespace attendant
