#include "client/commands/command_line.h"

#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/commands/command.h"
#include "client/commands/flags.h"
#include "client/empty_values.h"
#include "client/error_json.h"
#include "core/base/status.h"

namespace attendant {
namespace {

// The verbs of a command, with commas between.
std::string Verbs(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::App* verb :
       command.get_subcommands([](const CLI::App*) { return true; })) {
    names.push_back(verb->get_name());
  }
  return absl::StrJoin(names, ", ");
}

// Prints help or version, or what is wrong with the command line.
int Exit(const CLI::App& app, const CLI::ParseError& error, bool json) {
  std::ostringstream out;
  std::ostringstream err;
  if (app.exit(error, out, err) == 0) {
    Print(out.str());
    return std::fflush(stdout) == 0 ? kExitOk : kExitRefused;
  }
  const CLI::App* command = &app;
  std::string name = app.get_name();
  while (!command->get_subcommands().empty()) {
    command = command->get_subcommands().front();
    absl::StrAppend(&name, " ", command->get_name());
  }
  const std::string verbs = Verbs(*command);
  std::string message = error.what();
  const bool verb_missing =
      !verbs.empty() &&
      error.get_exit_code() == static_cast<int>(CLI::ExitCodes::RequiredError);
  if (verb_missing) {
    const std::vector<std::string> rest = app.remaining(/*recurse=*/true);
    message = absl::StrCat(
        rest.empty() ? "" : absl::StrCat("got '", rest.front(), "', "),
        "want a verb: ", verbs);
  }
  if (json) {
    Print(ErrorJson(UsageError(message)));
    std::fflush(stdout);
  }
  PrintError(message);
  Note(absl::StrCat("Try `", name, " --help`."));
  return kExitUsage;
}

}  // namespace

int RunCommandLine(int argc, char** argv) {
  // A reader that goes away ends us quietly, whatever we inherited.
  std::signal(SIGPIPE, SIG_DFL);
  SilenceGrpc();
  Context context;
  const char* no_colour = std::getenv("NO_COLOR");
  context.style.colour = isatty(STDOUT_FILENO) != 0 &&
                         (no_colour == nullptr || *no_colour == '\0');
  CLI::App app(
      "Attention over catalogs of vectors: asks an Attendant server for "
      "weighted items, and fits and loads what it serves.",
      "attendant");
  app.set_version_flag("--version", "attendant " ATTENDANT_VERSION);
  app.set_help_flag("-h,--help", "Print this help");
  AddConnectionFlags(app, context.connection);
  app.add_flag("--json", context.json,
               "Print one JSON document on standard output, {\"error\": ...} "
               "of what fails, but for --help and --version");
  app.add_option("--timeout", context.timeout_seconds,
                 "Seconds to wait for each answer; work on snapshots has as "
                 "long as it takes")
      ->check(CLI::Validator(Accepts(&ParsePositive), ""))
      ->capture_default_str();
  app.require_subcommand(1);
  // Global flags may also follow the verb.
  app.fallthrough();
  AddAttendCommand(app, context);
  AddContextualizeCommand(app, context);
  AddRankCommand(app, context);
  AddCatalogCommands(app, context);
  AddAliasCommands(app, context);
  AddSnapshotCommands(app, context);
  AddItemsCommands(app, context);
  AddFitCommands(app, context);
  AddModelCommands(app, context);
  AddDoctorCommand(app, context);
  app.footer(
      "Examples:\n"
      "  attendant fit lsi events.csv.gz --out fit/events\n"
      "  attendant catalog create shop --from fit/events\n"
      "  attendant items import shop --from fit/events\n"
      "  attendant attend shop --like 85123A\n\n"
      "Exit status: 0 done; 1 the server or the data refused; 2 usage; 3 the "
      "server can't be reached.");
  // There is no such column where rows are in time order.
  RefuseEmptyValues(app, {"--time-column"});
  try {
    RefuseEmptyAssignments(argc, argv);
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return Exit(app, error, AsksForJson(argc, argv));
  } catch (const std::exception& error) {
    context.json = AsksForJson(argc, argv);
    context.Run([&](const Context&) -> absl::Status {
      return absl::InternalError(error.what());
    });
  }
  return context.exit_status();
}

}  // namespace attendant
