// `attendant catalog`.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pty.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstddef>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/integration/points_fixture.h"

namespace attendant {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// Runs a command on its own terminal with `typed` as its input. Returns the
// exit status and what the terminal shows.
CommandResult RunOnTerminal(std::vector<std::string> arguments,
                            const std::string& typed) {
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  int terminal = -1;
  const pid_t child = forkpty(&terminal, nullptr, nullptr, nullptr);
  if (child == 0) {
    execv(argv[0], argv.data());
    _exit(127);
  }
  CommandResult result;
  if (child < 0) return result;
  EXPECT_EQ(write(terminal, typed.data(), typed.size()),
            static_cast<ssize_t>(typed.size()));
  char bytes[4096];
  ssize_t count = 0;
  // read fails once the command has ended.
  while ((count = read(terminal, bytes, sizeof(bytes))) > 0) {
    result.out.append(bytes, static_cast<std::size_t>(count));
  }
  int status = 0;
  waitpid(child, &status, 0);
  close(terminal);
  if (WIFEXITED(status)) result.exit_status = WEXITSTATUS(status);
  return result;
}

TEST_F(AttendantCommandTest, OnATerminalADeletionIsAskedAbout) {
  StorePoints();
  const std::vector<std::string> attendant = {kAttendant, "--server",
                                              server_->address()};
  const auto run = [&](std::vector<std::string> arguments,
                       const std::string& typed) {
    arguments.insert(arguments.begin(), attendant.begin(), attendant.end());
    return RunOnTerminal(std::move(arguments), typed);
  };
  const std::vector<std::string> by_filter = {"items", "delete", "points",
                                              "--filter", "NOT name:*"};
  const CommandResult kept = run(by_filter, "\n");
  EXPECT_EQ(kept.exit_status, 1);
  EXPECT_THAT(kept.out, HasSubstr("Delete 40 items of catalog points? [y/N] "));
  EXPECT_THAT(kept.out, HasSubstr("nothing was deleted"));
  EXPECT_EQ(StoredCount(), 40u);
  const CommandResult refused = run({"catalog", "delete", "points"}, "n\n");
  EXPECT_EQ(refused.exit_status, 1);
  EXPECT_THAT(refused.out, HasSubstr("Delete catalog points with its 40 items "
                                     "for good? [y/N] "));
  EXPECT_EQ(StoredCount(), 40u);

  EXPECT_EQ(run(by_filter, "y\n").exit_status, 0);
  EXPECT_EQ(StoredCount(), 0u);
  EXPECT_THAT(run({"catalog", "delete", "nothing"}, "").out,
              Not(HasSubstr("[y/N]")));
  const CommandResult unasked =
      run({"catalog", "delete", "points", "--yes"}, "");
  EXPECT_EQ(unasked.exit_status, 0);
  EXPECT_THAT(unasked.out, Not(HasSubstr("[y/N]")));
}

TEST_F(AttendantCommandTest, WithoutATerminalACatalogIsDeletedByAFlagOnly) {
  CreatePoints();
  const CommandResult refused = Run({"catalog", "delete", "points"});
  EXPECT_EQ(refused.exit_status, 2);
  EXPECT_THAT(refused.err, HasSubstr("only --yes deletes without asking"));
  EXPECT_THAT(RunText({"catalog", "list"}), HasSubstr("points"));
  RunText({"catalog", "delete", "points", "--yes"});
  EXPECT_THAT(RunText({"catalog", "list"}), HasSubstr("There are no catalogs"));
}

TEST_F(AttendantCommandTest, ANewCatalogHasNoTableOfMemory) {
  EXPECT_THAT(RunText({"catalog", "create", "points", "--key-field", "key:2"}),
              AllOf(Not(HasSubstr("share")), HasSubstr(", 0 writes, uid ")));
}

TEST_F(AttendantCommandTest, DescribeSaysWhatAutoChoseAndHowMuchMemory) {
  StorePoints();
  EXPECT_THAT(RunText({"catalog", "describe", "points"}),
              AllOf(HasSubstr(" auto (flat) "), HasSubstr(" KiB "),
                    Not(HasSubstr("bytes"))));
  const std::string flat =
      RunText({"catalog", "update", "points", "key", "--index", "flat"});
  EXPECT_THAT(flat, AllOf(HasSubstr(" flat "), Not(HasSubstr("(flat)"))));
}

TEST_F(AttendantCommandTest, CreatingAgainTellsWhatIsNotApplied) {
  CreatePoints();
  const auto create_again = [&](const std::string& temperature) {
    return Run({"catalog", "create", "points", "--key-field", "key:2:dot",
                "--attribute", "name:string", "--temperature",
                "key=" + temperature});
  };
  const CommandResult same = create_again("1");
  EXPECT_EQ(same.exit_status, 0);
  EXPECT_EQ(same.err, "");
  EXPECT_THAT(same.out, HasSubstr("It was there already"));

  const CommandResult other = create_again("0.5");
  EXPECT_EQ(other.exit_status, 0);
  EXPECT_THAT(other.err, AllOf(HasSubstr("temperature 0.5 of key (it has 1)"),
                               HasSubstr("`attendant catalog update points`")));
  EXPECT_EQ(
      RunJson({"catalog", "describe",
               "points"})["catalog"]["schema"]["keyFields"][0]["temperature"],
      1);
}

TEST_F(AttendantCommandTest, CreatingOtherwiseTellsWhatIsThere) {
  RunText({"catalog", "create", "points", "--key-field", "key:2:cosine",
           "--value-dim", "3", "--attribute", "name:string"});
  const CommandResult other =
      Run({"catalog", "create", "points", "--key-field", "key:4"});
  EXPECT_EQ(other.exit_status, 1);
  EXPECT_THAT(other.err,
              HasSubstr("; it is as made by --key-field key:2:cosine "
                        "--value-dim 3 --attribute name:string\n"));
  // An alias's catalog has nothing to do with it.
  RunText({"alias", "set", "shop", "points"});
  EXPECT_THAT(Run({"catalog", "create", "shop", "--key-field", "key:4"}).err,
              Not(HasSubstr("made as by")));
}

TEST_F(AttendantCommandTest, TheListHasAliases) {
  CreatePoints();
  EXPECT_THAT(RunText({"catalog", "list"}), Not(HasSubstr("aliases")));
  RunText({"alias", "set", "shop", "points"});
  RunText({"alias", "set", "today", "points"});
  RunText({"catalog", "create", "others", "--key-field", "key:2"});
  EXPECT_THAT(RunText({"catalog", "list"}),
              AllOf(HasSubstr("aliases\n"), HasSubstr("  shop today\n"),
                    HasSubstr("others")));
}

TEST_F(AttendantCommandTest, AFieldToUpdateIsNamedWithThoseThereAre) {
  CreatePoints();
  const CommandResult result =
      Run({"catalog", "update", "points", "nofield", "--temperature", "1"});
  EXPECT_EQ(result.exit_status, 1);
  EXPECT_EQ(result.err,
            "attendant: FIELD: the catalog has no key field 'nofield'; it has: "
            "key\n");
}

TEST_F(AttendantCommandTest, AttributesAreAddedByAFlag) {
  StorePoints();
  const json attributes =
      RunJson({"catalog", "update", "points", "--attribute", "price:double",
               "--attribute", "sold:int64"})["catalog"]["schema"]["attributes"];
  ASSERT_EQ(attributes.size(), 3);
  EXPECT_EQ(attributes[1]["name"], "price");
  EXPECT_EQ(attributes[2]["type"], "ATTRIBUTE_TYPE_INT64");
  const CommandResult imported =
      Run({"items", "update", "points", "--attributes",
           File("prices.csv", "id,price\nitem7,1.5\nitem9,2.5\n")});
  EXPECT_EQ(imported.exit_status, 0) << imported.err;
  EXPECT_THAT(
      Run({"catalog", "update", "points", "--attribute", "price:int64"}).err,
      HasSubstr("'price' is declared"));
  for (const std::vector<std::string>& wrong :
       {std::vector<std::string>{},
        {"key"},
        {"--temperature", "1"},
        {"key", "--attribute", "x:bool"},
        {"--attribute", "x"}}) {
    std::vector<std::string> update = {"catalog", "update", "points"};
    update.insert(update.end(), wrong.begin(), wrong.end());
    EXPECT_EQ(Run(update).exit_status, 2) << testing::PrintToString(wrong);
  }

  // What has them can be listed, counted and written to a file.
  const json listed = RunJson(
      {"items", "list", "points", "--filter", "price > 1", "--page-size", "1"});
  EXPECT_EQ(listed["totalCount"], "2");
  EXPECT_EQ(listed["items"][0]["id"], "item7");
  EXPECT_THAT(Run({"items", "list", "points", "--filter", "price > 1",
                   "--page-size", "1"})
                  .err,
              HasSubstr("2 items match; for the next page add --page-token "));
  EXPECT_EQ(RunText({"items", "list", "points", "--filter", "sold > 1"}),
            "No item matches.\n");
  const std::string path = files_ / "dear.jsonl";
  EXPECT_EQ(RunJson({"items", "export", "points", path, "--filter",
                     "price > 2"})["itemCount"],
            1);
  EXPECT_THAT(ReadWholeFile(path), HasSubstr("\"item9\""));
}

TEST_F(AttendantCommandTest, KeysGoToDiskByAFlag) {
  const CommandResult unknown =
      Run({"catalog", "create", "points", "--key-field", "key:2:dot",
           "--keys-on-disk", "other"});
  EXPECT_NE(unknown.exit_status, 0);
  EXPECT_THAT(unknown.err, HasSubstr("no key field 'other'; it has: key"));
  const auto field_of = [](const json& reply) {
    return reply["catalog"]["schema"]["keyFields"][0];
  };
  EXPECT_EQ(field_of(RunJson({"catalog", "create", "points", "--key-field",
                              "key:2:dot", "--keys-on-disk", "key"}))
                .value("keysOnDisk", false),
            true);
  EXPECT_EQ(field_of(RunJson({"catalog", "update", "points", "key",
                              "--keys-on-disk", "no"}))
                .value("keysOnDisk", false),
            false);
  EXPECT_THAT(Run({"catalog", "update", "points", "key", "--keys-on-disk",
                   "yes", "--index", "hnsw"})
                  .err,
              HasSubstr("keys_on_disk"));
}

TEST_F(AttendantCommandTest, AWrongCommandLineExitsAsOne) {
  for (const std::vector<std::string>& wrong :
       {std::vector<std::string>{"--combine", "key=max"},
        {"--temperature", "no=1"},
        {"--index", "key=x"},
        {"--keys-on-disk", "no"},
        {"--like"}}) {
    std::vector<std::string> command = {"catalog", "create",      "points",
                                        "--json",  "--key-field", "key:2:dot"};
    command.insert(command.end(), wrong.begin(), wrong.end());
    const CommandResult result = Run(command);
    EXPECT_EQ(result.exit_status, 2) << wrong[0];
    EXPECT_EQ(json::parse(result.out)["error"]["reason"], "USAGE") << wrong[0];
  }
}

TEST_F(AttendantCommandTest, ListsDamagedCatalogs) {
  const json created = RunJson(
      {"catalog", "create", "points", "--key-field", "key:2:dot"})["catalog"];
  EXPECT_EQ(server_->Stop(), 0);
  // Without the file that names the manifest, RocksDB finds no data.
  ASSERT_TRUE(std::filesystem::remove(absl::StrCat(
      data_.path(), "/items/", std::string(created["uid"]), "/CURRENT")));
  Start();
  const CommandResult listed = Run({"catalog", "list"});
  EXPECT_EQ(listed.exit_status, 0);
  EXPECT_EQ(listed.out, "");
  EXPECT_THAT(listed.err, HasSubstr("damaged: points: "));
  EXPECT_EQ(RunJson({"catalog", "list"})["damagedCatalogs"][0]["name"],
            "points");
}

}  // namespace
}  // namespace attendant
