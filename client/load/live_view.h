// A load as it runs, on a terminal.
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
// is. Draws over what it drew before; draws nothing where the stream is no
// terminal. Not thread-safe.
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

  std::FILE* const stream_;
  const bool is_terminal_;
  const absl::Duration warmup_;
  const absl::Duration total_;
  struct Look {
    absl::Duration elapsed;
    Tally tally;
  };
  std::deque<Look> looks_;  // of the last second
  int line_count_ = 0;      // drawn
};

// The lines of a view. `recent` is what was answered in `span` up to `elapsed`.
std::string FormatLiveView(const LoadView& view, const Tally& recent,
                           absl::Duration span, absl::Duration elapsed,
                           absl::Duration warmup, absl::Duration total);

}  // namespace attendant

#endif  // ATTENDANT_CLIENT_LOAD_LIVE_VIEW_H_
