// Shows the progress of a long command.
#ifndef ATTENDANT_CLIENT_FORMAT_PROGRESS_H_
#define ATTENDANT_CLIENT_FORMAT_PROGRESS_H_

#include <cstdint>
#include <cstdio>
#include <string>

#include "absl/time/time.h"
#include "core/base/clock.h"

namespace attendant {

struct ProgressState {
  std::int64_t done_count = 0;
  std::int64_t total_count = 0;  // >= 0
  absl::Duration elapsed = absl::ZeroDuration();
};

// Returns "Importing  45,056 of 100,000  45 %  61,204/s  1s left".
std::string FormatProgress(const std::string& label,
                           const ProgressState& state);

// Returns the same with a bar in at most `width` columns, by LineWithBar:
// "Importing ██████▌        45,056 of 100,000  45 %  61,204/s  1s left".
std::string FormatProgressBar(const std::string& label,
                              const ProgressState& state, int width);

// Draws progress on a stream: a bar that is redrawn if the stream is a
// terminal, otherwise a line every 5 seconds. Not thread-safe.
class Progress {
 public:
  Progress(std::FILE* stream, std::string label, std::int64_t total_count);
  // Erases the bar.
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // Cheap enough to call for every item.
  void Update(std::int64_t done_count);

  // Erases the bar, so that something else may be written.
  void Clear();

  absl::Duration elapsed() const;

 private:
  std::FILE* const stream_;
  const std::string label_;
  const std::int64_t total_count_;
  const bool is_terminal_;
  const SteadyTime start_;
  SteadyTime next_draw_;
  bool drawn_ = false;
};

}  // namespace attendant

#endif  // ATTENDANT_CLIENT_FORMAT_PROGRESS_H_
