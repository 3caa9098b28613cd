// Shows a load while it runs.
#ifndef ATTENDANT_CLIENT_LOAD_REPORT_LIVE_VIEW_H_
#define ATTENDANT_CLIENT_LOAD_REPORT_LIVE_VIEW_H_

#include <cstdio>
#include <deque>
#include <string>

#include "absl/time/time.h"
#include "client/load/results/load_result.h"
#include "client/load/send/recorder.h"

namespace attendant {

// The progress of a load in time.
struct LoadTime {
  absl::Duration elapsed = absl::ZeroDuration();
  absl::Duration warmup = absl::ZeroDuration();
  absl::Duration total = absl::ZeroDuration();  // including the warm-up
};

// Shows the rate, latencies and errors of the last second and the progress of
// the load. Redraws on a terminal; writes a line every five seconds to another
// stream. Not thread-safe.
class LiveView {
 public:
  LiveView(std::FILE* stream, const LoadTime& time);
  // Erases what was drawn.
  ~LiveView();
  LiveView(const LiveView&) = delete;
  LiveView& operator=(const LiveView&) = delete;

  void Show(const LoadView& view, absl::Duration elapsed);

 private:
  void Clear();
  void ShowLine(const LoadView& view);

  std::FILE* const stream_;
  const bool is_terminal_;
  LoadTime time_;
  struct Look {
    absl::Duration elapsed;
    Tally tally;
  };
  std::deque<Look> looks_;   // of the last second
  absl::Duration line_end_;  // time of the last line, without a terminal
  Tally since_line_;
  int line_count_ = 0;  // lines drawn
};

// Returns a view as one line. `recent` counts the answers of the last `span`.
std::string FormatLiveLine(const LoadView& view, const Tally& recent,
                           absl::Duration span, const LoadTime& time);

// Returns a view as lines of at most `width` columns. Parts that don't fit a
// line go to the next; texts are shortened.
std::string FormatLiveView(const LoadView& view, const Tally& recent,
                           absl::Duration span, const LoadTime& time,
                           int width);

}  // namespace attendant

#endif  // ATTENDANT_CLIENT_LOAD_REPORT_LIVE_VIEW_H_
