// Parses the command line of attendant-load.
#ifndef ATTENDANT_CLIENT_LOAD_RUN_LOAD_COMMAND_H_
#define ATTENDANT_CLIENT_LOAD_RUN_LOAD_COMMAND_H_

#include <optional>
#include <string>
#include <variant>

#include "client/flags/connection_flags.h"
#include "client/load/requests/prepare.h"
#include "client/load/run/run_load.h"

namespace attendant {

// How a load is reported and judged.
struct OutputOptions {
  bool json = false;
  std::string html_path;
  std::optional<double> min_recall;
};

struct LoadCommand {
  LoadOptions load;                       // without `client`
  std::optional<PrepareOptions> prepare;  // in place of a load
  bool wait_index = false;  // `prepare` returns when the index is trained
  ConnectionFlags connection;
  OutputOptions output;
};

// Returns the command, or the exit status if there is nothing to run: help or
// the version, which are printed, or an error, which is written to standard
// error and, with --json, to standard output.
std::variant<LoadCommand, int> ParseLoadCommand(int argc,
                                                const char* const* argv);

}  // namespace attendant

#endif  // ATTENDANT_CLIENT_LOAD_RUN_LOAD_COMMAND_H_
