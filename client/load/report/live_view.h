// A load as it runs.
#ifndef ATTENDANT_CLIENT_LOAD_REPORT_LIVE_VIEW_H_
#define ATTENDANT_CLIENT_LOAD_REPORT_LIVE_VIEW_H_

#include <cstdio>
#include <deque>
#include <string>

#include "absl/time/time.h"
#include "client/load/results/load_result.h"
#include "client/load/send/recorder.h"

namespace attendant {

// How far a load is.
struct LoadTime {
  absl::Duration elapsed = absl::ZeroDuration();
  absl::Duration warmup = absl::ZeroDuration();
  absl::Duration total = absl::ZeroDuration();  // with the warm-up
};

// Shows the rate, latencies and errors of the last second, and how far the load
// is. Draws over what it drew before; where the stream is no terminal, writes a
// line every five seconds. Not thread-safe.
class LiveView {
 public:
  LiveView(std::FILE* stream, const LoadTime& time);
  // Takes away what was drawn.
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
  absl::Duration line_end_;  // of a stream that is no terminal: its last line
  Tally since_line_;
  int line_count_ = 0;  // drawn
};

// A view as one line. `recent` is what was answered in `span` up to now.
std::string FormatLiveLine(const LoadView& view, const Tally& recent,
                           absl::Duration span, const LoadTime& time);

// The lines of a view, of at most `width` columns: what does not fit one goes
// on in the next; texts are shortened.
std::string FormatLiveView(const LoadView& view, const Tally& recent,
                           absl::Duration span, const LoadTime& time,
                           int width);

}  // namespace attendant

#endif  // ATTENDANT_CLIENT_LOAD_REPORT_LIVE_VIEW_H_
