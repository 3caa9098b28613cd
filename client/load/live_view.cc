#include "client/load/live_view.h"

#include <unistd.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/format/text.h"

namespace attendant {
namespace {

constexpr int kBarWidth = 24;
constexpr int kLineWidth = 78;
constexpr std::size_t kShownMessages = 3;
constexpr absl::Duration kSpan = absl::Seconds(1);
constexpr absl::Duration kLineEvery = absl::Seconds(5);

std::string FormatRate(std::int64_t count, absl::Duration span) {
  return FormatCount(static_cast<std::int64_t>(static_cast<double>(count) /
                                               absl::ToDoubleSeconds(span)));
}

}  // namespace

std::string FormatLiveView(const LoadView& view, const Tally& recent,
                           absl::Duration span, const LoadTime& time) {
  const double done =
      std::min(1.0, absl::FDivDuration(time.elapsed, time.total));
  const std::string bar = Bar(done, kBarWidth);
  std::string text = absl::StrFormat(
      "%s%s %.1f of %.1f s%s\n", bar,
      std::string(static_cast<std::size_t>(kBarWidth - DisplayWidth(bar)), ' '),
      absl::ToDoubleSeconds(time.elapsed), absl::ToDoubleSeconds(time.total),
      time.elapsed < time.warmup ? ", warming up" : "");
  absl::StrAppend(&text, "rate     ", FormatRate(recent.answered_count(), span),
                  " answered/s  ", FormatRate(recent.failed_count(), span),
                  " failed/s  ", FormatCount(view.waiting_count),
                  " under way\n");
  const LatencyHistogram& latencies = recent.latencies();
  absl::StrAppend(&text, "latency  p50 ", FormatMs(latencies.AtPercentile(50)),
                  "  p90 ", FormatMs(latencies.AtPercentile(90)), "  p99 ",
                  FormatMs(latencies.AtPercentile(99)), "  p99.9 ",
                  FormatMs(latencies.AtPercentile(99.9)), "  max ",
                  FormatMs(latencies.max_ns()), " ms\n");
  absl::StrAppend(&text, "all      ", FormatCount(view.answered_count),
                  " answered  ", FormatCount(view.failed_count), " failed\n");
  std::vector<std::pair<std::int64_t, std::string>> errors;
  for (const auto& [message, count] : view.error_counts) {
    errors.emplace_back(count, message);
  }
  std::sort(errors.rbegin(), errors.rend());
  if (errors.size() > kShownMessages) errors.resize(kShownMessages);
  for (const auto& [count, message] : errors) {
    absl::StrAppend(
        &text,
        Shorten(absl::StrCat("error    ", FormatCount(count), " x ", message),
                kLineWidth),
        "\n");
  }
  return text;
}

std::string FormatLiveLine(const LoadView& view, const Tally& recent,
                           absl::Duration span, const LoadTime& time) {
  return absl::StrFormat(
      "%.0f of %.0f s: %s answered/s, %s failed/s, p50 %s ms, p99 %s ms, %s "
      "under way",
      absl::ToDoubleSeconds(time.elapsed), absl::ToDoubleSeconds(time.total),
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
  const std::string text =
      FormatLiveView(view, recent, std::min(elapsed, kSpan), time_);
  Clear();
  std::fputs(text.c_str(), stream_);
  std::fflush(stream_);
  line_count_ = static_cast<int>(std::count(text.begin(), text.end(), '\n'));
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
