#include "client/format/progress.h"

#include <unistd.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/format/terminal.h"
#include "client/format/text.h"

namespace attendant {
namespace {

constexpr absl::Duration kRedraw = absl::Milliseconds(100);
constexpr absl::Duration kLineEvery = absl::Seconds(5);

double DoneShare(const ProgressState& state) {
  return state.total_count == 0 ? 1
                                : static_cast<double>(state.done_count) /
                                      static_cast<double>(state.total_count);
}

// Returns the counts, share, rate and time left.
std::string CountsAndRate(const ProgressState& state) {
  std::string text = absl::StrCat(
      "  ", FormatCount(state.done_count), " of ",
      FormatCount(state.total_count),
      absl::StrFormat("  %d %%", static_cast<int>(100 * DoneShare(state))));
  const double seconds = absl::ToDoubleSeconds(state.elapsed);
  if (seconds <= 0 || state.done_count == 0) return text;
  const double rate = static_cast<double>(state.done_count) / seconds;
  const double left =
      static_cast<double>(state.total_count - state.done_count) / rate;
  absl::StrAppend(
      &text, "  ", FormatCount(static_cast<std::int64_t>(rate)), "/s  ",
      absl::FormatDuration(absl::Ceil(absl::Seconds(left), absl::Seconds(1))),
      " left");
  return text;
}

}  // namespace

std::string FormatProgress(const std::string& label,
                           const ProgressState& state) {
  return label + CountsAndRate(state);
}

std::string FormatProgressBar(const std::string& label,
                              const ProgressState& state, int width) {
  return LineWithBar(label + " ", DoneShare(state), CountsAndRate(state),
                     width);
}

Progress::Progress(std::FILE* stream, std::string label,
                   std::int64_t total_count)
    : stream_(stream),
      label_(std::move(label)),
      total_count_(total_count),
      is_terminal_(isatty(fileno(stream)) != 0),
      start_(SteadyNow()),
      next_draw_(SteadyAfter(is_terminal_ ? kRedraw : kLineEvery)) {}

Progress::~Progress() { Clear(); }

void Progress::Update(std::int64_t done_count) {
  if (SteadyNow() < next_draw_) return;
  next_draw_ = SteadyAfter(is_terminal_ ? kRedraw : kLineEvery);
  const ProgressState state = {
      .done_count = done_count,
      .total_count = total_count_,
      .elapsed = elapsed(),
  };
  if (is_terminal_) {
    absl::FPrintF(stream_, "\r%s\x1b[K",
                  FormatProgressBar(label_, state, DrawnWidth(stream_)));
    drawn_ = true;
  } else {
    absl::FPrintF(stream_, "%s\n", FormatProgress(label_, state));
  }
  std::fflush(stream_);
}

void Progress::Clear() {
  if (!drawn_) return;
  absl::FPrintF(stream_, "\r\x1b[K");
  std::fflush(stream_);
  drawn_ = false;
}

absl::Duration Progress::elapsed() const { return TimeSince(start_); }

}  // namespace attendant
