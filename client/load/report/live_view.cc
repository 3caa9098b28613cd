#include "client/load/report/live_view.h"

#include <unistd.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/format/terminal.h"
#include "client/format/text.h"

namespace attendant {
namespace {

constexpr std::size_t kTitleWidth = 9;
constexpr std::size_t kShownMessages = 3;
constexpr absl::Duration kSpan = absl::Seconds(1);
constexpr absl::Duration kLineEvery = absl::Seconds(5);

std::string FormatRate(std::int64_t count, absl::Duration span) {
  return FormatCount(static_cast<std::int64_t>(static_cast<double>(count) /
                                               absl::ToDoubleSeconds(span)));
}

// Appends lines of at most `width` columns with the parts side by side; parts
// that don't fit go to the next line.
void AppendParts(absl::string_view title, const std::vector<std::string>& parts,
                 int width, std::string& text) {
  std::string line(title);
  line.resize(kTitleWidth, ' ');
  bool is_first = true;  // the next part is the first of its line
  for (const std::string& part : parts) {
    if (!is_first && DisplayWidth(line) + 2 + DisplayWidth(part) > width) {
      absl::StrAppend(&text, Shorten(line, width), "\n");
      line.assign(kTitleWidth, ' ');
      is_first = true;
    }
    absl::StrAppend(&line, is_first ? "" : "  ", part);
    is_first = false;
  }
  absl::StrAppend(&text, Shorten(line, width), "\n");
}

// Appends the most frequent errors.
void AppendErrors(const LoadView& view, int width, std::string& text) {
  std::vector<std::pair<std::int64_t, std::string>> errors;
  for (const auto& [message, count] : view.error_counts) {
    errors.emplace_back(count, message);
  }
  std::sort(errors.rbegin(), errors.rend());
  if (errors.size() > kShownMessages) errors.resize(kShownMessages);
  for (const auto& [count, message] : errors) {
    AppendParts("error",
                {absl::StrCat(FormatCount(count), " x ", Printable(message))},
                width, text);
  }
}

}  // namespace

std::string FormatLiveView(const LoadView& view, const Tally& recent,
                           absl::Duration span, const LoadTime& time,
                           int width) {
  const std::string clock =
      absl::StrFormat(" %.1f of %.1f s%s", absl::ToDoubleSeconds(time.elapsed),
                      absl::ToDoubleSeconds(time.total),
                      time.elapsed < time.warmup           ? ", warming up"
                      : time.warmup > absl::ZeroDuration() ? " with warm-up"
                                                           : "");
  std::string text = LineWithBar(
      "", std::min(1.0, absl::FDivDuration(time.elapsed, time.total)), clock,
      width);
  text.push_back('\n');
  AppendParts("rate",
              {FormatRate(recent.answered_count(), span) + " answered/s",
               FormatRate(recent.failed_count(), span) + " failed/s",
               FormatCount(view.waiting_count) + " under way"},
              width, text);
  const LatencyHistogram& latencies = recent.latencies();
  AppendParts("latency",
              {"p50 " + FormatMs(latencies.AtPercentile(50)),
               "p90 " + FormatMs(latencies.AtPercentile(90)),
               "p99 " + FormatMs(latencies.AtPercentile(99)),
               "p99.9 " + FormatMs(latencies.AtPercentile(99.9)),
               "max " + FormatMs(latencies.max_ns()) + " ms"},
              width, text);
  AppendParts("all",
              {FormatCount(view.answered_count) + " answered",
               FormatCount(view.failed_count) + " failed"},
              width, text);
  AppendErrors(view, width, text);
  return text;
}

std::string FormatLiveLine(const LoadView& view, const Tally& recent,
                           absl::Duration span, const LoadTime& time) {
  return absl::StrFormat(
      "%.0f of %.0f s%s: %s answered/s, %s failed/s, p50 %s ms, p99 %s ms, %s "
      "under way",
      absl::ToDoubleSeconds(time.elapsed), absl::ToDoubleSeconds(time.total),
      time.warmup > absl::ZeroDuration() ? " with warm-up" : "",
      FormatRate(recent.answered_count(), span),
      FormatRate(recent.failed_count(), span),
      FormatMs(recent.latencies().AtPercentile(50)),
      FormatMs(recent.latencies().AtPercentile(99)),
      FormatCount(view.waiting_count));
}

LiveView::LiveView(std::FILE* stream, const LoadTime& time)
    : stream_(stream), is_terminal_(isatty(fileno(stream)) != 0), time_(time) {}

LiveView::~LiveView() { Clear(); }

void LiveView::Show(const LoadView& view, absl::Duration elapsed) {
  time_.elapsed = elapsed;
  if (!is_terminal_) {
    ShowLine(view);
    return;
  }
  looks_.push_back({elapsed, view.recent});
  while (looks_.front().elapsed + kSpan < elapsed) looks_.pop_front();
  Tally recent;
  for (const Look& look : looks_) recent.Merge(look.tally);
  const std::string text = FormatLiveView(
      view, recent, std::min(elapsed, kSpan), time_, DrawnWidth(stream_));
  Clear();
  std::fputs(text.c_str(), stream_);
  std::fflush(stream_);
  line_count_ = static_cast<int>(std::ranges::count(text, '\n'));
}

void LiveView::ShowLine(const LoadView& view) {
  since_line_.Merge(view.recent);
  if (time_.elapsed < line_end_ + kLineEvery) return;
  absl::FPrintF(
      stream_, "%s\n",
      FormatLiveLine(view, since_line_, time_.elapsed - line_end_, time_));
  line_end_ = time_.elapsed;
  since_line_.Clear();
}

void LiveView::Clear() {
  if (line_count_ == 0) return;
  absl::FPrintF(stream_, "\x1b[%dA\r\x1b[J", line_count_);
  std::fflush(stream_);
  line_count_ = 0;
}

}  // namespace attendant
