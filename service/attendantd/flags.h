// attendantd's configuration: flags, ATTENDANT_ environment variables and a
// file.
#ifndef ATTENDANT_SERVICE_ATTENDANTD_FLAGS_H_
#define ATTENDANT_SERVICE_ATTENDANTD_FLAGS_H_

#include <cstdint>
#include <string>
#include <variant>

#include "service/log/log.h"
#include "service/server.h"

namespace attendant {

struct Flags {
  std::string data_dir = "attendant-data";
  Server::Options server;
  // Address of /metrics, /livez and /readyz, HOST:PORT; empty: not served.
  std::string http_listen;  // by default DefaultHttpListen(server.listen)
  int grace_seconds = 30;
  LogLevel log_level = LogLevel::kInfo;
  bool check_config = false;            // validate the configuration, then exit
  std::int64_t auto_ivf_min_count = 0;  // set from LiveCatalogOptions
  // Maximum memory of the process in bytes; 0: unlimited. Default: kMemoryShare
  // of the memory of the machine or its control group.
  std::int64_t memory_limit_bytes = 0;

  static constexpr double kMemoryShare = 0.8;
};

// Returns 127.0.0.1 with the port of `listen` plus 1000; with port 0 (any free
// port) if `listen` has port 0 or the sum exceeds 65535.
std::string DefaultHttpListen(const std::string& listen);

// Exit status after a usage error.
inline constexpr int kUsageExitStatus = 2;

// What to print instead of serving, and the exit status: 0 for --help and
// --version, whose text goes to stdout; kUsageExitStatus for a usage error,
// whose text goes to stderr.
struct EarlyExit {
  std::string text;
  int exit_status = 0;
};

// Parses the command line. A flag overrides the config file, which overrides
// the environment, which overrides the default. Keys of the file are flag names
// without the leading dashes; an unknown key or a value out of range is an
// error.
std::variant<Flags, EarlyExit> ParseFlags(int argc, const char* const* argv);

// Returns "" if ToText can write `text` so that --config reads the same text
// back; otherwise says what is wanted. The library has no escapes, strips a
// pair of single quotes, and treats # as the start of a comment even inside
// quotes.
std::string CheckConfigText(const std::string& text);

// Returns the effective configuration, one "name = value" per line, in the
// format that --config accepts.
std::string ToText(const Flags& flags);

}  // namespace attendant

#endif  // ATTENDANT_SERVICE_ATTENDANTD_FLAGS_H_
