// The server's log: one JSON object per line on stderr.
#ifndef ATTENDANT_SERVICE_LOG_LOG_H_
#define ATTENDANT_SERVICE_LOG_LOG_H_

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace attendant {

enum class LogLevel { kDebug, kInfo, kWarning, kError };

// Returns "debug", "info", "warning" or "error".
absl::string_view Name(LogLevel level);

// Returns the level with this name; InvalidArgument if there is none.
absl::StatusOr<LogLevel> LogLevelFromName(absl::string_view name);

// Drops events below `level` from now on. The initial level is info.
void SetLogLevel(LogLevel level);

// True if events of `level` are logged.
bool IsLogged(LogLevel level);

// A text, or a number or object as JSON.
class LogValue {
 public:
  LogValue(std::string text) : text_(std::move(text)) {}
  LogValue(const char* text) : text_(text) {}
  static LogValue Json(std::string json) {
    LogValue value(std::move(json));
    value.is_json_ = true;
    return value;
  }

  const std::string& text() const { return text_; }
  bool is_json() const { return is_json_; }

 private:
  std::string text_;
  bool is_json_ = false;
};

using LogField = std::pair<absl::string_view, LogValue>;

// Writes {"time": ..., "level": ..., "event": ..., fields...}. Texts are cut to
// kMaxLogTextBytes. Thread-safe. Throws std::bad_alloc if there is no memory
// for the line, which is then not logged.
inline constexpr std::size_t kMaxLogTextBytes = 1024;
void LogEvent(LogLevel level, absl::string_view event,
              std::span<const LogField> fields);
inline void LogEvent(LogLevel level, absl::string_view event,
                     std::initializer_list<LogField> fields) {
  LogEvent(level, event, std::span(fields.begin(), fields.size()));
}

// Until LogInBackground is called, LogEvent writes to stderr itself and blocks
// while stderr does. From then on one thread writes, and LogEvent never blocks:
// a pipe that nobody reads would otherwise hang every call. At most
// kMaxWaitingLogLines lines wait; beyond that the oldest are dropped. Once
// stderr accepts lines again, log_lines_dropped says how many, at most once a
// second while more lines wait. Call at most once; throws std::system_error if
// there is no thread.
inline constexpr std::size_t kMaxWaitingLogLines = 4096;
void LogInBackground();

// Returns the number of lines dropped so far, with those that stderr refused,
// such as a file on a full disk.
std::int64_t DroppedLogLines();

// Waits at most `patience` until every line logged before the call is written
// or dropped. Returns whether that is so.
bool FlushLog(absl::Duration patience);

// Redirects the logs of gRPC and Protobuf here, at debug level: what they call
// errors is mostly bad input, which callers are told of anyway.
void CaptureLibraryLogs();

}  // namespace attendant

#endif  // ATTENDANT_SERVICE_LOG_LOG_H_
