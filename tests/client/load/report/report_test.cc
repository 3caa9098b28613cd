#include "client/load/report/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "client/format/text.h"
#include "client/load/report/live_view.h"
#include "client/load/report/svg_plot.h"
#include "client/load/send/verify.h"
#include "tests/support/pseudo_terminal.h"

namespace attendant {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;
using ::testing::UnorderedElementsAre;

// Returns a tally of answers that took 1, 2, ... ms.
Tally TallyOf(std::int64_t answered, std::int64_t aborted) {
  Tally tally;
  for (std::int64_t i = 1; i <= answered; ++i) {
    tally.Add(absl::StatusCode::kOk, i * 1'000'000);
  }
  for (std::int64_t i = 0; i < aborted; ++i) {
    tally.Add(absl::StatusCode::kAborted, 0);
  }
  return tally;
}

LoadReport ClosedLoop() {
  LoadReport report;
  report.result.duration = absl::Seconds(2);
  report.result.total = TallyOf(100, 1);
  report.result.error_counts = {{"broken \xff <b>", 1}};
  report.result.moments.push_back({.end = absl::Seconds(1),
                                   .duration = absl::Seconds(1),
                                   .answered_count = 50,
                                   .p50_ns = 4'321'000,
                                   .p90_ns = 5'000'000,
                                   .p99_ns = 6'000'000,
                                   .max_ns = 7'000'000});
  report.date = absl::FromUnixSeconds(1767225600);
  report.options = {{"catalog", "bench"}, {"concurrency", 4}};
  return report;
}

LoadReport Steps() {
  LoadReport report = ClosedLoop();
  report.rate = 50;
  report.result.slices = {{40, absl::Seconds(1), TallyOf(40, 0), 38},
                          {60, absl::Seconds(1), TallyOf(50, 10), 52}};
  report.result.kinds = {{"attend", TallyOf(90, 0)}, {"write", TallyOf(10, 1)}};
  report.result.lateness.Add(5'000'000);
  report.result.late_count = 1;
  return report;
}

TEST(JsonReportTest, CarriesWhatGhzReports) {
  const auto json = nlohmann::json::parse(JsonReport(ClosedLoop()));
  EXPECT_EQ(json["date"], "2026-01-01T00:00:00+00:00");
  EXPECT_EQ(json["version"], ATTENDANT_VERSION);
  EXPECT_EQ(json["count"], 101);
  EXPECT_EQ(json["total"], 2'000'000'000);
  EXPECT_EQ(json["average"], 50'500'000);
  EXPECT_EQ(json["fastest"], 1'000'000);
  EXPECT_EQ(json["slowest"], 100'000'000);
  EXPECT_EQ(json["rps"], 50.5);
  EXPECT_EQ(json["statusCodeDistribution"]["OK"], 100);
  EXPECT_EQ(json["statusCodeDistribution"]["Aborted"], 1);
  EXPECT_EQ(json["errorDistribution"].size(), 1u);
  std::vector<double> percentages;
  for (const auto& entry : json["latencyDistribution"]) {
    percentages.push_back(entry["percentage"]);
    // ghz reads integers, except for percentages that it does not know.
    EXPECT_EQ(entry["percentage"].is_number_integer(),
              percentages.back() <= 99);
    EXPECT_NEAR(entry["latency"].get<double>(),
                std::max(1., percentages.back()) * 1e6, 1.1e6);
  }
  EXPECT_THAT(percentages,
              ElementsAre(10, 25, 50, 75, 90, 95, 99, 99.9, 99.99));
  EXPECT_EQ(json["options"]["concurrency"], 4);
  EXPECT_EQ(json["moments"][0]["p50"], 4'321'000);
  EXPECT_FALSE(json.contains("openLoop"));
  EXPECT_FALSE(json.contains("verify"));
}

TEST(TextReportTest, SaysThatMoreConnectionsWereNeeded) {
  LoadReport report = ClosedLoop();
  EXPECT_THAT(TextReport(report), Not(HasSubstr("connections")));
  report.more_connection_count = 3;
  EXPECT_THAT(TextReport(report),
              HasSubstr("\nconnections  3 more than asked for"));
  EXPECT_EQ(ToJson(report)["moreConnections"], 3);
}

TEST(TextReportTest, SaysHowManyTimedOut) {
  LoadReport report = ClosedLoop();
  EXPECT_THAT(TextReport(report), Not(HasSubstr("timed out")));
  for (int i = 0; i < 1234; ++i) {
    report.result.total.Add(absl::StatusCode::kDeadlineExceeded, 1);
  }
  EXPECT_THAT(TextReport(report),
              HasSubstr("\ntimed out    1,234, which the latencies "));
}

TEST(JsonReportTest, CodesAreSpeltAsGhzSpellsThem) {
  LoadReport report;
  report.result.duration = absl::Seconds(1);
  for (int code = 0; code <= 16; ++code) {
    report.result.total.Add(static_cast<absl::StatusCode>(code), 1);
  }
  const auto json = nlohmann::json::parse(JsonReport(report));
  std::vector<std::string> names;
  for (const auto& [name, count] : json["statusCodeDistribution"].items()) {
    names.push_back(name);
  }
  EXPECT_THAT(
      names,
      UnorderedElementsAre(
          "OK", "Canceled", "Unknown", "InvalidArgument", "DeadlineExceeded",
          "NotFound", "AlreadyExists", "PermissionDenied", "ResourceExhausted",
          "FailedPrecondition", "Aborted", "OutOfRange", "Unimplemented",
          "Internal", "Unavailable", "DataLoss", "Unauthenticated"));
}

TEST(JsonReportTest, AnOpenLoopSaysWhatBecameOfEachSliceAndKind) {
  LoadReport report = Steps();
  report.verify = VerifyResult{.query_count = 10,
                               .under_load_count = 8,
                               .mean_recall = 0.97,
                               .min_recall = 0.5,
                               .max_logit_difference = 0.25,
                               .max_weight_difference = 0.125};
  report.writes = WriterResult{.duration = absl::Seconds(2),
                               .due_count = 10,
                               .sent_count = 9,
                               .stored_count = 8,
                               .refused_count = 1,
                               .first_refusal = absl::NotFoundError("no k"),
                               .status = absl::OkStatus()};
  const auto json = nlohmann::json::parse(JsonReport(report));
  EXPECT_EQ(json["openLoop"]["rate"], 50);
  EXPECT_EQ(json["openLoop"]["sent"], 101);
  EXPECT_EQ(json["openLoop"]["answered"], 100);
  EXPECT_EQ(json["openLoop"]["late"], 1);
  EXPECT_EQ(json["openLoop"]["latest"], 5'000'000);
  ASSERT_EQ(json["slices"].size(), 2u);
  EXPECT_EQ(json["slices"][1]["rate"], 60);
  EXPECT_EQ(json["slices"][1]["answersPerSecond"], 52);
  EXPECT_EQ(json["kinds"]["write"]["answersPerSecond"], 5);
  EXPECT_EQ(json["slices"][1]["count"], 60);
  EXPECT_EQ(json["kinds"]["write"]["statusCodeDistribution"]["Aborted"], 1);
  EXPECT_EQ(json["verify"]["recall"], 0.97);
  EXPECT_EQ(json["verify"]["underLoad"], 8);
  EXPECT_EQ(json["verify"]["maxWeightDifference"], 0.125);
  EXPECT_EQ(json["verify"]["failed"], 0);
  EXPECT_EQ(json["writes"]["storedPerSecond"], 4);
  EXPECT_EQ(json["writes"]["firstRefusal"], "no k");
  EXPECT_THAT(TextReport(report), HasSubstr("1 refused, the first: no k\n"));
}

TEST(TextReportTest, HasASummaryAndThePercentiles) {
  const std::string text = TextReport(ClosedLoop());
  EXPECT_THAT(
      text, AllOf(HasSubstr("closed loop: 101 requests in 2.0 s, 51 a second"),
                  HasSubstr("OK 100 ABORTED 1"), HasSubstr("99.99"),
                  HasSubstr("percentile       ms  slower answers\n"),
                  HasSubstr("100.000"), HasSubstr("1 x broken")));
}

TEST(TextReportTest, WithoutAnAnswerThereIsNoLatency) {
  LoadReport report = Steps();
  report.result.total = TallyOf(0, 1234);
  for (auto& [kind, tally] : report.result.kinds) tally = TallyOf(0, 617);
  for (SliceResult& slice : report.result.slices) slice.tally = TallyOf(0, 617);
  EXPECT_THAT(
      TextReport(report),
      AllOf(HasSubstr("latency ms   no answers\n"),
            HasSubstr("status       ABORTED 1,234\n"), HasSubstr(" 617 "),
            Not(HasSubstr("0.000")), Not(HasSubstr("percentile"))));
}

TEST(TextReportTest, SaysHowManyChecksFailedAndWhyTheFirstDid) {
  LoadReport report = ClosedLoop();
  report.verify.emplace();
  report.verify->AddFailure(absl::ResourceExhaustedError("no room"));
  report.verify->AddFailure(absl::UnavailableError("gone"));
  EXPECT_THAT(
      TextReport(report),
      AllOf(HasSubstr("not verified 2 answers, whose checks failed, the "
                      "first: no room\n"),
            Not(HasSubstr("recall"))));
  const auto json = nlohmann::json::parse(JsonReport(report))["verify"];
  EXPECT_EQ(json["failed"], 2);
  EXPECT_EQ(json["error"], "no room");
  EXPECT_FALSE(json.contains("recall"));
  EXPECT_THAT(HtmlReport(report), HasSubstr("whose checks failed"));
}

TEST(TextReportTest, SaysWhatBecameOfTheItemsThatWereWritten) {
  LoadReport report = ClosedLoop();
  EXPECT_THAT(TextReport(report), Not(HasSubstr("deleted")));
  report.cleanup = {12, absl::OkStatus(), "attendant items delete"};
  EXPECT_THAT(TextReport(report),
              HasSubstr("deleted      12 items that the load wrote\n"));
  report.cleanup->status = absl::UnavailableError("gone");
  EXPECT_THAT(
      TextReport(report),
      AllOf(
          HasSubstr("left behind  items that the load may have written: gone"),
          HasSubstr("to delete them: attendant items delete\n"),
          Not(HasSubstr("12"))));
  EXPECT_EQ(nlohmann::json::parse(JsonReport(report))["cleanup"]["error"],
            "gone");
}

TEST(TextReportTest, AnOpenLoopHasARowForEachKindAndSlice) {
  const std::string text = TextReport(Steps());
  EXPECT_THAT(text,
              AllOf(HasSubstr("open loop at 50 a second: 101 sent in 2.0 s, "
                              "51 a second reached; "
                              "100 answered, 0 refused, 1 failed otherwise"),
                    HasSubstr("1 sent over 1 ms late"), HasSubstr("write"),
                    HasSubstr("rate"), HasSubstr("60")));
}

TEST(TextReportTest, SaysHowSoonRefusalsCame) {
  LoadReport report = Steps();
  EXPECT_THAT(TextReport(report), Not(HasSubstr("refused ms")));
  // Other failures don't count as refusals.
  report.result.total.Add(absl::StatusCode::kResourceExhausted, 3'000'000);
  report.result.total.Add(absl::StatusCode::kUnavailable, 5'000'000);
  report.result.total.Add(absl::StatusCode::kAborted, 9'000'000);
  EXPECT_THAT(TextReport(report), HasSubstr("p99 5.000, at most 5.000\n"));
  const auto json = nlohmann::json::parse(JsonReport(report));
  EXPECT_EQ(json["openLoop"]["refused"], 2);
  EXPECT_EQ(json["openLoop"]["refusedP99"], 5'000'000);
  EXPECT_EQ(json["slowest"], 100'000'000);
}

TEST(HtmlReportTest, HoldsTheDataAndNeedsNothingElse) {
  const std::string page = HtmlReport(Steps());
  for (const char* title :
       {"Latency over time", "Percentiles", "Rate against latency"}) {
    EXPECT_THAT(page, HasSubstr(title));
  }
  EXPECT_THAT(page, AllOf(HasSubstr("<svg"), HasSubstr("p50: 1, 4.321"),
                          HasSubstr("latency: 98.8")));
  EXPECT_THAT(page, HasSubstr("<p>Version " ATTENDANT_VERSION
                              ", 2026-01-01T00:00:00Z, catalog bench, "
                              "concurrency 4</p>"));
  // The page loads nothing, and messages are not markup.
  EXPECT_THAT(page, AllOf(Not(HasSubstr(" src=")), Not(HasSubstr(" href=")),
                          Not(HasSubstr("<b>"))));
  const std::string begin = "id=\"report\">";
  const std::size_t from = page.find(begin) + begin.size();
  const auto json = nlohmann::json::parse(
      page.substr(from, page.find("</script>", from) - from));
  EXPECT_EQ(json["count"], 101);
  EXPECT_EQ(json["slices"].size(), 2u);
}

TEST(HtmlReportTest, OneRateIsNotPlottedAgainstLatency) {
  EXPECT_THAT(HtmlReport(ClosedLoop()), Not(HasSubstr("Rate against")));
}

TEST(SvgPlotTest, TicksAreRoundAndHoldTheRange) {
  EXPECT_THAT(RoundTicks(0, 10), ElementsAre(0, 2, 4, 6, 8, 10));
  EXPECT_THAT(RoundTicks(0, 101), ElementsAre(0, 20, 40, 60, 80, 100, 120));
  EXPECT_THAT(RoundTicks(0, 0.3).back(), ::testing::DoubleNear(0.3, 1e-12));
}

TEST(SvgPlotTest, PointsLieWhereTheirValuesAre) {
  const std::string svg = DrawPlot(
      {{.title = "x"}, {.title = "y"}, {{"line", {{0, 0}, {10, 10}}}}});
  EXPECT_THAT(svg, HasSubstr("points=\"70.0,255.0 740.0,30.0\""));
  EXPECT_THAT(svg, HasSubstr("<title>line: 10, 10</title>"));
}

TEST(SvgPlotTest, ALogarithmicAxisHasAPowerOfTenAStep) {
  const std::string svg = DrawPlot({{.title = "x"},
                                    {.title = "y", .logarithmic = true},
                                    {{"line", {{0, 0}, {5, 1}, {10, 100}}}}});
  // A logarithmic axis has no place for 0; 1 is at the bottom.
  EXPECT_THAT(svg, HasSubstr("points=\"405.0,255.0 740.0,"));
  EXPECT_THAT(DrawPlot({{.title = "x"}, {.title = "y"}, {{"none", {}}}}),
              HasSubstr("points=\"\""));
}

TEST(SvgPlotTest, TextIsNoMarkup) {
  EXPECT_THAT(DrawPlot({{.title = "<a>"}, {.title = "y"}, {{"&", {}}}}),
              AllOf(HasSubstr(">&lt;a&gt;</text>"), HasSubstr(">&amp;<")));
}

TEST(LiveViewTest, ShowsRateLatenciesAndErrors) {
  LoadView view;
  view.answered_count = 12345;
  view.failed_count = 3;
  view.waiting_count = 16;
  view.error_counts = {{"no room", 2}, {"gone", 1}};
  const std::string text =
      FormatLiveView(view, TallyOf(500, 2), absl::Milliseconds(500),
                     {.elapsed = absl::Seconds(3),
                      .warmup = absl::Seconds(1),
                      .total = absl::Seconds(11)},
                     79);
  EXPECT_THAT(text, AllOf(HasSubstr("3.0 of 11.0 s with warm-up\n"),
                          HasSubstr("1,000 answered/s  4 failed/s  16 under"),
                          HasSubstr("p50 250."), HasSubstr("12,345 answered"),
                          HasSubstr("2 x no room\n")));
  EXPECT_LT(text.find("no room"), text.find("gone"));
  EXPECT_THAT(FormatLiveView(view, Tally(), absl::Seconds(1),
                             {.elapsed = absl::Seconds(0.5),
                              .warmup = absl::Seconds(1),
                              .total = absl::Seconds(11)},
                             79),
              HasSubstr("warming up"));
  const std::string line =
      FormatLiveLine(view, TallyOf(500, 2), absl::Seconds(5),
                     {.elapsed = absl::Seconds(10),
                      .warmup = absl::Seconds(1),
                      .total = absl::Seconds(61)});
  EXPECT_THAT(line, HasSubstr("10 of 61 s with warm-up: 100 answered/s, 0 "
                              "failed/s, p50 "));
  EXPECT_THAT(line, HasSubstr(" ms, 16 under way"));
}

// A second in which every answer took 12,345.678 ms and many requests failed.
LoadView BusyView() {
  LoadView view;
  for (int i = 0; i < 1000; ++i) {
    view.recent.Add(absl::StatusCode::kOk, 12'345'678'000);
  }
  view.answered_count = 1'234'567'890;
  view.failed_count = 123'456'789;
  view.waiting_count = 1'234'567;
  view.error_counts = {{std::string(200, 'x'), 123'456'789}, {"a\nb", 1}};
  return view;
}

std::vector<std::string> LinesOf(absl::string_view text) {
  return absl::StrSplit(text, absl::ByAnyChar("\r\n"), absl::SkipEmpty());
}

TEST(LiveViewTest, NoLineIsWiderThanItsTerminal) {
  const LoadView view = BusyView();
  for (const int width : {79, 59}) {
    const std::string text = FormatLiveView(
        view, view.recent, absl::Milliseconds(1),
        {.elapsed = absl::Seconds(3), .total = absl::Seconds(86400)}, width);
    for (const std::string& line : LinesOf(text)) {
      EXPECT_LE(DisplayWidth(line), width) << line;
    }
    // All latencies are shown.
    EXPECT_THAT(text,
                AllOf(HasSubstr("p50 12345.6"), HasSubstr("p99.9 12345"),
                      HasSubstr("max 12345.678 ms\n"), HasSubstr("1 x a b\n")));
  }
}

TEST(LiveViewTest, TakesAwayAsManyLinesAsItDrew) {
  PseudoTerminal terminal(60);
  if (terminal.stream() == nullptr) GTEST_SKIP() << "no terminals here";
  LiveView live(terminal.stream(), {.total = absl::Seconds(86400)});
  live.Show(BusyView(), absl::Seconds(3));
  const std::vector<std::string> lines = LinesOf(terminal.Drawn());
  for (const std::string& line : lines) EXPECT_LT(DisplayWidth(line), 60);
  live.Show(BusyView(), absl::Seconds(4));
  EXPECT_THAT(terminal.Drawn(),
              StartsWith(absl::StrCat("\x1b[", lines.size(), "A\r\x1b[J")));
}

}  // namespace
}  // namespace attendant
