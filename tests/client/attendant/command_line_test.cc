#include "client/attendant/command_line.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "client/commands/shared/command.h"
#include "tests/support/silent_listener.h"

namespace attendant {
namespace {

using ::testing::HasSubstr;
using ::testing::internal::CaptureStderr;
using ::testing::internal::CaptureStdout;
using ::testing::internal::GetCapturedStderr;
using ::testing::internal::GetCapturedStdout;

struct Ended {
  int exit_status = -1;
  std::string err;
};

// Runs a command line that ends before a server is asked.
Ended RunLine(std::vector<std::string> words) {
  words.insert(words.begin(), "attendant");
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  CaptureStderr();
  const int exit_status =
      RunCommandLine(static_cast<int>(argv.size()) - 1, argv.data());
  return {exit_status, GetCapturedStderr()};
}

TEST(CommandLineTest, ValuesOutOfRangeAreAMatterOfTheirFlag) {
  const std::vector<std::string> attend = {"attend", "shop", "--like", "a"};
  const std::vector<std::string> rank = {"rank",  "shop",    "--candidate",
                                         "a",     "--event", "b=2011-12-09",
                                         "--lsh", "4"};
  struct Case {
    std::vector<std::string> command;
    std::string flag;
    std::string value;
  };
  for (auto [command, flag, value] :
       {Case{attend, "--min-mass", "1.1"}, Case{attend, "--recall", "1.1"},
        Case{rank, "--lsh-seed", "x"},
        Case{{"catalog", "update", "shop", "text"}, "--model", "mh:0"}}) {
    command.insert(command.end(), {flag, value});
    const Ended ended = RunLine(command);
    EXPECT_EQ(ended.exit_status, kExitUsage) << flag;
    EXPECT_THAT(ended.err, HasSubstr(flag + ": got '" + value + "', want "));
  }
}

// An unset shell variable would silently drop a restriction.
TEST(CommandLineTest, AnEmptyValueIsNoValue) {
  const std::vector<std::string> attend = {"attend", "shop", "--like", "a"};
  const std::vector<std::string> rank = {"rank", "shop",      "--candidate",
                                         "a",    "--history", "events.csv"};
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases = {
      {rank, "--customer"},
      {rank, "--time-column"},
      {rank, "--candidate-file"},
      {rank, "--state-token"},
      {attend, "--allow"},
      {attend, "--allow-file"},
      {attend, "--deny-file"},
      {attend, "--filter"},
      {attend, "--like-file"},
      {attend, "--state-token"},
      {attend, "--field"},
      {{"items", "list", "shop"}, "--page-token"},
      {{"items", "delete", "shop"}, "--filter"},
      {{"items", "delete", "shop", "a"}, "--request-id"},
      {{"alias", "set", "shop", "shop-2"}, "--if-names"},
      {{"catalog", "list"}, "--ca"},
  };
  for (auto [command, flag] : cases) {
    command.insert(command.end(), {flag, ""});
    const Ended ended = RunLine(command);
    EXPECT_EQ(ended.exit_status, kExitUsage) << flag;
    EXPECT_THAT(ended.err, HasSubstr(flag + ": got ")) << flag;
  }
  // In --filter=$UNSET --state-token t the next word is not the value.
  for (const char* next : {"--state-token", "price<5"}) {
    const Ended ended =
        RunLine({"attend", "shop", "--like", "a", "--filter=", next, "t"});
    EXPECT_EQ(ended.exit_status, kExitUsage);
    EXPECT_THAT(ended.err, HasSubstr("--filter: got nothing")) << next;
  }
  // Otherwise all snapshots would be listed.
  const Ended list = RunLine({"snapshot", "list", ""});
  EXPECT_EQ(list.exit_status, kExitUsage);
  EXPECT_THAT(list.err, HasSubstr("CATALOG: got nothing"));
}

TEST(CommandLineTest, WhatIsNotExpectedIsSaidAsTyped) {
  EXPECT_THAT(RunLine({"attend", "shop", "--like", "a", "--shwo", "name"}).err,
              HasSubstr("attendant: not expected: --shwo name (did you mean "
                        "--show?)\nTry `attendant attend --help`."));
  // A flag of all commands, with its value.
  EXPECT_THAT(RunLine({"items", "list", "shop", "--timeot=3"}).err,
              HasSubstr("not expected: --timeot=3 (did you mean --timeout?)"));
  EXPECT_THAT(RunLine({"items", "list", "shop", "bag", "--colour"}).err,
              HasSubstr("not expected: bag --colour\n"));
}

TEST(CommandLineTest, FlagsOfOtherProgramsNameOurs) {
  for (const auto& [flag, ours] :
       {std::pair{"--query", "--text"}, std::pair{"--limit", "--results"},
        std::pair{"--top", "--results"}}) {
    EXPECT_THAT(RunLine({"attend", "shop", flag, "3"}).err,
                HasSubstr(absl::StrCat("not expected: ", flag,
                                       " 3 (did you mean ", ours, "?)\n")));
  }
  EXPECT_THAT(RunLine({"attend", "shop", "--like", "a", "--kk", "3"}).err,
              HasSubstr("not expected: --kk 3\n"));
  // `items list` has neither --text nor --results.
  EXPECT_THAT(RunLine({"items", "list", "shop", "--limit", "3"}).err,
              HasSubstr("not expected: --limit 3\n"));
}

TEST(CommandLineTest, AWordWhereATextWasMeantNamesTheFlag) {
  EXPECT_THAT(RunLine({"attend", "shop", "alarm clock"}).err,
              HasSubstr("not expected: alarm clock (a text to look for goes "
                        "after --text)\n"));
}

TEST(CommandLineTest, WordsOfAFilterWithoutQuotesAreSaidInQuotes) {
  const auto said = [](const std::vector<std::string>& filter) {
    std::vector<std::string> words = {"attend", "shop", "--like", "a",
                                      "--filter"};
    words.insert(words.end(), filter.begin(), filter.end());
    return RunLine(words).err;
  };
  EXPECT_THAT(said({"price", "=", "5"}),
              HasSubstr("not expected: = 5 (a filter goes in quotes: --filter "
                        "'price = 5')\n"));
  EXPECT_THAT(said({"name:", "BAG"}), HasSubstr("--filter 'name: BAG')"));
  EXPECT_THAT(said({"a=1", "AND", "b=2"}),
              HasSubstr("--filter 'a=1 AND b=2')"));
  EXPECT_THAT(said({"name", "=", "RED BAG"}),
              HasSubstr("--filter 'name = \"RED BAG\"')"));
  EXPECT_THAT(
      RunLine({"attend", "shop", "--text", "x", "--filter", "a", "!=", "2"})
          .err,
      HasSubstr("--filter 'a != 2')"));
}

TEST(CommandLineTest, MoreIdsAfterALikeNeedTheirOwn) {
  EXPECT_THAT(RunLine({"attend", "shop", "--like", "a", "b", "c"}).err,
              HasSubstr("not expected: b c (each id needs a --like of its own: "
                        "--like b --like c)\n"));
  // A whole filter does not go on.
  EXPECT_THAT(
      RunLine({"attend", "shop", "--like", "a", "--filter", "p < 5", "b"}).err,
      HasSubstr("each id needs a --like"));
}

TEST(CommandLineTest, AMisspelledVerbIsNoHelp) {
  const Ended misspelled = RunLine({"atend", "shop"});
  EXPECT_EQ(misspelled.exit_status, kExitUsage);
  EXPECT_THAT(misspelled.err,
              HasSubstr("got 'atend' (did you mean attend?), want a verb: "));
  const Ended unknown = RunLine({"attend-load", "--help"});
  EXPECT_EQ(unknown.exit_status, kExitUsage);
  EXPECT_THAT(unknown.err, HasSubstr("got 'attend-load', want a verb: "));
  EXPECT_THAT(RunLine({"catalog", "destroy"}).err,
              HasSubstr("got 'destroy', want a verb: create, "));
}

TEST(CommandLineTest, HalfLivesAreInDaysToo) {
  const std::vector<std::string> attend = {"attend", "shop", "--like", "a",
                                           "--decay"};
  for (const char* decay : {"added=d", "added=-1d", "added=30", "added=nand"}) {
    std::vector<std::string> words = attend;
    words.push_back(decay);
    const Ended ended = RunLine(words);
    EXPECT_EQ(ended.exit_status, kExitUsage) << decay;
    EXPECT_THAT(ended.err, HasSubstr("a duration such as 30d or 72h")) << decay;
  }
}

// These fail before a server is asked, whatever the catalog holds.
TEST(CommandLineTest, FlagsThatExcludeEachOtherAreAMatterOfUsage) {
  const std::vector<std::string> attend = {"attend", "shop", "--like", "a"};
  const std::vector<std::string> rank = {"rank", "shop",      "--candidate",
                                         "a",    "--profile", "b"};
  const std::vector<std::string> contextualize = {"contextualize", "--vectors",
                                                  "tokens.txt"};
  struct Case {
    std::vector<std::string> command;
    std::vector<std::string> flags;
    std::string said;
  };
  for (auto [command, flags, said] : {
           Case{attend, {"--field", "a", "--head", "a"}, "excludes"},
           Case{attend, {"--model", "m", "--head", "a"}, "excludes"},
           Case{attend, {"--exact", "--probe-count", "3"}, "excludes"},
           Case{attend, {"--allow", "a", "--probe-count", "3"}, "excludes"},
           Case{attend, {"--time", "2026-01-05"}, "--time requires --decay"},
           Case{attend, {"--image", "2", "--pool=none"}, "excludes"},
           Case{attend, {"--activation=none", "--hard"}, "excludes --hard"},
           Case{attend, {"--activation=sigmoid", "--pool=returned"}, "--pool"},
           Case{attend, {"--activation=none", "--blocks"}, "--blocks"},
           Case{attend, {"--hard", "--weights=catalog"}, "--weights"},
           Case{attend, {"--hard", "--pool=shortlist"}, "--pool"},
           Case{attend, {"--sample", "--weights=returned"}, "--weights"},
           Case{rank, {"--activation=none", "--lsh", "2"}, "--lsh"},
           Case{rank, {"--lsh", "2", "--lsh-buckets", "3"}, "an even number"},
           Case{contextualize, {"--linformer", "2", "--causal"}, "--causal"},
       }) {
    command.insert(command.end(), flags.begin(), flags.end());
    const Ended ended = RunLine(command);
    EXPECT_EQ(ended.exit_status, kExitUsage) << flags[0] << " " << flags.back();
    EXPECT_THAT(ended.err, HasSubstr(said));
  }
}

// The server accepts connections and says nothing.
TEST(CommandLineTest, SilenceForTheWholeTimeoutIsAsNoServer) {
  const SilentListener listener;
  const Ended ended = RunLine(
      {"--server", listener.address(), "--timeout", "0.2", "catalog", "list"});
  EXPECT_EQ(ended.exit_status, kExitUnreachable);
  EXPECT_THAT(ended.err, HasSubstr("said nothing within 200ms"));
}

// Candidates given by id are not masked.
TEST(CommandLineTest, OnlyCandidatesByQueryAreMasked) {
  for (const std::vector<std::string>& mask :
       {std::vector<std::string>{"--filter", "price < 5"},
        {"--deny", "b"},
        {"--deny-file", "ids.txt"},
        {"--include-events"}}) {
    std::vector<std::string> words = {"rank", "shop",      "--candidate",
                                      "a",    "--profile", "c"};
    words.insert(words.end(), mask.begin(), mask.end());
    const Ended ended = RunLine(words);
    EXPECT_EQ(ended.exit_status, kExitUsage) << mask[0];
    EXPECT_THAT(ended.err, HasSubstr(mask[0] + " requires --near")) << mask[0];
  }
}

TEST(CommandLineTest, AnExceptionIsAnErrorInJsonToo) {
  Context context;
  context.json = true;
  CaptureStdout();
  CaptureStderr();
  context.Run([](const Context&) -> absl::Status {
    throw std::runtime_error("no more of it");
  });
  EXPECT_THAT(GetCapturedStderr(), HasSubstr("attendant: no more of it"));
  const auto printed = nlohmann::json::parse(GetCapturedStdout());
  EXPECT_EQ(printed["error"]["code"], "INTERNAL");
  EXPECT_EQ(printed["error"]["message"], "no more of it");
  EXPECT_EQ(context.exit_status(), kExitRefused);
}

// The names are checked before the fit, which may take long.
TEST(CommandLineTest, AFitHasNamesThatACatalogTakes) {
  const std::string events = "/missing/events.csv";
  const std::string out = ::testing::TempDir();
  for (const std::vector<std::string>& fit :
       {std::vector<std::string>{"fit", "lsi"},
        {"fit", "text", "--columns", "name"}}) {
    std::vector<std::string> words = fit;
    words.insert(words.end(), {events, "--out", out, "--field", "My Field"});
    const Ended ended = RunLine(words);
    EXPECT_EQ(ended.exit_status, kExitUsage) << fit[1];
    EXPECT_THAT(ended.err,
                HasSubstr("--field: name: got \"My Field\", want [a-z]"));
  }
  const std::string column(65, 'x');
  const Ended ended =
      RunLine({"fit", "text", events, "--columns", column, "--out", out});
  EXPECT_EQ(ended.exit_status, kExitRefused);
  EXPECT_THAT(ended.err, HasSubstr("--columns " + column + ": "));
  EXPECT_THAT(ended.err, HasSubstr("at most 64 bytes"));
}

TEST(CommandLineTest, TheDoctorAsksAHostAndAPort) {
  const Ended ended = RunLine({"doctor", "--http", "metrics.example"});
  EXPECT_EQ(ended.exit_status, kExitUsage);
  EXPECT_THAT(ended.err,
              HasSubstr("--http: got 'metrics.example', want HOST:PORT"));
}

TEST(CommandLineTest, NoColumnOfTimesIsSaidByNothing) {
  const Ended ended = RunLine({"fit", "lsi", "/missing/events.csv", "--out",
                               ::testing::TempDir(), "--time-column", ""});
  EXPECT_EQ(ended.exit_status, kExitRefused);
  EXPECT_THAT(ended.err, HasSubstr("/missing/events.csv"));
}

// The last tests: Context prints no error in JSON after other output.
std::string HelpOf(std::vector<std::string> words) {
  words.push_back("--help");
  CaptureStdout();
  EXPECT_EQ(RunLine(std::move(words)).exit_status, kExitOk);
  return GetCapturedStdout();
}

TEST(CommandLineTest, EveryGroupHasExamples) {
  for (const char* group :
       {"catalog", "alias", "snapshot", "items", "fit", "model"}) {
    EXPECT_THAT(HelpOf({group}),
                HasSubstr(absl::StrCat("Examples:\n  attendant ", group, " ")));
  }
}

TEST(CommandLineTest, HelpIsAVerbToo) {
  for (const std::vector<std::string>& verb :
       {std::vector<std::string>{"catalog", "create"}, {}}) {
    std::vector<std::string> words = verb;
    words.insert(words.begin(), "help");
    CaptureStdout();
    EXPECT_EQ(RunLine(words).exit_status, kExitOk);
    const std::string printed = GetCapturedStdout();
    EXPECT_EQ(printed, HelpOf(verb));
  }
}

TEST(CommandLineTest, HelpOnAVerbNamesTheFlagsOfAll) {
  for (const std::vector<std::string>& verb :
       {std::vector<std::string>{"attend"}, {"catalog", "create"}}) {
    const std::string help = HelpOf(verb);
    for (const char* flag :
         {"--server", "--json", "--timeout", "--ca", "--client-cert",
          "--client-key", "--auth-token-file"}) {
      EXPECT_THAT(help.substr(help.find("Flags of all commands")),
                  HasSubstr(flag));
    }
  }
}

TEST(CommandLineTest, HelpSaysWhatAnExitStatusIs) {
  EXPECT_THAT(HelpOf({}), HasSubstr("or says nothing within --timeout"));
}

TEST(CommandLineTest, HelpSaysWhatFlagsTake) {
  const std::string help = HelpOf({"items", "update"});
  EXPECT_THAT(help, HasSubstr("[OPTIONS] CATALOG [ID...]\n"));
  EXPECT_THAT(help, HasSubstr("\n  CATALOG REQUIRED            The catalog\n"));
  EXPECT_THAT(help, HasSubstr("; needs ID\n"));
  EXPECT_THAT(HelpOf({"attend"}),
              HasSubstr("\n  --combine {sum,sum_over_sqrt_count,unit}\n"
                        "                              How examples combine."));
  EXPECT_THAT(HelpOf({"attend"}), HasSubstr("\n  --temperature NUMBER "));
  // Headings with choices, and examples, may be longer.
  const std::string flags = help.substr(0, help.find("Examples:"));
  for (const absl::string_view line : absl::StrSplit(flags, '\n')) {
    EXPECT_LE(line.size(), 80u) << line;
  }
}

}  // namespace
}  // namespace attendant
