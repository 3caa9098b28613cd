#include "client/attendant/command_line.h"

#include <unistd.h>

#include <csignal>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
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
#include "core/base/misspelled.h"
#include "core/base/status.h"

namespace attendant {
namespace {

// Returns the verbs of a command, separated by commas.
std::string Verbs(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::App* verb :
       command.get_subcommands([](const CLI::App*) { return true; })) {
    names.push_back(verb->get_name());
  }
  return absl::StrJoin(names, ", ");
}

// Names of flags elsewhere for flags of ours.
constexpr std::pair<absl::string_view, absl::string_view> kFlagsElsewhere[] = {
    {"--query", "--text"},    {"--q", "--text"},
    {"--limit", "--results"}, {"--top", "--results"},
    {"--top-k", "--results"}, {"--topk", "--results"},
    {"--count", "--results"}, {"--k", "--results"},
};

// Returns the flag of the command or its parents whose name is most like that
// of `word`, or that is called so elsewhere; "" if there is none.
std::string FlagLike(const std::string& word, const CLI::App* command) {
  const std::string name = word.substr(0, word.find('='));
  for (const auto& [elsewhere, ours] : kFlagsElsewhere) {
    if (name == elsewhere &&
        command->get_option_no_throw(std::string(ours)) != nullptr) {
      return std::string(ours);
    }
  }
  std::string nearest;
  std::size_t least = MaxEdits(name.substr(2)) + 1;
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

// Returns the flag's last value, or "" if the command has no such flag or it
// was not given.
std::string LastValue(const CLI::App& command, const std::string& flag) {
  const CLI::Option* const option = command.get_option_no_throw(flag);
  return option == nullptr || option->empty() ? "" : option->results().back();
}

// True if a filter continues with `word`, or does not end with its `begin`.
bool ContinuesFilter(absl::string_view begin, absl::string_view word) {
  constexpr absl::string_view kOperators = "=<>!:";
  for (const absl::string_view joint : {"AND", "OR", "NOT"}) {
    if (word == joint || begin == joint) return true;
  }
  return absl::StrContains(kOperators, word.front()) ||
         absl::StrContains(kOperators, begin.back());
}

// Returns what words without a flag were meant for, in brackets; "" if nothing
// tells.
std::string MeantFor(const std::vector<std::string>& words,
                     const CLI::App& command) {
  if (words[0].empty() || words[0].starts_with("-")) return "";
  const std::string filter = LastValue(command, "--filter");
  if (!filter.empty() && ContinuesFilter(filter, words[0])) {
    // The shell has removed the quotes of a text with spaces.
    const auto quoted = [](std::string* text, const std::string& word) {
      const absl::string_view quote = absl::StrContains(word, ' ') ? "\"" : "";
      absl::StrAppend(text, quote, word, quote);
    };
    return absl::StrCat(" (a filter goes in quotes: --filter '", filter, " ",
                        absl::StrJoin(words, " ", quoted), "')");
  }
  if (command.get_option_no_throw("--text") == nullptr) return "";
  if (!LastValue(command, "--like").empty()) {
    return absl::StrCat(" (each id needs a --like of its own: --like ",
                        absl::StrJoin(words, " --like "), ")");
  }
  return " (a text to look for goes after --text)";
}

// Returns the message about words that a command does not take.
std::string NotExpected(const std::vector<std::string>& words,
                        const CLI::App* command) {
  std::string message =
      absl::StrCat("not expected: ", absl::StrJoin(words, " "));
  const std::string meant = MeantFor(words, *command);
  if (!meant.empty()) return absl::StrCat(message, meant);
  for (const std::string& word : words) {
    if (!word.starts_with("--")) continue;
    const std::string flag = FlagLike(word, command);
    if (!flag.empty()) absl::StrAppend(&message, " (did you mean ", flag, "?)");
    break;
  }
  return message;
}

// Returns the message about a word in place of a verb, or about none.
std::string VerbMissing(const std::vector<std::string>& words,
                        const CLI::App& command) {
  const std::string verbs = absl::StrCat("want a verb: ", Verbs(command));
  if (words.empty()) return verbs;
  const std::string& word = words.front();
  std::string nearest;
  std::size_t least = MaxEdits(word) + 1;
  for (const CLI::App* verb :
       command.get_subcommands([](const CLI::App*) { return true; })) {
    const std::size_t edits = EditDistance(word, verb->get_name());
    if (edits >= least) continue;
    least = edits;
    nearest = verb->get_name();
  }
  return absl::StrCat(
      "got '", word, "'",
      nearest.empty() ? "" : absl::StrCat(" (did you mean ", nearest, "?)"),
      ", ", verbs);
}

// Appends the flags of all commands to the help of each.
void NameGlobalFlags(const std::string& names, CLI::App& command) {
  for (CLI::App* verb :
       command.get_subcommands([](const CLI::App*) { return true; })) {
    verb->footer(absl::StrCat(verb->get_footer(),
                              "\n\nFlags of all commands, which `attendant "
                              "--help` explains:\n  ",
                              names));
    NameGlobalFlags(names, *verb);
  }
}

// Prints help or version, or what is wrong with the command line, and returns
// the exit status.
int Exit(const CLI::App& app, const CLI::ParseError& error, bool json) {
  std::ostringstream out;
  std::ostringstream err;
  const std::vector<std::string> rest = app.remaining(/*recurse=*/true);
  // Help on a verb that does not exist would be help on all of them.
  const bool no_such_verb = app.get_subcommands().empty() && !rest.empty() &&
                            !rest.front().starts_with("-");
  if (app.exit(error, out, err) == 0 && !no_such_verb) {
    Print(out.str());
    return std::fflush(stdout) == 0 ? kExitOk : kExitRefused;
  }
  const CLI::App* command = &app;
  std::string name = app.get_name();
  while (!command->get_subcommands().empty()) {
    command = command->get_subcommands().front();
    absl::StrAppend(&name, " ", command->get_name());
  }
  std::string message = error.what();
  const bool verb_missing =
      !Verbs(*command).empty() &&
      error.get_exit_code() == static_cast<int>(CLI::ExitCodes::RequiredError);
  if (verb_missing || no_such_verb) {
    message = VerbMissing(rest, *command);
  } else if (error.get_exit_code() ==
             static_cast<int>(CLI::ExitCodes::ExtrasError)) {
    // CLI11 names the words from the last to the first.
    message = NotExpected(rest, command);
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
  // Ends quietly when a reader of the output goes away, whatever disposition
  // of the signal we inherited.
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
               "on failure. Does not apply to --help and --version");
  app.add_option("--timeout", context.timeout_seconds,
                 "Seconds to wait for each answer; work on snapshots is not "
                 "limited")
      ->check(Accepts(&ParsePositive))
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
      "Exit status: 0 success; 1 the server refused, the data is bad, or an "
      "answer took\nlonger than --timeout; 2 the command line is wrong; 3 the "
      "server can't be\nreached, or says nothing within --timeout.");
  // An empty --time-column says that rows are in time order.
  RefuseEmptyValues(app, {"--time-column"});
  NameGlobalFlags(
      "--server --json --timeout --ca --client-cert --client-key "
      "--auth-token-file",
      app);
  // `attendant help VERB` is `attendant VERB --help`.
  std::vector<char*> words(argv, argv + argc);
  std::string help = "--help";
  if (argc > 1 && absl::string_view(argv[1]) == "help") {
    words.erase(words.begin() + 1);
    words.push_back(help.data());
  }
  try {
    RefuseEmptyAssignments(argc, argv);
    app.parse(static_cast<int>(words.size()), words.data());
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
