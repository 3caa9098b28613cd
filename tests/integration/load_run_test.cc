// attendant-load against the real server.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <csignal>
#include <fstream>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "tests/integration/binaries.h"
#include "tests/integration/server_process.h"
#include "tests/support/scratch_directory.h"
#include "tests/support/status_matchers.h"

namespace attendant {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class LoadRunTest : public ::testing::Test {
 protected:
  // Enough items for an inverted-list index at this threshold.
  void SetUp() override {
    ASSERT_OK_AND_ASSIGN(
        server_,
        ServerProcess::Start(data_.path(), {"--auto-ivf-min-count", "1000"}));
  }

  CommandResult Run(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(),
                     {kAttendantLoad, "--server", server_->address()});
    return RunCommand(arguments);
  }

  CommandResult Prepare() {
    return Run({"--catalog", "bench", "--json", "prepare", "--items", "2000",
                "--dim", "16", "--clusters", "50", "--wait-index"});
  }

  ScratchDirectory data_;
  std::unique_ptr<ServerProcess> server_;
};

TEST_F(LoadRunTest, FiveSecondsGiveAReportThatIsVerified) {
  const CommandResult prepared = Prepare();
  ASSERT_EQ(prepared.exit_status, 0) << prepared.err;
  EXPECT_EQ(nlohmann::json::parse(prepared.out)["items"], 2000);
  EXPECT_THAT(
      RunCommand({kAttendant, "--server", server_->address(), "catalog",
                  "describe", "bench"})
          .out,
      AllOf(HasSubstr("\nIndex of key: ivf ("), Not(HasSubstr("nearly flat"))));

  const CommandResult run =
      Run({"--catalog", "bench", "--duration", "5", "--warmup", "0.5",
           "--concurrency", "8", "--verify", "200", "--json"});
  ASSERT_EQ(run.exit_status, 0) << run.err;
  const auto report = nlohmann::json::parse(run.out);
  const std::int64_t count = report["count"];
  EXPECT_GT(count, 0);
  EXPECT_EQ(report["statusCodeDistribution"]["OK"], count);
  EXPECT_TRUE(report["errorDistribution"].empty());
  EXPECT_GT(report["rps"], 0);
  EXPECT_LE(report["fastest"], report["average"]);
  EXPECT_LE(report["average"], report["slowest"]);
  EXPECT_EQ(report["verify"]["count"], 200);
  EXPECT_GE(report["verify"]["recall"], 0.9);
  // Returned logits are exact, whichever way the item was found.
  EXPECT_EQ(report["verify"]["maxLogitDifference"], 0);
  EXPECT_EQ(report["options"]["concurrency"], 8);
}

// Writes 300 items on a two-dimensional circle, each with a price.
void WriteItems(const std::string& ids_path, const std::string& keys_path,
                const std::string& attributes_path) {
  std::ofstream ids(ids_path);
  std::ofstream keys(keys_path, std::ios::binary);
  std::ofstream attributes(attributes_path);
  for (int i = 0; i < 300; ++i) {
    ids << "item" << i << "\n";
    const std::int32_t dim = 2;
    const float key[] = {std::cos(0.02f * static_cast<float>(i)),
                         std::sin(0.02f * static_cast<float>(i))};
    keys.write(reinterpret_cast<const char*>(&dim), sizeof(dim));
    keys.write(reinterpret_cast<const char*>(key), sizeof(key));
    attributes << "{\"id\": \"item" << i << "\", \"price\": " << i << "}\n";
  }
}

TEST_F(LoadRunTest, AMixInStepsIsReportedByKindAndStepAndAsAPage) {
  const std::string ids = data_ / "ids.txt";
  const std::string keys = data_ / "keys.fvecs";
  const std::string attributes = data_ / "prices.jsonl";
  WriteItems(ids, keys, attributes);
  const auto attendant = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(),
                     {kAttendant, "--server", server_->address()});
    return RunCommand(arguments);
  };
  const CommandResult created =
      attendant({"catalog", "create", "shop", "--key-field", "taste:2",
                 "--attribute", "price:double"});
  ASSERT_EQ(created.exit_status, 0) << created.err;
  const CommandResult imported =
      attendant({"items", "import", "shop", "--ids", ids, "--keys",
                 "taste=" + keys, "--attributes", attributes});
  ASSERT_EQ(imported.exit_status, 0) << imported.err;

  const std::string page_path = data_ / "load.html";
  const CommandResult run =
      Run({"--catalog", "shop", "--mix", "attend=4,examples=2,filter=2,write=2",
           "--steps", "100,200", "--duration", "2", "--warmup", "0.2",
           "--verify", "20", "--html", page_path, "--json"});
  ASSERT_EQ(run.exit_status, 0) << run.err;
  const auto report = nlohmann::json::parse(run.out);
  const std::int64_t count = report["count"];
  EXPECT_EQ(report["statusCodeDistribution"]["OK"], count);
  std::int64_t kind_count = 0;
  for (const char* kind : {"attend", "examples", "filter", "write"}) {
    EXPECT_GT(report["kinds"][kind]["count"], 0) << kind;
    kind_count += report["kinds"][kind]["count"].get<std::int64_t>();
  }
  EXPECT_EQ(kind_count, count);
  ASSERT_EQ(report["slices"].size(), 2u);
  EXPECT_EQ(report["slices"][1]["rate"], 200);
  EXPECT_GT(report["slices"][1]["count"], report["slices"][0]["count"]);
  EXPECT_EQ(report["verify"]["count"], 20);
  // The items that the load wrote are deleted.
  EXPECT_GT(report["cleanup"]["deleted"], 0);
  const auto item_count = [&] {
    const CommandResult described =
        attendant({"catalog", "describe", "shop", "--json"});
    return nlohmann::json::parse(described.out)["catalog"]["itemCount"];
  };
  EXPECT_EQ(item_count(), "300");
  std::ifstream page(page_path);
  EXPECT_THAT(std::string(std::istreambuf_iterator<char>(page), {}),
              AllOf(HasSubstr("Rate against latency"), HasSubstr("<svg")));

  // Queries from the user's file.
  const std::string queries = data_ / "queries.jsonl";
  std::ofstream(queries)
      << R"({"query": {"examples": {"examples": [{"id": "item1"}]}},)"
      << R"( "filter": "price < 100", "resultCount": 2})"
      << "\n";
  const CommandResult own =
      Run({"--catalog", "shop", "--queries", queries, "--ramp", "50:100",
           "--duration", "0.5", "--warmup", "0"});
  EXPECT_EQ(own.exit_status, 0) << own.err;
  EXPECT_THAT(own.out, AllOf(HasSubstr("open loop"), HasSubstr("99.99")));

  // A load that is interrupted cleans up too: `timeout` sends SIGTERM, twice.
  const CommandResult ended =
      RunCommand({"/usr/bin/timeout", "--preserve-status", "1", kAttendantLoad,
                  "--server", server_->address(), "--catalog", "shop", "--mix",
                  "write", "--rate", "200", "--warmup", "0", "--duration",
                  "600", "--writes-per-second", "100"});
  EXPECT_EQ(ended.exit_status, 0) << ended.err;
  EXPECT_THAT(ended.out, AllOf(HasSubstr("items that the load wrote"),
                               HasSubstr("open loop")));
  EXPECT_EQ(item_count(), "300");
}

// Writes one-dimensional items with ids that a load would use.
void WriteLoadItems(const std::string& path, int begin, int end) {
  std::ofstream items(path);
  for (int i = begin; i < end; i += 2) {
    items << R"({"id": "load-1-)" << i << R"(", "keys": {"key": [1]}})"
          << "\n";
  }
}

class LeftItemsTest : public LoadRunTest {
 protected:
  void SetUp() override {
    LoadRunTest::SetUp();
    ASSERT_EQ(
        Attendant({"catalog", "create", "line", "--key-field", "key:1:dot"})
            .exit_status,
        0);
    Import(R"({"id": "a", "keys": {"key": [1]}})");
  }

  CommandResult Attendant(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(),
                     {kAttendant, "--server", server_->address()});
    return RunCommand(arguments);
  }

  void Import(const std::string& lines) {
    const std::string path = data_ / "items.jsonl";
    WriteWholeFile(path, lines);
    ImportFile(path);
  }

  void ImportFile(const std::string& path) {
    const CommandResult imported =
        Attendant({"items", "import", "line", "--items", path});
    ASSERT_EQ(imported.exit_status, 0) << imported.err;
  }

  std::int64_t ItemCount() {
    const CommandResult described =
        Attendant({"catalog", "describe", "line", "--json"});
    const std::string count =
        nlohmann::json::parse(described.out)["catalog"]["itemCount"];
    return std::stoll(count);
  }
};

// As a load leaves that was killed: a writer's go on and on, a mix has some.
TEST_F(LeftItemsTest, TheNextLoadThatWritesDeletesThem) {
  const std::string left = data_ / "left.jsonl";
  WriteLoadItems(left, 9001, 11001);
  for (const std::vector<std::string>& writes :
       {std::vector<std::string>{"--writes-per-second", "100"},
        {"--mix", "write"}}) {
    ImportFile(left);
    ASSERT_EQ(ItemCount(), 1001);
    std::vector<std::string> arguments = {"--catalog",  "line",     "--rate",
                                          "20",         "--warmup", "0",
                                          "--duration", "0.5"};
    arguments.insert(arguments.end(), writes.begin(), writes.end());
    const CommandResult run = Run(arguments);
    EXPECT_EQ(run.exit_status, 0) << run.err;
    EXPECT_EQ(ItemCount(), 1) << writes[0];
  }
}

// The outcome of a failed write is unknown, and an earlier load may have left
// items.
TEST_F(LeftItemsTest, SaysWhyItDeletesNoneThoughNoWriteWasAnswered) {
  ASSERT_EQ(server_->Stop(), 0);
  const std::string tokens = data_ / "tokens";
  WriteWholeFile(tokens, "");
  ASSERT_OK_AND_ASSIGN(
      server_, ServerProcess::Start(data_.path(), {"--auth-tokens", tokens,
                                                   "--anonymous-read"}));
  const CommandResult run =
      Run({"--catalog", "line", "--mix", "write", "--rate", "20", "--warmup",
           "0", "--duration", "0.2", "--json"});
  EXPECT_EQ(run.exit_status, 1);
  const auto report = nlohmann::json::parse(run.out);
  EXPECT_FALSE(report["statusCodeDistribution"].contains("OK"));
  EXPECT_THAT(report["cleanup"]["error"].get<std::string>(),
              HasSubstr("wants the role write"));
}

// As with `2>&1 | head`: the first progress line ends the load, but not the
// process.
TEST_F(LeftItemsTest, AReaderThatGoesAwayLeavesNone) {
  std::signal(SIGPIPE, SIG_DFL);
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
  close(ends[0]);
  const int out = OpenForWriting(data_ / "out");
  Process load = Process::Start(
      {kAttendantLoad, "--server", server_->address(), "--catalog", "line",
       "--mix", "write", "--rate", "100", "--warmup", "0", "--duration", "600"},
      out, ends[1]);
  close(ends[1]);
  close(out);
  EXPECT_EQ(load.Wait(absl::Minutes(1)), 0);
  EXPECT_THAT(ReadWholeFile(data_ / "out"),
              HasSubstr("items that the load wrote"));
  EXPECT_EQ(ItemCount(), 1);
}

// Whether any request is answered within a millisecond depends on the machine;
// the requests before and after the load do not.
TEST_F(LoadRunTest, ATimeoutIsOfTheLoadAlone) {
  ASSERT_EQ(Prepare().exit_status, 0);
  const CommandResult run = Run({"--catalog", "bench", "--timeout", "0.001",
                                 "--duration", "1", "--warmup", "0", "--verify",
                                 "20", "--writes-per-second", "50", "--json"});
  const auto report = nlohmann::json::parse(run.out, nullptr, false);
  ASSERT_FALSE(report.is_discarded()) << run.err;
  EXPECT_EQ(report["verify"]["count"], 20);
  EXPECT_EQ(report["writes"]["error"], "") << report["writes"];
  EXPECT_GT(report["cleanup"]["deleted"], 0);
  EXPECT_EQ(report["cleanup"]["error"], "");
}

TEST_F(LoadRunTest, HelpIsThatOfTheOtherProgramAndFits) {
  for (const std::vector<std::string>& command :
       {std::vector<std::string>{"--help"}, {"prepare", "--help"}}) {
    const CommandResult help = Run(command);
    EXPECT_EQ(help.exit_status, 0);
    EXPECT_THAT(help.out, AllOf(HasSubstr(" INT in ["), Not(HasSubstr(":INT")),
                                Not(HasSubstr("Excludes:"))));
    for (const absl::string_view line : absl::StrSplit(help.out, '\n')) {
      EXPECT_LE(line.size(), 80u) << line;
    }
  }
  EXPECT_THAT(Run({"--help"}).out,
              AllOf(HasSubstr("--seed INTEGER=1"),
                    HasSubstr("not with --rate, --steps")));
}

TEST_F(LoadRunTest, ExitStatusSaysWhatWentWrong) {
  const std::vector<std::string> quick = {"--duration", "0.2", "--warmup", "0"};
  const auto run = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.end(), quick.begin(), quick.end());
    return Run(arguments);
  };
  const CommandResult missing = run({"--catalog", "none"});
  EXPECT_EQ(missing.exit_status, 1);
  EXPECT_THAT(missing.err,
              AllOf(HasSubstr("none"), HasSubstr("`attendant-load prepare")));

  const auto code_of = [](const CommandResult& result) {
    return nlohmann::json::parse(result.out)["error"]["code"];
  };
  EXPECT_EQ(code_of(run({"--catalog", "none", "--json"})), "NOT_FOUND");
  const CommandResult usage = run({"--json", "--concurrency", "0"});
  EXPECT_EQ(usage.exit_status, 2);
  EXPECT_EQ(code_of(usage), "INVALID_ARGUMENT");
  for (const std::vector<std::string>& wrong :
       {std::vector<std::string>{"--html", data_ / "missing/load.html"},
        {"--mix"}}) {
    std::vector<std::string> arguments = {"--catalog", "none", "--json"};
    arguments.insert(arguments.end(), wrong.begin(), wrong.end());
    EXPECT_EQ(code_of(Run(arguments)), "INVALID_ARGUMENT") << wrong[0];
  }

  EXPECT_EQ(run({}).exit_status, 2);
  for (const std::vector<std::string>& wrong :
       {std::vector<std::string>{"--mix", "attend=0"},
        {"--ramp", "100"},
        {"--rate", "10", "--ramp", "10:20"},
        {"--steps", "10,0"},
        {"--html", data_ / "missing/load.html"},
        {"--mix", "write", "--verify", "5"},
        {"--auth-token-file", data_ / "missing"},
        {"--ca", data_ / "missing.pem"},
        {"--client-cert", data_ / "missing.pem"},
        {"--seed", "-1"}}) {
    std::vector<std::string> arguments = {"--catalog", "none"};
    arguments.insert(arguments.end(), wrong.begin(), wrong.end());
    EXPECT_EQ(run(arguments).exit_status, 2) << wrong[0];
  }
  WriteWholeFile(data_ / "queries.txt", "1 2\n");
  for (const std::vector<std::string>& unused :
       {std::vector<std::string>{"--filter", "x = 1"},
        {"--write-items", "5"},
        {"--concurrency", "16", "--rate", "50"},
        {"--noise", "3", "--mix", "examples"},
        {"--result-count", "3", "--mix", "write"},
        {"--queries", data_ / "queries.txt", "--mix", "examples"},
        {"--field", ""},
        {"--fixed"}}) {
    std::vector<std::string> arguments = {"--catalog", "none"};
    arguments.insert(arguments.end(), unused.begin(), unused.end());
    const CommandResult refused = run(arguments);
    EXPECT_EQ(refused.exit_status, 2) << unused[0];
    EXPECT_THAT(refused.err, HasSubstr(unused[0]));
  }
  for (const std::vector<std::string>& endless :
       {std::vector<std::string>{"--rate", "nan"},
        {"--steps", "nan,5"},
        {"--writes-per-second", "nan"},
        {"--timeout", "nan"},
        {"--noise", "inf"},
        {"--verify", "1", "--min-recall", "nan"}}) {
    std::vector<std::string> arguments = {"--catalog", "none"};
    arguments.insert(arguments.end(), endless.begin(), endless.end());
    const CommandResult refused = run(arguments);
    EXPECT_EQ(refused.exit_status, 2) << endless[0];
    EXPECT_THAT(refused.err, HasSubstr("want a finite number")) << endless[0];
  }
  const std::string queries = data_ / "queries.npy";
  WriteWholeFile(queries, "not an array");
  const CommandResult damaged =
      run({"--catalog", "bench", "--queries", queries});
  EXPECT_EQ(damaged.exit_status, 2);
  EXPECT_THAT(damaged.err, HasSubstr(queries));

  ASSERT_EQ(Prepare().exit_status, 0);
  const CommandResult again = Prepare();
  EXPECT_EQ(again.exit_status, 1);
  EXPECT_THAT(again.err, HasSubstr("--replace"));

  const CommandResult full =
      RunCommand({"/bin/sh", "-c", "exec \"$0\" \"$@\" > /dev/full",
                  kAttendantLoad, "--server", server_->address(), "--catalog",
                  "bench", "--duration", "0.2", "--warmup", "0", "--json"});
  EXPECT_EQ(full.exit_status, 1);
  EXPECT_THAT(full.err, HasSubstr("standard output can't be written"));

  EXPECT_EQ(server_->Stop(), 0);
  EXPECT_EQ(run({"--catalog", "bench"}).exit_status, 3);
}

}  // namespace
}  // namespace attendant
