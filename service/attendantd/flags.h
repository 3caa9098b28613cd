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
  // Of /metrics, /livez and /readyz, HOST:PORT; empty: no such port.
  std::string http_listen;  // by default DefaultHttpListen(server.listen)
  int grace_seconds = 30;
  LogLevel log_level = LogLevel::kInfo;
  bool check_config = false;  // only tell whether a start would take all this
  std::int64_t auto_ivf_min_count = 0;  // set from LiveCatalogOptions
  // What the process may use, in bytes; 0: any. By default kMemoryShare of what
  // the machine or its control group has.
  std::int64_t memory_limit_bytes = 0;

  static constexpr double kMemoryShare = 0.8;
};

// The loopback address, and the port of `listen` plus 1000; a free one (0) if
// that is 0, or there is none so high.
std::string DefaultHttpListen(const std::string& listen);

// Of a wrong command line.
inline constexpr int kUsageExitStatus = 2;

// What to print instead of serving, and the exit status to end with: 0 after
// --help and --version, kUsageExitStatus on bad usage, which goes to stderr.
struct EarlyExit {
  std::string text;
  int exit_status = 0;
};

// A flag beats the file, which beats the environment, which beats the default.
// Keys of the file are the flags' names without dashes in front; one that is
// not a flag is an error, as is a value out of range.
std::variant<Flags, EarlyExit> ParseFlags(int argc, const char* const* argv);

// Empty for a text that ToText writes and --config reads the same, else what is
// wanted: the library knows no escapes, strips a pair of single quotes, and
// takes # for a comment even between quotes.
std::string CheckConfigText(const std::string& text);

// The effective configuration, one "name = value" a line: a file that --config
// accepts.
std::string ToText(const Flags& flags);

}  // namespace attendant

#endif  // ATTENDANT_SERVICE_ATTENDANTD_FLAGS_H_
