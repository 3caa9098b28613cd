#include "client/attendant/command_line.h"

#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <numeric>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/api/error_json.h"
#include "client/commands/administration/commands.h"
#include "client/commands/attention/commands.h"
#include "client/commands/fits/commands.h"
#include "client/commands/items/commands.h"
#include "client/commands/models/commands.h"
#include "client/commands/shared/flags.h"
#include "client/flags/empty_values.h"
#include "client/flags/help_format.h"
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

// Letters to insert, leave out or replace until one is the other.
std::size_t EditDistance(absl::string_view one, absl::string_view other) {
  std::vector<std::size_t> row(other.size() + 1);  // to each start of other
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < one.size(); ++i) {
    std::size_t diagonal = row[0]++;
    for (std::size_t j = 0; j < other.size(); ++j) {
      const std::size_t replaced = diagonal + (one[i] == other[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row.back();
}

// A flag of the command, or of all, that is spelt nearly so; none where there
// is none.
std::string FlagLike(const std::string& word, const CLI::App* command) {
  constexpr std::size_t kMaxEdits = 2;
  const std::string name = word.substr(0, word.find('='));
  std::string nearest;
  std::size_t least = kMaxEdits + 1;
  for (; command != nullptr; command = command->get_parent()) {
    for (const CLI::Option* option : command->get_options()) {
      for (const std::string& long_name : option->get_lnames()) {
        const std::string flag = absl::StrCat("--", long_name);
        const std::size_t edits = EditDistance(name, flag);
        if (edits >= least) continue;
        least = edits;
        nearest = flag;
      }
    }
  }
  return nearest;
}

// The words that a command does not take.
std::string NotExpected(const std::vector<std::string>& words,
                        const CLI::App* command) {
  std::string message =
      absl::StrCat("not expected: ", absl::StrJoin(words, " "));
  for (const std::string& word : words) {
    if (!word.starts_with("--")) continue;
    const std::string flag = FlagLike(word, command);
    if (!flag.empty()) absl::StrAppend(&message, " (did you mean ", flag, "?)");
    break;
  }
  return message;
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
  const std::vector<std::string> rest = app.remaining(/*recurse=*/true);
  if (error.get_exit_code() == static_cast<int>(CLI::ExitCodes::ExtrasError)) {
    // CLI11 says them from the last to the first.
    message = NotExpected(rest, command);
  } else if (verb_missing) {
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
  app.formatter(std::make_shared<HelpFormat>());
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
      "server can't be\nreached, or says nothing within --timeout; an answer "
      "that takes longer than that: 1.");
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
