// `attendant` as people and scripts run it: output, messages, exit statuses.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/files/npy.h"
#include "tests/integration/binaries.h"
#include "tests/integration/command_fixture.h"
#include "tests/integration/requests.h"
#include "tests/support/status_matchers.h"

namespace attendant {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr int kRowCount = 40;

class AttendantCommandTest : public CommandFixture {
 protected:
  // Row i is (i, 1).
  static std::vector<float> Keys() {
    std::vector<float> keys;
    for (int i = 0; i < kRowCount; ++i) {
      keys.push_back(static_cast<float>(i));
      keys.push_back(1);
    }
    return keys;
  }

  static std::string Ids() {
    std::string ids;
    for (int i = 0; i < kRowCount; ++i) absl::StrAppend(&ids, "item", i, "\n");
    return ids;
  }

  void CreatePoints() {
    const CommandResult created =
        Run({"catalog", "create", "points", "--key-field", "key:2:dot",
             "--attribute", "name:string"});
    ASSERT_EQ(created.exit_status, 0) << created.err;
  }

  CommandResult ImportPoints(const std::string& keys, const std::string& ids) {
    return Run(
        {"items", "import", "points", "--keys", "key=" + keys, "--ids", ids});
  }

  std::size_t StoredCount() {
    const auto client = server_->Connect();
    EXPECT_OK(client);
    const auto items = ListAll(**client, "points");
    EXPECT_OK(items);
    return items.ok() ? items->size() : 0;
  }
};

TEST_F(AttendantCommandTest, ExportsItemsThatAnImportTakes) {
  const std::vector<std::string> fields = {"--key-field", "key:2:dot",
                                           "--value-dim", "3",
                                           "--attribute", "name:string"};
  const auto create = [&](const std::string& name) {
    std::vector<std::string> command = {"catalog", "create", name};
    command.insert(command.end(), fields.begin(), fields.end());
    ASSERT_EQ(Run(command).exit_status, 0);
  };
  create("points");
  create("others");
  std::string lines;
  for (int i = 0; i < 2500; ++i) {
    absl::StrAppend(&lines, "{\"id\": \"", i, "\", \"keys\": {\"key\": [", i,
                    ".1, -0.3]}, \"value\": [1, 2, ", i,
                    "e-7], \"attributes\": {\"name\": \"n", i, "\"}}\n");
  }
  // One that is no item, and one that the server refuses.
  lines += "{\"id\": \"bad\", \"keys\": {\"key\": 1}}\n";
  lines += "{\"id\": \"short\", \"keys\": {\"key\": [1]}}\n";
  const CommandResult imported =
      Run({"items", "import", "points", "--items", File("in.jsonl", lines)});
  EXPECT_EQ(imported.exit_status, 1);
  EXPECT_THAT(imported.err,
              AllOf(HasSubstr("row 2501 (bad): keys: key: got number"),
                    HasSubstr("row 2502 (short): "),
                    HasSubstr("stored 2,500 of 2,502 rows")));
  const std::string path = files_ / "out.jsonl";
  const json exported = RunJson({"items", "export", "points", path});
  EXPECT_EQ(exported["itemCount"], 2500);
  // It replaces no file.
  const CommandResult again = Run({"items", "export", "points", path});
  EXPECT_EQ(again.exit_status, 1);
  EXPECT_THAT(again.err, HasSubstr("choose another name"));
  const json back = RunJson({"items", "import", "others", "--items", path});
  EXPECT_EQ(back["storedCount"], 2500);
  const std::string second = files_ / "second.jsonl";
  RunJson({"items", "export", "others", second});
  EXPECT_EQ(ReadWholeFile(second), ReadWholeFile(path));
  EXPECT_THAT(ReadWholeFile(path), HasSubstr(R"("keys":{"key":[7.1,-0.3]})"));
  const CommandResult two = Run({"items", "import", "others", "--items", path,
                                 "--ids", path, "--keys", "key=" + path});
  EXPECT_EQ(two.exit_status, 2);
  EXPECT_THAT(Run({"items", "export", "none", files_ / "x.jsonl"}).err,
              HasSubstr("no catalog 'none'"));
}

// The server refuses the first, and the others never reach it.
TEST_F(AttendantCommandTest, RejectedRowsAreToldInTheirOrder) {
  CreatePoints();
  const std::string items =
      File("items.jsonl", R"({"id": "short", "keys": {"key": [1]}})"
                          "\n"
                          R"({"id": "bad", "keys": {"key": 1}})"
                          "\n"
                          R"({"id": "short2", "keys": {"key": [1]}})"
                          "\n"
                          R"({"id": "bad2", "keys": {"key": 1}})"
                          "\n");
  const std::vector<std::string> import = {"items", "import", "points",
                                           "--items", items};
  const std::string err = Run(import).err;
  std::size_t from = 0;
  for (const char* row :
       {"row 1 (short)", "row 2 (bad)", "row 3 (short2)", "row 4 (bad2)"}) {
    const std::size_t found = err.find(row);
    ASSERT_NE(found, std::string::npos) << row << " in " << err;
    EXPECT_GE(found, from) << err;
    from = found;
  }
  std::vector<std::string> as_json = import;
  as_json.push_back("--json");
  const json rejected = json::parse(Run(as_json).out)["rejected"];
  ASSERT_EQ(rejected.size(), 4u);
  for (int i = 0; i < 4; ++i) EXPECT_EQ(rejected[i]["row"], i + 1);
}

TEST_F(AttendantCommandTest, ImportsFilesAndAttends) {
  CreatePoints();
  const std::string keys = File("keys.npy", NpyBytes(Keys(), 2));
  const std::string ids = File("ids.txt", Ids());
  const std::string attributes =
      File("attributes.jsonl",
           "{\"id\": \"item39\", \"name\": \"the last\", \"opaque_value\": "
           "\"AP8A\"}\n");
  const json imported =
      RunJson({"items", "import", "points", "--keys", "key=" + keys, "--ids",
               ids, "--attributes", attributes});
  EXPECT_EQ(imported["storedCount"], kRowCount);
  EXPECT_EQ(imported["rejectedCount"], 0);

  const json answer = RunJson(
      {"attend", "points", "--vector", "1,0", "-k", "2", "--show", "name"});
  ASSERT_EQ(answer["items"].size(), 2u);
  EXPECT_EQ(answer["items"][0]["id"], "item39");
  EXPECT_EQ(answer["items"][0]["logit"], 39);
  // Two of forty, each 1 in logit from the next: 1 + 1 / e of a geometric sum.
  const double e = std::exp(-1);
  const double partition = (1 - std::pow(e, kRowCount)) / (1 - e);
  EXPECT_NEAR(answer["items"][0]["weight"], 1 / partition, 1e-6);

  const CommandResult shown =
      Run({"attend", "points", "--like", "item39", "--show", "name"});
  EXPECT_EQ(shown.exit_status, 0);
  EXPECT_THAT(shown.out, HasSubstr("item38"));
  // Examples are left out.
  EXPECT_THAT(shown.out, Not(HasSubstr("the last")));

  // Of what was not asked for there is no member, which would look empty.
  const json item =
      RunJson({"items", "list", "points", "--page-size", "1"})["items"][0];
  EXPECT_EQ(item["attributes"], json::object());
  EXPECT_FALSE(item.contains("keys"));
  EXPECT_FALSE(item.contains("opaqueValue"));
  EXPECT_FALSE(answer["items"][0].contains("keys"));
  EXPECT_FALSE(answer["items"][0].contains("opaqueValue"));
  EXPECT_EQ(RunJson({"attend", "points", "--vector", "1,0",
                     "--opaque"})["items"][0]["opaqueValue"],
            "AP8A");

  const json listed = RunJson({"catalog", "list"});
  EXPECT_EQ(listed["catalogs"][0]["name"], "points");
  EXPECT_THAT(Run({"items", "get", "points", "item39"}).out,
              HasSubstr("opaque value  3 bytes"));
  EXPECT_EQ(
      RunJson({"items", "get", "points", "item39"})["items"][0]["opaqueValue"],
      "AP8A");
  // More than a buffer of it is lost on a full disk.
  const CommandResult full = RunCommand(
      {"/bin/sh", "-c", "exec \"$0\" \"$@\" > /dev/full", kAttendant,
       "--server", server_->address(), "--json", "items", "list", "points"});
  EXPECT_EQ(full.exit_status, 1);
  EXPECT_THAT(full.err, HasSubstr("standard output can't be written"));
  EXPECT_EQ(Run({"items", "delete", "points", "item39"}).exit_status, 0);
  EXPECT_EQ(Run({"items", "get", "points", "item39"}).exit_status, 1);
  EXPECT_EQ(Run({"catalog", "delete", "points"}).exit_status, 0);
  EXPECT_EQ(Run({"catalog", "describe", "points"}).exit_status, 1);
}

TEST_F(AttendantCommandTest, WhatTheFlagsDecideIsAMatterOfUsage) {
  RunText({"catalog", "create", "shop", "--key-field", "key:2", "--attribute",
           "price:double", "--attribute", "tags:string_list"});
  const auto set = [&](const std::string& setting) {
    return Run({"items", "update", "shop", "a", "--set", setting});
  };
  const CommandResult price = set("price=abc");
  EXPECT_EQ(price.exit_status, 2);
  EXPECT_EQ(price.err,
            "attendant: --set price: got \"abc\", want a finite number; the "
            "catalog declares price as double\n");
  EXPECT_EQ(set("price=\"2\"").exit_status, 2);
  EXPECT_THAT(set("tags=a").err,
              HasSubstr("want a list of texts, as in [\"a\", \"b\"]"));

  std::string rows;
  for (int i = 0; i < 1025; ++i) rows += "1 2\n";
  const CommandResult many = Run(
      {"contextualize", "--vectors", File("many.txt", rows), "--svg=lines"});
  EXPECT_EQ(many.exit_status, 2);
  EXPECT_THAT(many.err, HasSubstr("--svg: got 1025 tokens, want at most"));

  // As attendant-load does.
  for (const std::vector<std::string>& alone :
       {std::vector<std::string>{"--client-cert", File("cert.pem", "x")},
        {"--ca", files_ / "missing.pem"},
        {"--auth-token-file", files_ / "missing"}}) {
    std::vector<std::string> list = alone;
    list.insert(list.end(), {"catalog", "list"});
    EXPECT_EQ(Run(list).exit_status, 2) << alone[0];
  }
}

TEST_F(AttendantCommandTest, DescribeSaysWhatAutoChoseAndHowMuchMemory) {
  CreatePoints();
  ASSERT_EQ(ImportPoints(File("keys.npy", NpyBytes(Keys(), 2)),
                         File("ids.txt", Ids()))
                .exit_status,
            0);
  EXPECT_THAT(RunText({"catalog", "describe", "points"}),
              AllOf(HasSubstr(" auto (flat) "), HasSubstr(" KiB "),
                    Not(HasSubstr("bytes"))));
  const std::string flat =
      RunText({"catalog", "update", "points", "key", "--index", "flat"});
  EXPECT_THAT(flat, AllOf(HasSubstr(" flat "), Not(HasSubstr("(flat)"))));
}

TEST_F(AttendantCommandTest, UpdatesAndDeletesByConditionAndFilter) {
  CreatePoints();
  const std::string keys = File("keys.npy", NpyBytes(Keys(), 2));
  const std::string ids = File("ids.txt", Ids());
  RunJson({"items", "import", "points", "--keys", "key=" + keys, "--ids", ids});
  const json updated = RunJson({"items", "update", "points", "item3", "item5",
                                "--set", "name=red apple"});
  EXPECT_EQ(updated["updatedCount"], 2);
  const std::string token = updated["stateToken"];
  const json items = RunJson(
      {"items", "get", "points", "item3", "--state-token", token})["items"];
  EXPECT_EQ(items[0]["attributes"]["name"]["stringValue"], "red apple");
  EXPECT_EQ(items[0]["sequence"], "2");
  EXPECT_EQ(RunJson({"attend", "points", "--vector", "1,0", "--filter",
                     "name:'red'", "--state-token", token})["items"]
                .size(),
            2u);
  const CommandResult stale = Run({"items", "update", "points", "item3",
                                   "--unset", "name", "--if-sequence", "1"});
  EXPECT_EQ(stale.exit_status, 1);
  EXPECT_EQ(stale.err,
            "attendant: item 'item3': got an item of sequence 2, want sequence "
            "1\n");
  const CommandResult unset = Run({"items", "update", "points", "item3",
                                   "--unset", "name", "--if-sequence", "2"});
  EXPECT_EQ(unset.exit_status, 0) << unset.err;
  EXPECT_THAT(unset.out, HasSubstr("Updated 1 item."));
  EXPECT_THAT(unset.err, HasSubstr("--state-token "));
  EXPECT_EQ(Run({"items", "update", "points", "item3"}).exit_status, 2);
  EXPECT_EQ(Run({"items", "update", "points", "item3", "--set", "color=1"})
                .exit_status,
            1);

  EXPECT_THAT(
      Run({"items", "delete", "points", "--filter", "name:'red'", "--dry-run"})
          .out,
      HasSubstr("Would delete 1 item."));
  EXPECT_THAT(Run({"items", "delete", "points", "--filter", "name:'red'"}).out,
              HasSubstr("Deleted 1 item."));
  EXPECT_EQ(Run({"items", "get", "points", "item5"}).exit_status, 1);
  EXPECT_EQ(Run({"items", "delete", "points"}).exit_status, 2);
  // It would be those of other names.
  const CommandResult in_brackets =
      Run({"items", "delete", "points", "[item5,item6]"});
  EXPECT_EQ(in_brackets.exit_status, 2);
  EXPECT_THAT(in_brackets.err, HasSubstr("[item5,item6]"));
  EXPECT_EQ(Run({"items", "get", "points", "item6", "item7"}).exit_status, 0);
  EXPECT_EQ(
      Run({"items", "delete", "points", "a", "--filter", "name:*"}).exit_status,
      2);
  const CommandResult stale_delete =
      Run({"items", "delete", "points", "item3", "--if-sequence", "9"});
  EXPECT_EQ(stale_delete.exit_status, 1);
  EXPECT_THAT(stale_delete.err, HasSubstr("item 'item3': got "));
  // All but the deleted one are there, and stay as they are.
  const CommandResult again =
      Run({"items", "import", "points", "--keys", "key=" + keys, "--ids", ids,
           "--if-absent", "--json"});
  EXPECT_EQ(again.exit_status, 1);
  EXPECT_EQ(json::parse(again.out)["storedCount"], 1);
}

TEST_F(AttendantCommandTest, AFileChangesPartsOfManyItems) {
  CreatePoints();
  const std::string keys = File("keys.npy", NpyBytes(Keys(), 2));
  const std::string ids = File("ids.txt", Ids());
  RunJson({"items", "import", "points", "--keys", "key=" + keys, "--ids", ids,
           "--attributes",
           File("before.jsonl", "{\"id\": \"item1\", \"name\": \"red\"}\n")});
  const json updated =
      RunJson({"items", "update", "points", "--attributes",
               File("after.jsonl",
                    "{\"id\": \"item3\", \"name\": \"blue\"}\n"
                    "{\"id\": \"item5\", \"name\": \"green\"}\n")});
  EXPECT_EQ(updated["updatedCount"], 2);
  const json items =
      RunJson({"items", "get", "points", "item1", "item3", "item5"})["items"];
  EXPECT_EQ(items[0]["attributes"]["name"]["stringValue"], "red");
  EXPECT_EQ(items[1]["attributes"]["name"]["stringValue"], "blue");
  EXPECT_EQ(items[2]["attributes"]["name"]["stringValue"], "green");
  EXPECT_FALSE(items[2]["keys"]["key"].is_null());
  const CommandResult missing =
      Run({"items", "update", "points", "--attributes",
           File("missing.jsonl",
                "{\"id\": \"item3\", \"name\": \"red\"}\n"
                "{\"id\": \"none\", \"name\": \"red\"}\n")});
  EXPECT_EQ(missing.exit_status, 1);
  EXPECT_THAT(missing.err, AllOf(HasSubstr("updated 0 items"),
                                 HasSubstr("items[1]"), HasSubstr("none")));
  // Of a file without lines nothing is written, which no token stands for.
  const std::vector<std::string> nothing = {
      "items", "update", "points", "--attributes", File("empty.jsonl", "")};
  const CommandResult none = Run(nothing);
  EXPECT_EQ(none.exit_status, 0) << none.err;
  EXPECT_THAT(none.out, HasSubstr("Updated 0 items."));
  EXPECT_THAT(none.err, Not(HasSubstr("--state-token")));
  EXPECT_EQ(RunJson(nothing), json({{"updatedCount", 0}}));
  EXPECT_EQ(Run({"items", "update", "points"}).exit_status, 2);
  EXPECT_EQ(Run({"items", "update", "points", "--set", "name=x"}).exit_status,
            2);
  for (const char* second : {"--set", "--unset"}) {
    const std::string change =
        second == std::string("--set") ? "name=b" : "name";
    EXPECT_THAT(Run({"items", "update", "points", "item3", "--set", "name=a",
                     second, change})
                    .err,
                HasSubstr("attribute 'name': got two changes"));
  }
  const CommandResult twice = Run({"items", "update", "points", "item3",
                                   "--key", "key=1,2", "--key", "key=3,4"});
  EXPECT_EQ(twice.exit_status, 2);
  EXPECT_THAT(twice.err, HasSubstr("key 'key': got two changes"));
  RunText({"items", "update", "points", "item3", "--set", "name="});
  EXPECT_EQ(RunJson({"items", "get", "points",
                     "item3"})["items"][0]["attributes"]["name"]["stringValue"],
            "");
}

// As of a fit done again: what it does not know of an item stays.
TEST_F(AttendantCommandTest, FilesChangeKeysAndLeaveTheRest) {
  CreatePoints();
  const std::string ids = File("ids.txt", Ids());
  RunJson({"items", "import", "points", "--keys",
           "key=" + File("keys.npy", NpyBytes(Keys(), 2)), "--ids", ids,
           "--attributes",
           File("names.jsonl", "{\"id\": \"item1\", \"name\": \"red\"}\n")});
  const auto item1 = [&] {
    return RunJson({"items", "get", "points", "item1"})["items"][0];
  };
  std::vector<float> keys = Keys();
  for (float& component : keys) component += 100;
  EXPECT_EQ(
      RunJson({"items", "update", "points", "--ids", ids, "--keys",
               "key=" + File("new.npy", NpyBytes(keys, 2))})["updatedCount"],
      kRowCount);
  EXPECT_EQ(item1()["keys"]["key"]["floats"]["values"], json({101, 101}));
  EXPECT_EQ(item1()["attributes"]["name"]["stringValue"], "red");

  const std::string events =
      File("events.csv",
           "customer_id,item_id,time\nc1,item1,2011-01-01\n"
           "c1,item2,2011-01-02\nc2,item1,2011-01-02\n");
  const std::string fit = files_ / "fit";
  ASSERT_EQ(Run({"fit", "lsi", events, "--dim", "2", "--temperature", "1",
                 "--field", "key", "--out", fit})
                .exit_status,
            0);
  EXPECT_EQ(
      RunJson({"items", "update", "points", "--from", fit})["updatedCount"], 2);
  EXPECT_NE(item1()["keys"]["key"]["floats"]["values"], json({101, 101}));
  EXPECT_EQ(item1()["attributes"]["name"]["stringValue"], "red");

  // A fit knows no names: what an import loses is said.
  const CommandResult replaced =
      Run({"items", "import", "points", "--from", fit});
  EXPECT_EQ(replaced.exit_status, 0) << replaced.err;
  EXPECT_THAT(replaced.err,
              HasSubstr("replaced whole and lose what no file gives: name"));
  for (const std::vector<std::string>& wrong :
       {std::vector<std::string>{"--ids", ids},
        {"item1", "--ids", ids, "--keys", "key=" + ids},
        {"item1", "--from", fit}}) {
    std::vector<std::string> update = {"items", "update", "points"};
    update.insert(update.end(), wrong.begin(), wrong.end());
    EXPECT_EQ(Run(update).exit_status, 2) << wrong[0];
  }
}

TEST_F(AttendantCommandTest, AFilterLeavesTheItemsItIsTrueOf) {
  CreatePoints();
  const std::string keys = File("keys.npy", NpyBytes(Keys(), 2));
  const std::string ids = File("ids.txt", Ids());
  const std::string attributes =
      File("attributes.jsonl",
           "{\"id\": \"item3\", \"name\": \"red\"}\n"
           "{\"id\": \"item5\", \"name\": \"dark red\"}\n");
  RunJson({"items", "import", "points", "--keys", "key=" + keys, "--ids", ids,
           "--attributes", attributes});
  const json answer = RunJson({"attend", "points", "--vector", "1,0",
                               "--filter", "name:'red' AND NOT name = 'red'"});
  ASSERT_EQ(answer["items"].size(), 1u);
  EXPECT_EQ(answer["items"][0]["id"], "item5");
  const CommandResult none =
      Run({"attend", "points", "--vector", "1,0", "--filter", "name = 'x'"});
  EXPECT_EQ(none.exit_status, 0);
  EXPECT_THAT(none.out, AllOf(HasSubstr("Nothing was eligible"),
                              Not(HasSubstr("Weights sum to 1"))));
  // All items again, without the attributes that two had.
  EXPECT_THAT(
      ImportPoints(keys, ids).err,
      AllOf(HasSubstr("lose what no file gives: name, opaque values."),
            HasSubstr("Replaced whole, with keys and attributes: 40 items")));
  const CommandResult refused =
      Run({"attend", "points", "--vector", "1,0", "--filter", "name ~ 'red'"});
  EXPECT_NE(refused.exit_status, 0);
  EXPECT_THAT(refused.err, HasSubstr("~ at position 6"));
}

TEST_F(AttendantCommandTest, HeadsOfDifferentWidthsAnswerInJsonToo) {
  const CommandResult created =
      Run({"catalog", "create", "points", "--key-field", "key:2:dot",
           "--key-field", "wide:4:dot"});
  ASSERT_EQ(created.exit_status, 0) << created.err;
  const std::vector<float> wide(4 * kRowCount, 1);
  const CommandResult imported =
      Run({"items", "import", "points", "--ids", File("ids.txt", Ids()),
           "--keys", "key=" + File("keys.npy", NpyBytes(Keys(), 2)), "--keys",
           "wide=" + File("wide.npy", NpyBytes(wide, 4))});
  ASSERT_EQ(imported.exit_status, 0) << imported.err;
  const json answer = RunJson({"attend", "points", "--like", "item1", "--head",
                               "key", "--head", "wide", "-k", "3"});
  EXPECT_EQ(answer["items"].size(), 3u);
  // One field at two temperatures.
  const json twice = RunJson({"attend", "points", "--like", "item1", "--head",
                              "key=1", "--head", "key=9", "-k", "3"});
  EXPECT_EQ(twice["items"].size(), 3u);
  EXPECT_THAT(Run({"attend", "--help"}).out,
              Not(HasSubstr("each field at most once")));
}

TEST_F(AttendantCommandTest, AFlagThatMayBeRepeatedTakesOneWordEachTime) {
  EXPECT_THAT(Run({"attend", "--help"}).out,
              AllOf(HasSubstr("may be repeated"), Not(HasSubstr("TEXT ...")),
                    HasSubstr("--seed INTEGER")));
  const CommandResult two =
      Run({"attend", "points", "--like", "item1", "item2"});
  EXPECT_EQ(two.exit_status, 2);
  EXPECT_THAT(two.err, HasSubstr("item2"));
}

TEST_F(AttendantCommandTest, InOnePipeLinesComeInTheOrderTheyWereSaid) {
  CreatePoints();
  ASSERT_EQ(ImportPoints(File("keys.npy", NpyBytes(Keys(), 2)),
                         File("ids.txt", Ids()))
                .exit_status,
            0);
  const CommandResult listed = RunCommand(
      {"/bin/sh", "-c", "\"$0\" \"$@\" 2>&1 | cat", kAttendant, "--server",
       server_->address(), "items", "list", "points", "--page-size", "2"});
  EXPECT_EQ(listed.out.find("item0"), 0u) << listed.out;
  EXPECT_LT(listed.out.rfind("item"), listed.out.find("There is more"));
}

TEST_F(AttendantCommandTest, ExplainsAnAnswer) {
  CreatePoints();
  ASSERT_EQ(ImportPoints(File("keys.npy", NpyBytes(Keys(), 2)),
                         File("ids.txt", Ids()))
                .exit_status,
            0);
  const CommandResult told =
      Run({"attend", "points", "--vector", "1,0", "--explain"});
  ASSERT_EQ(told.exit_status, 0) << told.err;
  EXPECT_THAT(told.out, AllOf(HasSubstr("stage"), HasSubstr("scan"),
                              HasSubstr("flat, from floats"),
                              HasSubstr("Weighed 40 candidates")));
  const json answer =
      RunJson({"attend", "points", "--vector", "1,0", "--explain"});
  EXPECT_EQ(answer["plan"]["candidateCount"], "40");
}

TEST_F(AttendantCommandTest, TheDoctorFindsTheServerWell) {
  CreatePoints();
  const std::vector<std::string> doctor = {"doctor", "--data-dir", data_.path(),
                                           "--http", server_->http_address()};
  const json examined = RunJson(doctor);
  EXPECT_NE(examined["verdict"], "failure");
  const json& server = examined["examinations"][2];
  EXPECT_EQ(server["title"], "Server " + server_->address());
  for (const json& finding : server["findings"]) {
    EXPECT_EQ(finding["verdict"], "ok") << finding;
  }
  EXPECT_EQ(server["findings"].size(), 5u);
  EXPECT_EQ(server["findings"][3]["subject"], "open files");
  const auto machines_open_files = [](const json& all) {
    for (const json& finding : all["examinations"][0]["findings"]) {
      if (finding["subject"] == "open files")
        return std::string(finding["text"]);
    }
    return std::string("none");
  };
  // The limit is the server's, not this shell's.
  EXPECT_EQ(machines_open_files(examined), "none");
  EXPECT_THAT(machines_open_files(RunJson(
                  {"doctor", "--no-server", "--data-dir", data_.path()})),
              HasSubstr(absl::StrCat("of process ", server_->pid())));
  EXPECT_THAT(machines_open_files(RunJson({"doctor", "--no-server"})),
              HasSubstr("this shell"));
  const json& directory = examined["examinations"][1];
  EXPECT_EQ(directory["findings"][2]["text"],
            absl::StrCat("process ", server_->pid()));
  EXPECT_THAT(Run({"doctor", "--data-dir", files_ / "other", "--http",
                   server_->http_address()})
                  .out,
              HasSubstr("nobody, though the server answers"));
  // Which directory the server has is not for the doctor to guess.
  EXPECT_THAT(Run({"doctor", "--http", server_->http_address()}).out,
              HasSubstr("not examined: say which with --data-dir"));
  server_->Kill();
  const CommandResult dead = Run(doctor);
  EXPECT_EQ(dead.exit_status, 1);
  EXPECT_THAT(dead.out, HasSubstr("start one: attendantd"));
}

TEST_F(AttendantCommandTest, ExitStatusTellsUsageFromRefusalFromNoServer) {
  EXPECT_EQ(Run({"catalog", "list"}).exit_status, 0);
  EXPECT_EQ(Run({"--help"}).exit_status, 0);
  const CommandResult refused = Run({"attend", "nowhere", "--vector", "1,0"});
  EXPECT_EQ(refused.exit_status, 1);
  EXPECT_THAT(refused.err, HasSubstr("nowhere"));
  EXPECT_EQ(Run({"attend", "points", "--no-such-flag"}).exit_status, 2);
  EXPECT_EQ(Run({"attend", "points"}).exit_status, 2);
  EXPECT_EQ(server_->Stop(), 0);
  const CommandResult unreachable = Run({"catalog", "list"});
  EXPECT_EQ(unreachable.exit_status, 3);
  EXPECT_THAT(unreachable.err,
              AllOf(HasSubstr("no server answers at " + server_->address()),
                    HasSubstr("start one: attendantd")));
}

TEST_F(AttendantCommandTest, FirstFailuresSayWhatToDoNext) {
  EXPECT_THAT(Run({"attend", "nowhere", "--vector", "1,0"}).err,
              HasSubstr("`attendant catalog list` shows"));
  // gRPC would add lines of its own.
  const CommandResult http = RunCommand(
      {kAttendant, "--server", server_->http_address(), "catalog", "list"});
  EXPECT_EQ(http.exit_status, 3);
  EXPECT_EQ(
      http.err,
      absl::StrCat("attendant: something listens at ", server_->http_address(),
                   ", but does not answer as a gRPC server without TLS; "
                   "for a server with TLS give --ca FILE; its HTTP port "
                   "is another one\n"));
  for (const char* address : {"localhost", ":7600", "::1", "[::1]"}) {
    const CommandResult usage =
        RunCommand({kAttendant, "--server", address, "catalog", "list"});
    EXPECT_EQ(usage.exit_status, 2) << address;
    EXPECT_THAT(usage.err, HasSubstr("want HOST:PORT"));
  }
}

TEST_F(AttendantCommandTest, JsonOfWhatFailsIsOneDocumentToo) {
  const CommandResult refused =
      Run({"--json", "attend", "nowhere", "--vector", "1,0"});
  EXPECT_EQ(refused.exit_status, 1);
  EXPECT_THAT(refused.err, HasSubstr("no catalog 'nowhere'"));
  const json error = json::parse(refused.out)["error"];
  EXPECT_EQ(error["code"], "NOT_FOUND");
  EXPECT_THAT(error["message"], HasSubstr("no catalog 'nowhere'"));
  EXPECT_EQ(error["reason"], "CATALOG_NOT_FOUND");
  EXPECT_TRUE(error["metadata"].is_object());
  EXPECT_FALSE(error.contains("retryDelay"));
  // What the client finds itself has a reason as well.
  CreatePoints();
  const auto reason_of = [&](std::vector<std::string> command) {
    command.insert(command.begin(), "--json");
    return json::parse(Run(command).out)["error"]["reason"];
  };
  EXPECT_EQ(reason_of({"items", "update", "points", "a", "--set", "no=1"}),
            "INVALID_ARGUMENT");
  EXPECT_EQ(reason_of({"items", "export", "points", File("is_there", "")}),
            "ALREADY_EXISTS");
  EXPECT_EQ(reason_of({"items", "import", "points", "--items",
                       files_ / "missing.jsonl"}),
            "NOT_FOUND");
  EXPECT_EQ(reason_of({"fit", "lsi", files_ / "missing.csv", "--out",
                       files_ / "fit"}),
            "NOT_FOUND");
  const CommandResult usage = Run({"--json", "attend", "points"});
  EXPECT_EQ(usage.exit_status, 2);
  EXPECT_THAT(usage.err, HasSubstr("--vector"));
  EXPECT_EQ(json::parse(usage.out)["error"]["reason"], "USAGE");
  EXPECT_EQ(server_->Stop(), 0);
  const CommandResult unreachable = Run({"--json", "catalog", "list"});
  EXPECT_EQ(unreachable.exit_status, 3);
  EXPECT_EQ(json::parse(unreachable.out)["error"]["code"], "UNAVAILABLE");
}

// The format of an answer is no part of the question.
TEST_F(AttendantCommandTest, TextAndJsonAskTheSame) {
  CreatePoints();
  ASSERT_EQ(ImportPoints(File("keys.npy", NpyBytes(Keys(), 2)),
                         File("ids.txt", Ids()))
                .exit_status,
            0);
  const std::vector<std::string> ask = {"attend", "points", "--vector", "1,0"};
  const json answer = RunJson(ask);
  EXPECT_FALSE(answer.contains("pooledValue"));
  EXPECT_TRUE(answer["items"][0]["headWeights"].empty());
  EXPECT_THAT(RunText(ask), Not(HasSubstr("Pooled")));
  std::vector<std::string> pooled = ask;
  pooled.insert(pooled.end(), {"--pool", "shortlist"});
  EXPECT_EQ(RunJson(pooled)["pooledValue"]["values"].size(), 2u);
  EXPECT_THAT(RunText(pooled), HasSubstr("Pooled"));
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

TEST_F(AttendantCommandTest, AFieldToUpdateIsNamedWithThoseThereAre) {
  CreatePoints();
  const CommandResult result =
      Run({"catalog", "update", "points", "nofield", "--temperature", "1"});
  EXPECT_EQ(result.exit_status, 1);
  EXPECT_EQ(result.err,
            "attendant: FIELD: the catalog has no key field 'nofield'; it has: "
            "key\n");
}

TEST_F(AttendantCommandTest, AnItemIsShownInColumns) {
  CreatePoints();
  EXPECT_THAT(RunText({"items", "list", "points"}),
              HasSubstr("There are no items."));
  RunJson({"items", "import", "points", "--items",
           File("one.jsonl",
                R"({"id": "a", "keys": {"key": [-0.0, 2]}, )"
                R"("attributes": {"name": "x"}, "opaque_value": "AP8A"})")});
  EXPECT_EQ(RunText({"items", "get", "points", "a"}),
            "a\n"
            "  name          x\n"
            "  key key       [0, 2]  2 components, norm 2\n"
            "  opaque value  3 bytes\n"
            "  sequence      1\n");
}

// As README says.
TEST_F(AttendantCommandTest, TheExampleOfTheReadmeRuns) {
  const std::string write_files =
      absl::StrCat(kSourceDir, "/examples/films/write-files");
  EXPECT_EQ(RunCommand({write_files, "--help"}).exit_status, 0);
  ASSERT_EQ(RunCommand({write_files, files_ / "new"}).exit_status, 0);
  ASSERT_EQ(Run({"catalog", "create", "films", "--key-field", "taste:64:cosine",
                 "--temperature", "taste=0.05", "--attribute", "title:string"})
                .exit_status,
            0);
  const CommandResult imported =
      Run({"items", "import", "films", "--ids", files_ / "new/ids.txt",
           "--keys", "taste=" + files_ / "new/keys.npy", "--attributes",
           files_ / "new/titles.jsonl"});
  ASSERT_EQ(imported.exit_status, 0) << imported.err;
  const std::string answer =
      RunText({"attend", "films", "--like", "tt0111161", "--like",
               "tt0068646=0.5", "--show", "title", "-k", "2"});
  // Of one taste.
  EXPECT_THAT(answer, AllOf(HasSubstr("The Godfather Part II"),
                            HasSubstr("12 Angry Men")));
  const CommandResult fitted = Run({"fit", "temperature", "--catalog", "films",
                                    "--pairs", files_ / "new/clicks.jsonl"});
  EXPECT_EQ(fitted.exit_status, 0) << fitted.err;
}

TEST_F(AttendantCommandTest, AnUnknownAttributeToShowIsNamedWithThoseThereAre) {
  CreatePoints();
  ASSERT_EQ(ImportPoints(File("keys.npy", NpyBytes(Keys(), 2)),
                         File("ids.txt", Ids()))
                .exit_status,
            0);
  constexpr char kSaid[] =
      "attendant: --show: got title, want an attribute of points: name\n";
  EXPECT_EQ(Run({"attend", "points", "--vector", "1,0", "--show", "title"}).err,
            kSaid);
  EXPECT_EQ(Run({"rank", "points", "--candidate", "item4", "--profile", "item5",
                 "--show", "title"})
                .err,
            kSaid);
}

TEST_F(AttendantCommandTest, AFlagIsNamedOnceWhereItIsWrong) {
  for (const auto& [flag, value, want] :
       std::vector<std::array<std::string, 3>>{
           {"--bias", "=", "NAME or NAME=FACTOR"},
           {"--decay", "added=5", "NAME=HALF_LIFE"},
           {"--head", "=1", "FIELD or FIELD=TEMPERATURE"}}) {
    const CommandResult result =
        Run({"attend", "points", "--vector", "1,0", flag, value});
    EXPECT_EQ(result.exit_status, 2);
    EXPECT_THAT(result.err,
                HasSubstr(absl::StrCat("attendant: ", flag, ": got '", value,
                                       "', want ", want)));
  }
}

TEST_F(AttendantCommandTest, ATruncatedArrayStoresNothing) {
  CreatePoints();
  std::string bytes = NpyBytes(Keys(), 2);
  bytes.resize(bytes.size() - 3);
  const std::string keys = File("keys.npy", bytes);
  const CommandResult result = ImportPoints(keys, File("ids.txt", Ids()));
  EXPECT_EQ(result.exit_status, 1);
  EXPECT_THAT(result.err, HasSubstr(keys));
  EXPECT_EQ(StoredCount(), 0u);
}

TEST_F(AttendantCommandTest, ANanIsRejectedByRowAndTheRestIsStored) {
  CreatePoints();
  std::vector<float> values = Keys();
  // Row 17, counted from 1.
  values[2 * 16 + 1] = std::numeric_limits<float>::quiet_NaN();
  const std::string keys = File("keys.npy", NpyBytes(values, 2));
  const CommandResult result = ImportPoints(keys, File("ids.txt", Ids()));
  EXPECT_EQ(result.exit_status, 1);
  EXPECT_THAT(result.err, AllOf(HasSubstr(keys), HasSubstr("row 17"),
                                HasSubstr("item16"), HasSubstr("39 of 40")));
  EXPECT_EQ(StoredCount(), kRowCount - 1u);
}

TEST_F(AttendantCommandTest, ADuplicateIdStoresNothing) {
  CreatePoints();
  std::string text = Ids();
  text.replace(text.find("item2\n"), 6, "item1\n");
  const std::string ids = File("ids.txt", text);
  const CommandResult result =
      ImportPoints(File("keys.npy", NpyBytes(Keys(), 2)), ids);
  EXPECT_EQ(result.exit_status, 1);
  EXPECT_THAT(result.err, AllOf(HasSubstr(ids), HasSubstr("item1")));
  EXPECT_EQ(StoredCount(), 0u);
}

TEST_F(AttendantCommandTest, AnotherDimensionStoresNothing) {
  CreatePoints();
  const std::string keys = File("keys.npy", NpyBytes(Keys(), 1));
  const CommandResult result = ImportPoints(keys, File("ids.txt", Ids()));
  EXPECT_EQ(result.exit_status, 1);
  EXPECT_THAT(result.err, HasSubstr(keys));
  EXPECT_EQ(StoredCount(), 0u);
}

TEST_F(AttendantCommandTest, AnAttributeNestedTooDeepStoresNothing) {
  CreatePoints();
  const std::string attributes =
      File("attributes.jsonl",
           "{\"id\": \"item1\", \"name\": " + std::string(70000, '[') + "\n");
  const CommandResult result =
      Run({"items", "import", "points", "--keys",
           "key=" + File("keys.npy", NpyBytes(Keys(), 2)), "--ids",
           File("ids.txt", Ids()), "--attributes", attributes});
  EXPECT_EQ(result.exit_status, 1);
  EXPECT_THAT(result.err, HasSubstr(attributes + ": line 1: nested more than"));
  EXPECT_EQ(StoredCount(), 0u);
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
  // Without the file that names the manifest RocksDB knows no data.
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

TEST_F(AttendantCommandTest, AnOutputThatCannotBeWrittenIsRefusedFirst) {
  const std::string file = File("file", "");
  const CommandResult result =
      Run({"fit", "lsi", files_ / "missing.csv", "--out", file + "/fit"});
  EXPECT_EQ(result.exit_status, 1);
  EXPECT_THAT(result.err, HasSubstr(file + "/fit"));
}

TEST_F(AttendantCommandTest, TooFewEventsNameTheWayOut) {
  const std::string events =
      File("events.csv",
           "customer_id,item_id,time\nc1,a,2011-01-01\nc2,b,2011-01-02\n");
  const std::string fit = files_ / "fit";
  const CommandResult result = Run({"fit", "lsi", events, "--out", fit});
  EXPECT_EQ(result.exit_status, 1);
  EXPECT_THAT(
      result.err,
      HasSubstr(events + ": too few events to choose a temperature by; give "
                         "one, as in --temperature 0.1 (events: got no"));
  EXPECT_EQ(Run({"fit", "lsi", events, "--temperature", "1", "--out", fit})
                .exit_status,
            0);
}

TEST_F(AttendantCommandTest, AFittedTemperatureCanBeTakenBack) {
  ASSERT_EQ(Run({"catalog", "create", "points", "--key-field", "key:2:dot",
                 "--temperature", "key=0.05", "--combine", "key=unit"})
                .exit_status,
            0);
  ASSERT_EQ(ImportPoints(File("keys.npy", NpyBytes(Keys(), 2)),
                         File("ids.txt", Ids()))
                .exit_status,
            0);
  const auto temperature = [&] {
    return RunJson(
        {"catalog", "describe",
         "points"})["catalog"]["schema"]["keyFields"][0]["temperature"];
  };
  std::string pairs;
  for (int i = 0; i < 10; ++i) {
    absl::StrAppend(&pairs,
                    "{\"vector\": [0.1, 0], \"item\": \"item39\"}\n"
                    "{\"vector\": [0.1, 0], \"item\": \"item20\"}\n");
  }
  const std::vector<std::string> fit = {
      "fit",    "temperature", "--catalog",
      "points", "--pairs",     File("pairs.jsonl", pairs)};
  std::vector<std::string> dry = fit;
  dry.push_back("--dry-run");
  EXPECT_THAT(RunText(dry), HasSubstr("Would set temperature"));
  const json told = RunJson(dry);
  EXPECT_EQ(told["previousTemperature"], 0.05);
  // Vectors say nothing about how examples combine.
  EXPECT_EQ(told["previousCombineKind"], "COMBINE_KIND_UNIT");
  EXPECT_EQ(told["combineKind"], "COMBINE_KIND_UNIT");
  EXPECT_EQ(told["scoreKind"], "SCORE_KIND_DOT");
  EXPECT_EQ(told["dryRun"], true);
  EXPECT_EQ(temperature(), 0.05);
  EXPECT_THAT(
      RunText(fit),
      AllOf(HasSubstr("Set temperature of field key of points: 0.05 -> "),
            HasSubstr("Undo: attendant catalog update points key "
                      "--temperature 0.05\n")));
  EXPECT_EQ(temperature(), told["temperature"]);
}

TEST_F(AttendantCommandTest, AFewChoicesSetNoTemperature) {
  ASSERT_EQ(Run({"catalog", "create", "points", "--key-field", "key:2:dot"})
                .exit_status,
            0);
  ASSERT_EQ(ImportPoints(File("keys.npy", NpyBytes(Keys(), 2)),
                         File("ids.txt", Ids()))
                .exit_status,
            0);
  std::vector<std::string> fit = {
      "fit",
      "temperature",
      "--catalog",
      "points",
      "--pairs",
      File("pairs.jsonl", "{\"vector\": [0.1, 0], \"item\": \"item39\"}\n")};
  const CommandResult refused = Run(fit);
  EXPECT_EQ(refused.exit_status, 1);
  EXPECT_THAT(refused.err, HasSubstr("pairs.jsonl: got 1 choice, want at least "
                                     "20 to set a temperature by"));
  fit.push_back("--dry-run");
  EXPECT_THAT(RunText(fit), HasSubstr("over only 1 choice."));
  fit.insert(fit.end(), {"--field", "kee"});
  EXPECT_THAT(Run(fit).err, HasSubstr("--field: the catalog has no key field "
                                      "'kee'; it has: key"));
}

// As items go while choices are kept.
TEST_F(AttendantCommandTest, ChoicesOfItemsThatAreGoneAreLeftOut) {
  ASSERT_EQ(Run({"catalog", "create", "points", "--key-field", "key:2:dot"})
                .exit_status,
            0);
  ASSERT_EQ(ImportPoints(File("keys.npy", NpyBytes(Keys(), 2)),
                         File("ids.txt", Ids()))
                .exit_status,
            0);
  const auto fit = [&](const std::string& pairs) {
    return Run({"fit", "temperature", "--catalog", "points", "--dry-run",
                "--json", "--pairs", File("pairs.jsonl", pairs)});
  };
  const std::string both =
      "{\"examples\": [\"item1\", \"item2\"], \"item\": \"item39\"}\n"
      "{\"examples\": [\"item3\"], \"item\": \"item20\"}\n";
  const CommandResult whole = fit(both);
  ASSERT_EQ(whole.exit_status, 0) << whole.err;
  EXPECT_THAT(whole.err, Not(HasSubstr("left out")));
  const CommandResult rest =
      fit("{\"examples\": [\"item4\"], \"item\": \"gone\"}\n"
          "{\"vector\": [1, 0], \"item\": \"gone too\"}\n"
          "{\"examples\": [\"gone\"], \"item\": \"item5\"}\n"
          "{\"examples\": [\"item1\", \"lost\", \"item2\"], "
          "\"item\": \"item39\"}\n" +
          both.substr(both.find('\n') + 1));
  ASSERT_EQ(rest.exit_status, 0) << rest.err;
  EXPECT_EQ(rest.out, whole.out);
  EXPECT_THAT(rest.err, AllOf(HasSubstr("left out 3 pairs, and 1 example"),
                              HasSubstr("'gone' is the first")));
  const CommandResult none =
      fit("{\"examples\": [\"item1\"], \"item\": \"gone\"}\n");
  EXPECT_EQ(none.exit_status, 1);
  EXPECT_THAT(none.err, AllOf(HasSubstr("none of its 1 pair"),
                              HasSubstr("there is no 'gone'")));
}

TEST_F(AttendantCommandTest, AMissingColumnIsNamed) {
  const std::string events =
      File("events.csv", "customer_id,product\nc1,a\nc1,b\n");
  const CommandResult result =
      Run({"fit", "lsi", events, "--out", files_ / "fit"});
  EXPECT_EQ(result.exit_status, 1);
  EXPECT_THAT(result.err, AllOf(HasSubstr(events), HasSubstr("item_id")));
}

// The worked example from the events file on: its singular values and, through
// the server, the weights of its films.
TEST_F(AttendantCommandTest, FitsTheWorkedExample) {
  const json example = json::parse(
      ReadWholeFile(absl::StrCat(kSourceDir, "/examples/lsi/lsi.json")));
  std::string csv = "person,film,stars\n";
  for (int person = 0; person < 7; ++person) {
    for (int film = 0; film < 5; ++film) {
      const int stars = example["X"][person][film];
      if (stars == 0) continue;
      absl::StrAppend(&csv, "P", person + 1, ",film", film, ",", stars, "\n");
    }
  }
  const std::string fit = files_ / "fit";
  const CommandResult fitted = Run(
      {"fit", "lsi", File("ratings.csv", csv), "--customer-column", "person",
       "--item-column", "film", "--rating-column", "stars", "--time-column", "",
       "--temperature", "1", "--dim", "2", "--out", fit});
  ASSERT_EQ(fitted.exit_status, 0) << fitted.err;
  ASSERT_EQ(Run({"catalog", "create", "films", "--from", fit}).exit_status, 0);
  ASSERT_EQ(Run({"items", "import", "films", "--from", fit}).exit_status, 0);
  const json answer =
      RunJson({"attend", "films", "--like", "film1=4", "--like", "film2=5",
               "--include-examples", "--weights", "catalog"});
  ASSERT_EQ(answer["items"].size(), 5u);
  EXPECT_EQ(answer["items"][0]["id"], "film1");
  // Keys and logits below 4 in binary32.
  EXPECT_NEAR(answer["items"][0]["weight"], .338481127780, 4e-6);
  EXPECT_NEAR(answer["items"][1]["weight"], .313059026997, 4e-6);
  EXPECT_NEAR(answer["items"][4]["weight"], .017700409113, 4e-6);
}

TEST_F(AttendantCommandTest, TextFindsItemsHardSoftAndMisspelt) {
  const std::string items =
      File("items.csv",
           "item_id,name\na,RED ALARM CLOCK\nb,GREEN ALARM CLOCK\n"
           "c,LUNCH BAG\nd,PAPER LANTERN\ne,ALARM BELL\n");
  const std::string fit = files_ / "fit";
  const CommandResult fitted =
      Run({"fit", "text", items, "--columns", "name", "--id-column", "item_id",
           "--dim", "4", "--out", fit});
  ASSERT_EQ(fitted.exit_status, 0) << fitted.err;
  ASSERT_EQ(Run({"catalog", "create", "texts", "--from", fit}).exit_status, 0);
  // The same fit again is nothing to warn of; sharper attention is.
  EXPECT_EQ(Run({"catalog", "create", "texts", "--from", fit}).err, "");
  EXPECT_THAT(Run({"catalog", "create", "texts", "--from", fit, "--temperature",
                   "text=0.001"})
                  .err,
              AllOf(HasSubstr("temperature 0.001 of text"),
                    HasSubstr("the text encoder of text")));
  ASSERT_EQ(Run({"items", "import", "texts", "--from", fit}).exit_status, 0);
  const json hard =
      RunJson({"attend", "texts", "--text", "red alarm clock", "--hard"});
  ASSERT_EQ(hard["items"].size(), 1u);
  EXPECT_EQ(hard["items"][0]["id"], "a");
  EXPECT_EQ(hard["items"][0]["weight"], 1);
  const json soft = RunJson({"attend", "texts", "--text", "alarm clokc"});
  // Both alarm clocks, before the bell.
  EXPECT_THAT((std::vector<std::string>{soft["items"][0]["id"],
                                        soft["items"][1]["id"]}),
              ::testing::UnorderedElementsAre("a", "b"));
  EXPECT_EQ(soft["items"].size(), 5u);
  const CommandResult unknown = Run({"attend", "texts", "--text", "qqq"});
  EXPECT_EQ(unknown.exit_status, 1);
  EXPECT_THAT(unknown.err, HasSubstr("term"));
}

TEST_F(AttendantCommandTest, ACatalogGetsItsTextEncoderLater) {
  const std::string items =
      File("items.csv", "item_id,name\na,RED CLOCK\nb,RED BAG\n");
  const std::string fit = files_ / "fit";
  RunJson(
      {"fit", "text", items, "--columns", "name", "--dim", "2", "--out", fit});
  ASSERT_EQ(Run({"catalog", "create", "texts", "--key-field", "title:2:cosine"})
                .exit_status,
            0);
  const std::vector<std::string> ask = {"attend", "texts", "--text", "clock"};
  EXPECT_EQ(Run(ask).exit_status, 1);
  const json catalog = RunJson({"catalog", "update", "texts", "title", "--from",
                                fit, "--temperature", "0.5"})["catalog"];
  EXPECT_EQ(catalog["schema"]["keyFields"][0]["temperature"], .5);
  EXPECT_GT(catalog["indexes"][0]["textEncoderTermCount"], 0);
  EXPECT_EQ(Run(ask).exit_status, 0);
  // Alone, it changes no defaults.
  const json again = RunJson(
      {"catalog", "update", "texts", "title", "--from", fit})["catalog"];
  EXPECT_EQ(again["schema"], catalog["schema"]);
  const std::string events = File(
      "events.csv", "customer_id,item_id,time\n1,a,1\n1,b,2\n2,a,3\n2,b,4\n");
  const std::string lsi = files_ / "lsi";
  ASSERT_EQ(Run({"fit", "lsi", events, "--dim", "1", "--temperature", "1",
                 "--out", lsi})
                .exit_status,
            0);
  const CommandResult refused =
      Run({"catalog", "update", "texts", "title", "--from", lsi});
  EXPECT_EQ(refused.exit_status, 1);
  EXPECT_THAT(refused.err, HasSubstr("got a fit of events, want one of text"));
}

// Latin-1, as of an old system.
TEST_F(AttendantCommandTest, AFitIsReportedWhateverBytesItsNamesHave) {
  const std::string items =
      File("items.csv", "item_id,n\xe4me\na,RED CLOCK\nb,RED BAG\n");
  const std::string fit = files_ / "fit\xe4";
  const json fitted = RunJson({"fit", "text", items, "--columns", "n\xe4me",
                               "--dim", "2", "--out", fit});
  EXPECT_EQ(fitted["model"]["keyField"]["dimension"], 2);
  EXPECT_EQ(fitted["directory"], (files_ / "fit") + "\xEF\xBF\xBD");
  const json created = RunJson({"catalog", "create", "texts", "--from", fit});
  EXPECT_EQ(created["catalog"]["schema"]["attributes"][0]["name"], "n_me");
}

TEST_F(AttendantCommandTest, AnItemWithoutAKnownTermIsRefusedAlone) {
  const std::string items = File(
      "items.csv", "item_id,name\na,RED CLOCK\nb,GREEN CLOCK\nc,\nd,RED BAG\n");
  const std::string fit = files_ / "fit";
  const CommandResult fitted = Run(
      {"fit", "text", items, "--columns", "name", "--dim", "2", "--out", fit});
  ASSERT_EQ(fitted.exit_status, 0) << fitted.err;
  EXPECT_THAT(fitted.err, HasSubstr("1 item without a term that was kept"));
  EXPECT_THAT(fitted.err, HasSubstr("an import refuses"));
  ASSERT_EQ(Run({"catalog", "create", "texts", "--from", fit}).exit_status, 0);
  const CommandResult imported =
      Run({"items", "import", "texts", "--from", fit});
  EXPECT_EQ(imported.exit_status, 1);
  EXPECT_THAT(imported.err,
              AllOf(HasSubstr("(c): "), HasSubstr("an item needs one"),
                    HasSubstr("stored 3 of 4 rows in texts, rejected 1")));
}

TEST_F(AttendantCommandTest, ContextualizesFilesAndItems) {
  const std::string tokens =
      File("tokens.npy", NpyBytes(std::vector<float>{10, 0, 0, 10, 9, 0}, 2));
  const json answer = RunJson({"contextualize", "--vectors", tokens, "--causal",
                               "--weights", "--score", "dot", "--pad", "2"});
  ASSERT_EQ(answer["outputs"].size(), 3u);
  EXPECT_EQ(answer["outputs"][0]["floats"]["values"], json({10, 0}));
  // Logits 90 and 0, its own masked.
  EXPECT_EQ(answer["outputs"][2]["floats"]["values"], json({10, 0}));
  EXPECT_EQ(answer["headWeights"][0]["weights"],
            json({1, 0, 0, 0, 1, 0, 1, 0, 0}));
  CreatePoints();
  ASSERT_EQ(ImportPoints(File("keys.npy", NpyBytes(Keys(), 2)),
                         File("ids.txt", Ids()))
                .exit_status,
            0);
  const CommandResult report =
      Run({"contextualize", "--catalog", "points", "--item", "item30", "--item",
           "item3", "--memory-item", "item9", "--memory-item", "item39",
           "--weights"});
  EXPECT_EQ(report.exit_status, 0) << report.err;
  EXPECT_THAT(report.out, HasSubstr("item30  item39 100.0 %"));
  const CommandResult refused = Run({"contextualize", "--item", "item30"});
  EXPECT_EQ(refused.exit_status, 2);
  EXPECT_THAT(refused.err, HasSubstr("--catalog"));
}

TEST_F(AttendantCommandTest, RanksCandidatesByAHistory) {
  CreatePoints();
  ASSERT_EQ(ImportPoints(File("keys.npy", NpyBytes(Keys(), 2)),
                         File("ids.txt", Ids()))
                .exit_status,
            0);
  const std::string history = File("events.csv",
                                   "customer_id,item_id,time\n"
                                   "7,item2,2011-01-01\n"
                                   "7,item3,2011-02-01\n"
                                   "7,item30,2011-03-01\n"
                                   "8,item31,2011-01-01\n");
  const json answer = RunJson({"rank", "points", "--candidate", "item4",
                               "--candidate", "item5", "--history", history,
                               "--customer", "7", "--time", "2011-02-15"});
  ASSERT_EQ(answer["candidates"].size(), 2u);
  EXPECT_EQ(answer["candidates"][0]["id"], "item5");
  EXPECT_EQ(answer["candidates"][0]["events"][0]["index"], 1);
  // Logits 5 x 3 + 1 and 5 x 2 + 1.
  EXPECT_NEAR(answer["candidates"][0]["events"][0]["weight"],
              1 / (1 + std::exp(-5)), 1e-6);
  EXPECT_EQ(answer["candidates"][0]["events"][0]["itemId"], "item3");
  EXPECT_EQ(answer["candidates"][0]["events"][0]["time"],
            "2011-02-01T00:00:00Z");
  EXPECT_EQ(answer["futureEventCount"], 1);
  ASSERT_EQ(
      Run({"items", "update", "points", "item3", "item5", "--set", "name=red"})
          .exit_status,
      0);
  const json shown =
      RunJson({"rank", "points", "--candidate", "item5", "--profile", "item3",
               "--profile-vector", "0,1", "--show", "name"})["candidates"][0];
  EXPECT_EQ(shown["attributes"]["name"]["stringValue"], "red");
  EXPECT_EQ(shown["events"][0]["itemId"], "item3");
  EXPECT_EQ(shown["events"][0]["attributes"]["name"]["stringValue"], "red");
  EXPECT_FALSE(shown["events"][0].contains("time"));
  EXPECT_FALSE(shown["events"][1].contains("itemId"));
  const CommandResult report =
      Run({"rank", "points", "--near", "1,0", "--near-count", "2", "--event",
           "item2=2011-01-01", "--profile", "gone"});
  EXPECT_EQ(report.exit_status, 0) << report.err;
  EXPECT_THAT(report.out, HasSubstr("item2 100.0 %"));
  EXPECT_THAT(report.out, HasSubstr("Skipped, not in the catalog: gone"));
  const auto near = [&](std::vector<std::string> masks) {
    masks.insert(masks.begin(), {"rank", "points", "--near", "1,0",
                                 "--near-count", "2", "--profile", "item39"});
    std::vector<std::string> found;
    const json reply = RunJson(masks);
    for (const json& candidate : reply["candidates"]) {
      found.push_back(candidate["id"]);
    }
    return found;
  };
  EXPECT_THAT(near({}), ElementsAre("item38", "item37"));
  EXPECT_THAT(near({"--include-events"}), ElementsAre("item39", "item38"));
  EXPECT_THAT(
      near({"--deny", "item38", "--deny-file", File("deny.txt", "item37\n")}),
      ElementsAre("item36", "item35"));
  EXPECT_THAT(near({"--filter", "name = \"red\""}),
              ElementsAre("item5", "item3"));
  const CommandResult refused = Run({"rank", "points", "--candidate", "item4"});
  EXPECT_EQ(refused.exit_status, 2);
  EXPECT_THAT(refused.err, HasSubstr("--event"));
}

}  // namespace
}  // namespace attendant
