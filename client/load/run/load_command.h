// The command line of attendant-load.
#ifndef ATTENDANT_CLIENT_LOAD_RUN_LOAD_COMMAND_H_
#define ATTENDANT_CLIENT_LOAD_RUN_LOAD_COMMAND_H_

#include <optional>
#include <string>
#include <variant>

#include "client/flags/connection_flags.h"
#include "client/load/requests/prepare.h"
#include "client/load/run/run_load.h"

namespace attendant {

enum ExitStatus { kOk = 0, kFailed = 1, kUsage = 2, kUnreachable = 3 };

// What becomes of a report.
struct OutputOptions {
  bool json = false;
  std::string html_path;
  std::optional<double> min_recall;
};

struct LoadCommand {
  LoadOptions load;                       // without its client
  std::optional<PrepareOptions> prepare;  // in place of a load
  bool wait_index = false;  // `prepare` returns when the index is trained
  ConnectionFlags connection;
  OutputOptions output;
};

// Or the exit status, where it asks for help or the version, which are printed,
// or is wrong, which is told on standard error, and with --json on standard
// output too.
std::variant<LoadCommand, int> ParseLoadCommand(int argc,
                                                const char* const* argv);

}  // namespace attendant

#endif  // ATTENDANT_CLIENT_LOAD_RUN_LOAD_COMMAND_H_
