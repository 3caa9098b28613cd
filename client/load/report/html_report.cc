#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "absl/time/time.h"
#include "client/format/markup.h"
#include "client/load/report/report.h"
#include "client/load/report/svg_plot.h"

namespace attendant {
namespace {

constexpr char kStyle[] = R"(<style>
:root { color-scheme: light dark; --grid: #8884; --series0: #0b62c4;
  --series1: #c2560a; --series2: #12805c; --series3: #9a3fb5; }
@media (prefers-color-scheme: dark) { :root { --series0: #6fb1ff;
  --series1: #ffa25e; --series2: #54d6a5; --series3: #dd92f2; } }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 60rem;
  margin: 2rem auto; padding: 0 1rem; }
pre { font: 13px/1.45 ui-monospace, monospace; overflow-x: auto; }
svg { width: 100%; height: auto; font: 11px system-ui, sans-serif;
  fill: currentColor; }
.grid { stroke: var(--grid); }
polyline { fill: none; stroke: currentColor; stroke-width: 1.5; }
.series0 { color: var(--series0); fill: var(--series0); }
.series1 { color: var(--series1); fill: var(--series1); }
.series2 { color: var(--series2); fill: var(--series2); }
.series3 { color: var(--series3); fill: var(--series3); }
</style>
)";

using OfMoment = std::int64_t Moment::*;

PlotSeries MomentSeries(const LoadResult& result, const char* name,
                        OfMoment of) {
  PlotSeries series{name, {}};
  for (const Moment& moment : result.moments) {
    if (moment.answered_count == 0) continue;
    series.points.emplace_back(absl::ToDoubleSeconds(moment.end),
                               ToMs(moment.*of));
  }
  return series;
}

PlotSeries RateSeries(const LoadResult& result, const char* name, OfMoment of) {
  PlotSeries series{name, {}};
  for (const Moment& moment : result.moments) {
    series.points.emplace_back(absl::ToDoubleSeconds(moment.end),
                               static_cast<double>(moment.*of) /
                                   absl::ToDoubleSeconds(moment.duration));
  }
  return series;
}

std::string LatencyOverTime(const LoadResult& result) {
  return DrawPlot({{.title = "seconds, warm-up included"},
                   {.title = "latency, ms", .logarithmic = true},
                   {MomentSeries(result, "p50", &Moment::p50_ns),
                    MomentSeries(result, "p90", &Moment::p90_ns),
                    MomentSeries(result, "p99", &Moment::p99_ns),
                    MomentSeries(result, "max", &Moment::max_ns)}});
}

std::string RateOverTime(const LoadResult& result) {
  return DrawPlot({{.title = "seconds, warm-up included"},
                   {.title = "a second"},
                   {RateSeries(result, "answered", &Moment::answered_count),
                    RateSeries(result, "failed", &Moment::failed_count)}});
}

// Plots latency against the share of slower answers on a logarithmic axis, so
// that 90, 99 and 99.9 % are evenly spaced.
std::string PercentileCurve(const LoadResult& result) {
  PlotSeries series{"latency", {}};
  const LatencyHistogram& latencies = result.total.latencies();
  // The slowest answer out of `one_in`, up to the number of answers.
  for (double one_in = 1; one_in <= static_cast<double>(latencies.count());
       one_in *= 1.25) {
    series.points.emplace_back(
        one_in, ToMs(latencies.AtPercentile(100 - 99.9999 / one_in)));
  }
  return DrawPlot({{.title = "percentile",
                    .logarithmic = true,
                    .format =
                        [](double one_in) {
                          return absl::StrFormat("%.6g", 100 - 100 / one_in);
                        }},
                   {.title = "latency, ms"},
                   {std::move(series)}});
}

std::string RateAgainstLatency(const LoadResult& result) {
  PlotSeries p50{"p50", {}};
  PlotSeries p99{"p99", {}};
  for (const SliceResult& slice : result.slices) {
    const LatencyHistogram& latencies = slice.tally.latencies();
    if (latencies.count() == 0) continue;
    p50.points.emplace_back(slice.rate, ToMs(latencies.AtPercentile(50)));
    p99.points.emplace_back(slice.rate, ToMs(latencies.AtPercentile(99)));
  }
  return DrawPlot({{.title = "requests due a second"},
                   {.title = "latency, ms", .logarithmic = true},
                   {std::move(p50), std::move(p99)}});
}

std::string AnsweredAgainstDue(const LoadResult& result) {
  PlotSeries answered{"answered", {}};
  PlotSeries due{"due", {}};
  for (const SliceResult& slice : result.slices) {
    answered.points.emplace_back(slice.rate, slice.answers_per_second());
    due.points.emplace_back(slice.rate, slice.rate);
  }
  return DrawPlot({{.title = "requests due a second"},
                   {.title = "a second"},
                   {std::move(answered), std::move(due)}});
}

// Returns the version, the time and the options in a line.
std::string Subject(const LoadReport& report) {
  std::string text = absl::StrCat(
      "Version " ATTENDANT_VERSION ", ",
      absl::FormatTime("%Y-%m-%dT%H:%M:%SZ", report.date, absl::UTCTimeZone()));
  for (const auto& [name, value] : report.options.items()) {
    absl::StrAppend(
        &text, ", ", name, " ",
        value.is_string() ? value.get<std::string>() : value.dump());
  }
  return text;
}

void AddSection(const char* title, const std::string& content,
                std::string& page) {
  absl::StrAppend(&page, "<h2>", title, "</h2>\n", content);
}

}  // namespace

std::string HtmlReport(const LoadReport& report) {
  std::string page = absl::StrCat(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width\">\n"
      "<title>attendant-load</title>\n",
      kStyle, "</head>\n<body>\n<h1>attendant-load</h1>\n<p>",
      EscapeMarkup(Subject(report)), "</p>\n<pre>",
      // Not EscapeMarkup, which would replace line breaks.
      absl::StrReplaceAll(TextReport(report),
                          {{"&", "&amp;"}, {"<", "&lt;"}, {">", "&gt;"}}),
      "</pre>\n");
  AddSection("Latency over time", LatencyOverTime(report.result), page);
  AddSection("Rate over time", RateOverTime(report.result), page);
  AddSection("Percentiles", PercentileCurve(report.result), page);
  if (report.result.slices.size() > 1) {
    AddSection("Rate against latency", RateAgainstLatency(report.result), page);
    AddSection("Answered of what was due", AnsweredAgainstDue(report.result),
               page);
  }
  // Keeps a text that contains "</script>" from ending the element.
  const std::string json =
      absl::StrReplaceAll(JsonReport(report), {{"<", "\\u003c"}});
  absl::StrAppend(&page, "<script type=\"application/json\" id=\"report\">\n",
                  json, "</script>\n</body>\n</html>\n");
  return page;
}

}  // namespace attendant
