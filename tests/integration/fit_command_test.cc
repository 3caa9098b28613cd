// `attendant fit`, and catalogs made from its output.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/integration/binaries.h"
#include "tests/integration/points_fixture.h"

namespace attendant {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

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
  ImportAll();
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
  // Vectors do not determine how examples combine.
  EXPECT_EQ(told["previousCombineKind"], "COMBINE_KIND_UNIT");
  EXPECT_EQ(told["combineKind"], "COMBINE_KIND_UNIT");
  EXPECT_EQ(told["scoreKind"], "SCORE_KIND_DOT");
  EXPECT_EQ(told["dryRun"], true);
  // The combine kind is not mentioned and does not change.
  EXPECT_THAT(RunText(dry), Not(HasSubstr(" -> unit")));
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
  ImportAll();
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
  // The catalog as a word, as other commands take it.
  const CommandResult by_word =
      Run({"fit", "temperature", "points", "--pairs", fit.back()});
  EXPECT_EQ(by_word.exit_status, 1);
  EXPECT_EQ(by_word.err, refused.err);
  EXPECT_EQ(Run({"fit", "temperature", "--pairs", fit.back()}).exit_status, 2);
  const CommandResult csv = Run({"fit", "temperature", "points", "--pairs",
                                 File("pairs.csv", "item,example\na,b\n")});
  EXPECT_EQ(csv.exit_status, 1);
  EXPECT_THAT(
      csv.err,
      HasSubstr("pairs.csv: line 1: not a JSON object; a line is as "
                "{\"examples\": [\"ID\", ...], \"item\": \"ID\"} or {"));
  fit.push_back("--dry-run");
  EXPECT_THAT(RunText(fit),
              HasSubstr("; on only 1 known choice, as good as a guess among "));
  fit.insert(fit.end(), {"--field", "kee"});
  EXPECT_THAT(Run(fit).err, HasSubstr("--field: the catalog has no key field "
                                      "'kee'; it has: key"));
}

// Items may be removed while choices are kept.
TEST_F(AttendantCommandTest, ChoicesOfItemsThatAreGoneAreLeftOut) {
  ASSERT_EQ(Run({"catalog", "create", "points", "--key-field", "key:2:dot"})
                .exit_status,
            0);
  ImportAll();
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
                              HasSubstr("no key of 'gone', for example")));
  const CommandResult none =
      fit("{\"examples\": [\"item1\"], \"item\": \"gone\"}\n");
  EXPECT_EQ(none.exit_status, 1);
  EXPECT_THAT(none.err, AllOf(HasSubstr("got 1 pair, none of items"),
                              HasSubstr("there is no 'gone'")));
}

TEST_F(AttendantCommandTest, AMissingColumnIsNamed) {
  const std::string events =
      File("events.csv", "customer_id,product\nc1,a\nc1,b\n");
  const CommandResult result =
      Run({"fit", "lsi", events, "--out", files_ / "fit"});
  EXPECT_EQ(result.exit_status, 1);
  EXPECT_THAT(result.err, AllOf(HasSubstr(events), HasSubstr("item_id")));
  EXPECT_THAT(Run({"fit", "text", events, "--columns", "product", "--out",
                   files_ / "fit"})
                  .err,
              HasSubstr("the columns are customer_id, product (--id-column "
                        "names another)"));
}

TEST_F(AttendantCommandTest, AFitSaysWhyItHasFewerDimensions) {
  const std::string items =
      File("items.csv", "item_id,name\na,RED CLOCK\nb,RED BAG\n");
  const std::string fit = files_ / "fit";
  EXPECT_THAT(
      RunText({"fit", "text", items, "--columns", "name", "--out", fit}),
      HasSubstr("Wrote 2 keys of 2 dimensions for field text to " + fit +
                ".\nThe data have only 2 independent dimensions, so "
                "--dim 128 gives no more.\n"));
  EXPECT_THAT(RunText({"fit", "text", items, "--columns", "name", "--dim", "2",
                       "--out", fit}),
              Not(HasSubstr("independent")));
}

// The worked example, starting from the events file: its singular values and,
// through the server, the weights of its films.
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
  // Keys and logits are below 4, in binary32.
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
  // Repeating the fit causes no warning; sharper attention does.
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
  // Both alarm clocks rank before the bell.
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
  // --from alone changes no defaults.
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
  const std::string other = files_ / "other";
  RunJson({"fit", "text", items, "--columns", "name", "--dim", "1", "--out",
           other});
  EXPECT_THAT(
      Run({"catalog", "update", "texts", "title", "--from", other}).err,
      HasSubstr(other + ": the text encoder has 1 dimensions, want 2 as the "
                        "field title has"));
  const CommandResult refused =
      Run({"catalog", "update", "texts", "title", "--from", lsi});
  EXPECT_EQ(refused.exit_status, 1);
  EXPECT_THAT(refused.err, HasSubstr("got a fit of events, want one of text"));
}

// Names in Latin-1, as an old system may write them.
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

}  // namespace
}  // namespace attendant
