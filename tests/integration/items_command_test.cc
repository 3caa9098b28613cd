// `attendant items`: imports and exports of files, and changes of stored items.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/files/npy.h"
#include "tests/integration/binaries.h"
#include "tests/integration/points_fixture.h"

namespace attendant {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

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
  // A line that is not an item, and an item that the server refuses.
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
  // Export does not overwrite a file.
  const CommandResult again = Run({"items", "export", "points", path});
  EXPECT_EQ(again.exit_status, 1);
  EXPECT_THAT(again.err, HasSubstr("choose another name"));
  // A pipe gets the same lines and nothing else.
  const CommandResult piped = Run({"--json", "items", "export", "points", "-"});
  EXPECT_EQ(piped.out, ReadWholeFile(path));
  EXPECT_THAT(piped.err, HasSubstr("Wrote 2,500 items to standard output."));
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

// The server refuses the first row; the other rows never reach it.
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

TEST_F(AttendantCommandTest, RowsRejectedForOneReasonShareALine) {
  CreatePoints();
  const CommandResult result =
      Run({"items", "import", "points", "--items",
           File("items.txt", "id,name\na,b\nc,d\n{\"id\": 7}\ne,f\n")});
  EXPECT_EQ(result.exit_status, 1);
  EXPECT_THAT(result.err,
              HasSubstr("4 rows, the first is row 1: not a JSON object\n"
                        "attendant: row 4: id: got number"));
  ImportAll();
  EXPECT_THAT(Run({"items", "import", "points", "--keys",
                   "key=" + File("keys.npy", NpyBytes(Keys(), 2)), "--ids",
                   File("ids.txt", Ids()), "--if-absent"})
                  .err,
              HasSubstr("40 rows, the first is row 1 (item0): "));
}

TEST_F(AttendantCommandTest, AWrongRowOfAttributesStopsNoOther) {
  CreatePoints();
  const std::vector<std::string> import = {
      "items",
      "import",
      "points",
      "--keys",
      "key=" + File("keys.npy", NpyBytes(Keys(), 2)),
      "--ids",
      File("ids.txt", Ids()),
      "--attributes",
      File("names.jsonl",
           "{\"id\": \"item0\", \"name\": \"zero\"}\n"
           "{\"id\": \"item3\", \"name\": 3}\n")};
  const CommandResult result = Run(import);
  EXPECT_EQ(result.exit_status, 1);
  EXPECT_THAT(result.err,
              AllOf(HasSubstr("row 4 (item3): "),
                    HasSubstr("names.jsonl: line 2: name: got 3, want a text"),
                    HasSubstr("Without attributes: 38 items; "),
                    HasSubstr("stored 39 of 40 rows in points, rejected 1")));
  EXPECT_EQ(StoredCount(), 39u);
  std::vector<std::string> as_json = import;
  as_json.push_back("--json");
  const json reply = json::parse(Run(as_json).out);
  EXPECT_EQ(reply["withoutAttributesCount"], 38);
  EXPECT_EQ(reply["rejected"][0]["id"], "item3");
}

TEST_F(AttendantCommandTest, ColumnsOfACsvFileAreLeftOutByName) {
  CreatePoints();
  const auto import = [&](const std::vector<std::string>& columns) {
    std::vector<std::string> words = {
        "items",
        "import",
        "points",
        "--keys",
        "key=" + File("keys.npy", NpyBytes(Keys(), 2)),
        "--ids",
        File("ids.txt", Ids()),
        "--attributes",
        File("a.csv", "id,name,colour,size\nitem1,x,red,3\n")};
    words.insert(words.end(), columns.begin(), columns.end());
    return Run(words);
  };
  const CommandResult undeclared = import({});
  EXPECT_EQ(undeclared.exit_status, 1);
  EXPECT_THAT(
      undeclared.err,
      HasSubstr("a.csv: the catalog declares no attribute colour, size; "
                "it declares name (string). `attendant catalog update CATALOG "
                "--attribute NAME:TYPE` declares another; to leave the "
                "others out: --columns name\n"));
  EXPECT_THAT(import({"--columns", "name,nme"}).err,
              HasSubstr("a.csv: --columns: no column 'nme'; the columns are "
                        "id, name, colour, size\n"));
  EXPECT_EQ(StoredCount(), 0u);
  EXPECT_EQ(import({"--columns", "name"}).exit_status, 0);
  EXPECT_THAT(RunText({"items", "get", "points", "item1"}), HasSubstr("x"));
}

// Whatever lines and numbers their reasons have.
TEST_F(AttendantCommandTest, AttributesRejectedForOneReasonShareALine) {
  CreatePoints();
  std::string lines;
  for (int i = 0; i < kRowCount; ++i) {
    absl::StrAppend(&lines, "{\"id\": \"item", i, "\", \"nme\": 1}\n");
  }
  const CommandResult result =
      Run({"items", "import", "points", "--keys",
           "key=" + File("keys.npy", NpyBytes(Keys(), 2)), "--ids",
           File("ids.txt", Ids()), "--attributes", File("names.jsonl", lines)});
  EXPECT_EQ(result.exit_status, 1);
  EXPECT_THAT(result.err,
              AllOf(HasSubstr("40 rows, the first is row 1 (item0): "),
                    HasSubstr("nme: the catalog declares no such attribute")));
}

// An import accepts the output of `items get`.
TEST_F(AttendantCommandTest, ImportsWhatGetPrints) {
  CreatePoints();
  RunJson({"items", "import", "points", "--items",
           File("one.jsonl",
                R"({"id": "a", "keys": {"key": [0.1, 2]}, )"
                R"("attributes": {"name": "x"}, "opaque_value": "AP8A"})")});
  const std::string shown = RunText({"items", "get", "points", "a", "--json"});
  RunText({"items", "delete", "points", "a"});
  RunText({"items", "import", "points", "--items", File("a.json", shown)});
  json before = json::parse(shown)["items"][0];
  json after = RunJson({"items", "get", "points", "a"})["items"][0];
  before.erase("sequence");
  after.erase("sequence");
  EXPECT_EQ(after, before);
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
  // Two of forty items whose logits descend in steps of 1: 1 + 1 / e of a
  // geometric sum.
  const double e = std::exp(-1);
  const double partition = (1 - std::pow(e, kRowCount)) / (1 - e);
  EXPECT_NEAR(answer["items"][0]["weight"], 1 / partition, 1e-6);

  const CommandResult shown =
      Run({"attend", "points", "--like", "item39", "--show", "name"});
  EXPECT_EQ(shown.exit_status, 0);
  EXPECT_THAT(shown.out, HasSubstr("item38"));
  // Examples are excluded from the answer.
  EXPECT_THAT(shown.out, Not(HasSubstr("the last")));

  // Members that were not requested are absent, because they would look empty.
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
  // Output larger than a buffer, on a full disk.
  const CommandResult full = RunCommand(
      {"/bin/sh", "-c", "exec \"$0\" \"$@\" > /dev/full", kAttendant,
       "--server", server_->address(), "--json", "items", "list", "points"});
  EXPECT_EQ(full.exit_status, 1);
  EXPECT_THAT(full.err, HasSubstr("standard output can't be written"));
  EXPECT_EQ(Run({"items", "delete", "points", "item39"}).exit_status, 0);
  EXPECT_EQ(Run({"items", "get", "points", "item39"}).exit_status, 1);
  EXPECT_EQ(Run({"catalog", "delete", "points", "--yes"}).exit_status, 0);
  EXPECT_EQ(Run({"catalog", "describe", "points"}).exit_status, 1);
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
  const std::vector<std::string> by_filter = {"items", "delete", "points",
                                              "--filter", "name:'red'"};
  const CommandResult unasked = Run(by_filter);
  EXPECT_EQ(unasked.exit_status, 2);
  EXPECT_THAT(unasked.err, HasSubstr("only --yes deletes without asking"));
  EXPECT_EQ(Run({"items", "get", "points", "item5"}).exit_status, 0);
  std::vector<std::string> with_yes = by_filter;
  with_yes.push_back("--yes");
  EXPECT_THAT(Run(with_yes).out, HasSubstr("Deleted 1 item."));
  EXPECT_EQ(Run({"items", "get", "points", "item5"}).exit_status, 1);
  EXPECT_EQ(Run({"items", "delete", "points"}).exit_status, 2);
  // With the brackets these would be other names.
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
  // All items but the deleted one exist, and do not change.
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
  EXPECT_EQ(missing.err,
            "attendant: updated 0 items, then: row 2: no item 'none' in "
            "points; `attendant items import` adds items\n");
  EXPECT_EQ(
      Run({"items", "update", "points", "item3", "gone", "--unset", "name"})
          .err,
      "attendant: no item 'gone' in points; `attendant items import` "
      "adds items\n");
  // A file without lines writes nothing, so there is no token.
  const std::vector<std::string> nothing = {
      "items", "update", "points", "--attributes", File("empty.jsonl", "")};
  const CommandResult none = Run(nothing);
  EXPECT_EQ(none.exit_status, 0) << none.err;
  EXPECT_THAT(none.out, HasSubstr("Updated 0 items."));
  EXPECT_THAT(none.err, Not(HasSubstr("--state-token")));
  EXPECT_EQ(RunJson(nothing),
            json({{"updatedCount", 0}, {"emptyRowCount", 0}}));
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

// The server refuses a whole batch for one item without a change.
TEST_F(AttendantCommandTest, RowsThatChangeNothingAreLeftOut) {
  CreatePoints();
  RunJson({"items", "import", "points", "--keys",
           "key=" + File("keys.npy", NpyBytes(Keys(), 2)), "--ids",
           File("ids.txt", Ids()), "--attributes",
           File("before.csv", "id,name\nitem2,red\n")});
  const auto update = [&](const std::string& name, const std::string& rows) {
    return std::vector<std::string>{"items", "update", "points", "--attributes",
                                    File(name, rows)};
  };
  const json updated =
      RunJson(update("rows.csv", "id,name\nitem1,blue\nitem2,\nitem3,green\n"));
  EXPECT_EQ(updated["updatedCount"], 2);
  EXPECT_EQ(updated["emptyRowCount"], 1);
  const json items =
      RunJson({"items", "get", "points", "item1", "item2", "item3",
               "--state-token", updated["stateToken"]})["items"];
  EXPECT_EQ(items[0]["attributes"]["name"]["stringValue"], "blue");
  EXPECT_EQ(items[1]["attributes"]["name"]["stringValue"], "red");
  EXPECT_EQ(items[2]["attributes"]["name"]["stringValue"], "green");
  EXPECT_EQ(RunText(update("rows.jsonl",
                           "{\"id\": \"item1\", \"name\": null}\n"
                           "{\"id\": \"item2\", \"name\": \"blue\"}\n"
                           "{\"id\": \"item3\", \"opaque_value\": \"\"}\n")),
            "Updated 1 item.\nLeft out 2 rows that change nothing.\n");
  EXPECT_EQ(RunJson(update("empty.csv", "id,name\nitem1,\n")),
            json({{"updatedCount", 0}, {"emptyRowCount", 1}}));
  // More than a batch of them.
  std::string rows = "id,name\n";
  for (int i = 0; i < 300; ++i) absl::StrAppend(&rows, "gone", i, ",\n");
  const json many = RunJson(update("many.csv", rows + "item4,blue\n"));
  EXPECT_EQ(many["updatedCount"], 1);
  EXPECT_EQ(many["emptyRowCount"], 300);
  // Rows are counted as in the file.
  EXPECT_THAT(Run(update("wrong.csv", rows + "item5,x\ngone,x\n")).err,
              HasSubstr("then: row 302: no item 'gone' in points"));
}

// As when a fit is repeated: attributes that it does not know stay.
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

  // A fit has no names, so an import that would remove them is refused.
  const std::vector<std::string> import = {"items", "import", "points",
                                           "--from", fit};
  const CommandResult refused = Run(import);
  EXPECT_EQ(refused.exit_status, 1);
  EXPECT_THAT(refused.err,
              AllOf(HasSubstr("replacing 'item1' would remove name, which no "
                              "file gives"),
                    HasSubstr("`attendant items update points --from " + fit +
                              "` keeps them, and --replace replaces")));
  EXPECT_EQ(item1()["attributes"]["name"]["stringValue"], "red");
  // Without stored names there is nothing to lose.
  RunText({"items", "update", "points", "item1", "--unset", "name"});
  EXPECT_EQ(Run(import).exit_status, 0);
  RunText({"items", "update", "points", "item1", "--set", "name=red"});
  std::vector<std::string> replace = import;
  replace.push_back("--replace");
  const CommandResult replaced = Run(replace);
  EXPECT_EQ(replaced.exit_status, 0) << replaced.err;
  EXPECT_FALSE(item1()["attributes"].contains("name"));
  for (const std::vector<std::string>& wrong :
       {std::vector<std::string>{"--ids", ids},
        {"item1", "--ids", ids, "--keys", "key=" + ids},
        {"item1", "--from", fit}}) {
    std::vector<std::string> update = {"items", "update", "points"};
    update.insert(update.end(), wrong.begin(), wrong.end());
    EXPECT_EQ(Run(update).exit_status, 2) << wrong[0];
  }
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

}  // namespace
}  // namespace attendant
