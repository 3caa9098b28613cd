// `attendant attend`, `contextualize` and `rank`.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/files/npy.h"
#include "tests/integration/points_fixture.h"

namespace attendant {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

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
  // Importing all items again would remove the attributes of two of them.
  EXPECT_THAT(ImportPoints(keys, ids).err,
              HasSubstr("replacing 'item3' would remove name"));
  const CommandResult refused =
      Run({"attend", "points", "--vector", "1,0", "--filter", "name ~ 'red'"});
  EXPECT_NE(refused.exit_status, 0);
  EXPECT_THAT(refused.err, HasSubstr("~ at position 6"));
}

TEST_F(AttendantCommandTest, AtMostSoManyItemsOfAValue) {
  StorePoints();
  ASSERT_EQ(Run({"items", "update", "points", "item39", "item38", "--set",
                 "name=red"})
                .exit_status,
            0);
  const json answer = RunJson({"attend", "points", "--vector", "1,0", "-k", "3",
                               "--max-per", "name=1"});
  ASSERT_EQ(answer["items"].size(), 3u);
  EXPECT_EQ(answer["items"][0]["id"], "item39");
  EXPECT_EQ(answer["items"][1]["id"], "item37");
  EXPECT_EQ(answer["items"][2]["id"], "item36");
  EXPECT_THAT(
      Run({"attend", "points", "--vector", "1,0", "--max-per", "brand=1"}).err,
      HasSubstr("got 'brand', want an attribute"));
}

TEST_F(AttendantCommandTest, AnEmptyAnswerNamesTheMasks) {
  StorePoints();
  EXPECT_THAT(Run({"attend", "points", "--vector", "1,0", "--filter",
                   "name = 'x'", "--deny", "item3"})
                  .out,
              HasSubstr("of 40 items, none with a key in \"key\" is left by "
                        "--filter and --deny.\n"));
}

TEST_F(AttendantCommandTest, ADecayTakesDaysAndATimestamp) {
  const CommandResult created =
      Run({"catalog", "create", "points", "--key-field", "key:2:dot",
           "--attribute", "minutes:int64", "--attribute", "listed:timestamp"});
  ASSERT_EQ(created.exit_status, 0) << created.err;
  ImportAll();
  ASSERT_EQ(
      Run({"items", "update", "points", "item39", "--set", "listed=2026-01-01"})
          .exit_status,
      0);
  // The logit is 39 - ln 2: the weight halved in 30 days.
  const json aged = RunJson({"attend", "points", "--vector", "1,0", "--decay",
                             "listed=30d", "--time", "2026-01-31"});
  double logit = 0;
  for (const json& item : aged["items"]) {
    if (item["id"] == "item39") logit = item["logit"];
  }
  EXPECT_NEAR(logit, 39 - std::log(2.0), 1e-4);
  EXPECT_THAT(Run({"attend", "points", "--vector", "1,0", "--bias",
                   "minutes=0.1", "--decay", "minutes=72h"})
                  .err,
              HasSubstr("--decay: got minutes, a number, want a timestamp; "
                        "--bias minutes=FACTOR adds a number\n"));
  EXPECT_THAT(
      Run({"attend", "points", "--vector", "1,0", "--bias", "listed"}).err,
      HasSubstr("--bias: got listed, a timestamp, want a number; --decay "
                "listed=HALF_LIFE takes a timestamp\n"));
}

TEST_F(AttendantCommandTest, ATextWithoutAnEncoderSaysWhatMakesOne) {
  StorePoints();
  EXPECT_THAT(Run({"attend", "points", "--text", "red"}).err,
              HasSubstr("has a text encoder; `attendant fit text` makes one"));
  EXPECT_THAT(
      Run({"attend", "points", "--text", "red", "--head", "key"}).err,
      HasSubstr("has no text encoder; leave out that --head, or use --like"));
}

TEST_F(AttendantCommandTest, AHistoryOfAllNamesTheFlagForOne) {
  StorePoints();
  std::string events = "customer_id,item_id,time\n";
  for (int i = 0; i < 4097; ++i) events += "7,item2,2011-01-01\n";
  EXPECT_THAT(Run({"rank", "points", "--candidate", "item4", "--history",
                   File("events.csv", events)})
                  .err,
              HasSubstr("; --customer ID takes the events of one customer"));
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
  // The heads use one field at two temperatures.
  const json twice = RunJson({"attend", "points", "--like", "item1", "--head",
                              "key=1", "--head", "key=9", "-k", "3"});
  EXPECT_EQ(twice["items"].size(), 3u);
  EXPECT_THAT(Run({"attend", "--help"}).out,
              Not(HasSubstr("each field at most once")));
}

TEST_F(AttendantCommandTest, ExplainsAnAnswer) {
  StorePoints();
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

// The output format does not change the request.
TEST_F(AttendantCommandTest, TextAndJsonAskTheSame) {
  StorePoints();
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

TEST_F(AttendantCommandTest, AnUnknownAttributeToShowIsNamedWithThoseThereAre) {
  StorePoints();
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
           {"--max-per", "name=0", "NAME=COUNT with a count of 1 or more"},
           {"--head", "=1", "FIELD, FIELD=TEMPERATURE, FIELD:WEIGHT"}}) {
    const CommandResult result =
        Run({"attend", "points", "--vector", "1,0", flag, value});
    EXPECT_EQ(result.exit_status, 2);
    EXPECT_THAT(result.err,
                HasSubstr(absl::StrCat("attendant: ", flag, ": got '", value,
                                       "', want ", want)));
  }
}

TEST_F(AttendantCommandTest, ContextualizesFilesAndItems) {
  const std::string tokens =
      File("tokens.npy", NpyBytes(std::vector<float>{10, 0, 0, 10, 9, 0}, 2));
  const json answer = RunJson({"contextualize", "--vectors", tokens, "--causal",
                               "--weights", "--score", "dot", "--pad", "2"});
  ASSERT_EQ(answer["outputs"].size(), 3u);
  EXPECT_EQ(answer["outputs"][0]["floats"]["values"], json({10, 0}));
  // Logits are 90 and 0; the token itself is masked.
  EXPECT_EQ(answer["outputs"][2]["floats"]["values"], json({10, 0}));
  EXPECT_EQ(answer["headWeights"][0]["weights"],
            json({1, 0, 0, 0, 1, 0, 1, 0, 0}));
  StorePoints();
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
  StorePoints();
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
  // Logits are 5 x 3 + 1 and 5 x 2 + 1.
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
