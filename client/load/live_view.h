// A load as it runs.
#ifndef ATTENDANT_CLIENT_LOAD_LIVE_VIEW_H_
#define ATTENDANT_CLIENT_LOAD_LIVE_VIEW_H_

#include <cstdio>
#include <deque>
#include <string>

#include "absl/time/time.h"
#include "client/load/load_result.h"
#include "client/load/recorder.h"

namespace attendant {

// Shows the rate, latencies and errors of the last second, and how far the load
// is. Draws over what it drew before; where the stream is no terminal, writes a
// line every five seconds. Not thread-safe.
class LiveView {
 public:
  // `total` is how long the load takes with its warm-up.
  LiveView(std::FILE* stream, absl::Duration warmup, absl::Duration total);
  // Takes away what was drawn.
  ~LiveView();
  LiveView(const LiveView&) = delete;
  LiveView& operator=(const LiveView&) = delete;

  void Show(const LoadView& view, absl::Duration elapsed);

 private:
  void Clear();
  void ShowLine(const LoadView& view, absl::Duration elapsed);

  std::FILE* const stream_;
  const bool is_terminal_;
  const absl::Duration warmup_;
  const absl::Duration total_;
  struct Look {
    absl::Duration elapsed;
    Tally tally;
  };
  std::deque<Look> looks_;   // of the last second
  absl::Duration line_end_;  // of a stream that is no terminal: its last line
  Tally since_line_;
  int line_count_ = 0;  // drawn
};

// A view as one line.
std::string FormatLiveLine(const LoadView& view, const Tally& recent,
                           absl::Duration span, absl::Duration elapsed,
                           absl::Duration total);

// The lines of a view. `recent` is what was answered in `span` up to `elapsed`.
std::string FormatLiveView(const LoadView& view, const Tally& recent,
                           absl::Duration span, absl::Duration elapsed,
                           absl::Duration warmup, absl::Duration total);

}  // namespace attendant

#endif  // ATTENDANT_CLIENT_LOAD_LIVE_VIEW_H_
