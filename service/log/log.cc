#include "service/log/log.h"

#include <google/protobuf/stubs/logging.h>
#include <grpc/support/log.h>
#include <poll.h>
#include <spdlog/async_logger.h>
#include <spdlog/details/thread_pool.h>
#include <spdlog/logger.h>
#include <spdlog/sinks/base_sink.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/base/clock.h"
#include "core/base/status.h"
#include "service/log/log_limiter.h"

namespace attendant {
namespace {

spdlog::level::level_enum SpdlogLevel(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return spdlog::level::debug;
    case LogLevel::kInfo:
      return spdlog::level::info;
    case LogLevel::kWarning:
      return spdlog::level::warn;
    case LogLevel::kError:
      return spdlog::level::err;
  }
  return spdlog::level::err;
}

constexpr std::pair<LogLevel, absl::string_view> kNames[] = {
    {LogLevel::kDebug, "debug"},
    {LogLevel::kInfo, "info"},
    {LogLevel::kWarning, "warning"},
    {LogLevel::kError, "error"},
};

std::string Json(absl::string_view text) {
  return nlohmann::json(std::string(text))
      .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

// A line of the log, with its end.
std::string LogLine(LogLevel level, absl::string_view event,
                    std::span<const LogField> fields) {
  std::string line = absl::StrCat(
      "{\"time\":\"",
      absl::FormatTime("%Y-%m-%dT%H:%M:%E3SZ", absl::Now(),
                       absl::UTCTimeZone()),
      "\",\"level\":\"", Name(level), "\",\"event\":", Json(event));
  for (const auto& [name, value] : fields) {
    absl::StrAppend(&line, ",", Json(name), ":",
                    value.is_json()
                        ? value.text()
                        : Json(value.text().substr(0, kMaxLogTextBytes)));
  }
  return line + "}\n";
}

// The lines that wait for the writing thread. Null: LogEvent writes itself.
// Never deleted, like the logger.
std::atomic<spdlog::details::thread_pool*> waiting_lines = nullptr;

// Lines that were logged; those of them that had their turn to be written; and
// those of them that could not be.
std::atomic<std::int64_t> logged_count = 0;
std::atomic<std::int64_t> turn_count = 0;
std::atomic<std::int64_t> lost_count = 0;

// Lines that never have a turn.
std::int64_t OverrunLines() {
  auto* lines = waiting_lines.load();
  return lines == nullptr ? 0
                          : static_cast<std::int64_t>(lines->overrun_counter());
}

// Writes to the descriptor rather than to the stdio stream, whose lock the
// process takes when it exits: a write that blocks would hold it.
class StderrSink final : public spdlog::sinks::base_sink<std::mutex> {
 protected:
  void sink_it_(const spdlog::details::log_msg& message) override {
    const absl::Cleanup is_over = [] { ++turn_count; };
    if (!Write({message.payload.data(), message.payload.size()})) ++lost_count;
    ReportDropped();
  }

  void flush_() override {}

 private:
  bool Write(absl::string_view line) {
    if (is_cut_ && !WriteAll("\n")) return false;
    is_cut_ = false;
    return WriteAll(line);
  }

  // False if stderr takes no more, such as a file on a full disk.
  bool WriteAll(absl::string_view text) {
    const std::size_t size = text.size();
    while (!text.empty()) {
      const ssize_t count = write(STDERR_FILENO, text.data(), text.size());
      if (count > 0) {
        text.remove_prefix(static_cast<std::size_t>(count));
      } else if (count < 0 &&
                 errno == EAGAIN) {  // whoever shares the pipe set it so
        pollfd ready = {.fd = STDERR_FILENO, .events = POLLOUT, .revents = 0};
        poll(&ready, 1, /*timeout=*/-1);
      } else if (count == 0 || errno != EINTR) {
        is_cut_ = is_cut_ || text.size() < size;
        return false;
      }
    }
    return true;
  }

  // Writes the event itself, right where the lines are missing: as one more
  // line that waits it could drop another.
  void ReportDropped() {
    const std::int64_t dropped = DroppedLogLines();
    if (dropped == reported_ || !IsLogged(LogLevel::kWarning)) return;
    auto* waiting = waiting_lines.load();
    const bool is_last = waiting == nullptr || waiting->queue_size() == 0;
    if (!is_last && !limiter_.Admit(SteadyNow()).has_value()) return;
    const LogField count = {"count",
                            LogValue::Json(absl::StrCat(dropped - reported_))};
    if (Write(LogLine(LogLevel::kWarning, "log_lines_dropped", {&count, 1}))) {
      reported_ = dropped;
    }
  }

  // Used under the lock of base_sink.
  LogLimiter limiter_{1};
  bool is_cut_ = false;  // the last line has no end
  std::int64_t reported_ = 0;
};

struct Loggers {
  spdlog::logger direct{"attendant", std::make_shared<StderrSink>()};
  std::atomic<spdlog::logger*> current = &direct;
};

std::atomic<spdlog::logger*>& CurrentLogger() {
  // Never deleted: gRPC threads may log while the process exits.
  static Loggers& loggers = *new Loggers;
  return loggers.current;
}

spdlog::logger& Logger() { return *CurrentLogger().load(); }

void LogGrpcMessage(gpr_log_func_args* args) {
  LogEvent(LogLevel::kDebug, "grpc", {{"message", args->message}});
}

void LogProtobufMessage(google::protobuf::LogLevel /*level*/,
                        const char* /*file*/, int /*line*/,
                        const std::string& message) {
  LogEvent(LogLevel::kDebug, "protobuf", {{"message", message}});
}

}  // namespace

absl::string_view Name(LogLevel level) {
  for (const auto& [known, name] : kNames) {
    if (known == level) return name;
  }
  return "error";
}

absl::StatusOr<LogLevel> LogLevelFromName(absl::string_view name) {
  for (const auto& [level, known] : kNames) {
    if (known == name) return level;
  }
  return InvalidField("log-level", absl::StrCat("\"", name, "\""),
                      "debug, info, warning or error");
}

void SetLogLevel(LogLevel level) { Logger().set_level(SpdlogLevel(level)); }

bool IsLogged(LogLevel level) {
  return Logger().should_log(SpdlogLevel(level));
}

void LogEvent(LogLevel level, absl::string_view event,
              std::span<const LogField> fields) {
  if (!IsLogged(level)) return;
  const std::string line = LogLine(level, event, fields);
  ++logged_count;
  try {
    Logger().log(SpdlogLevel(level), line);
  } catch (...) {
    // FlushLog must not wait for a line that never has a turn.
    --logged_count;
    throw;
  }
}

void LogInBackground() {
  static const auto& pool =
      *new auto(std::make_shared<spdlog::details::thread_pool>(
          kMaxWaitingLogLines, /*threads_n=*/1));
  static const auto& logger = *new auto(std::make_shared<spdlog::async_logger>(
      "attendant", Logger().sinks().front(), pool,
      spdlog::async_overflow_policy::overrun_oldest));
  logger->set_level(Logger().level());
  waiting_lines.store(pool.get());
  CurrentLogger().store(logger.get());
}

std::int64_t DroppedLogLines() { return OverrunLines() + lost_count.load(); }

bool FlushLog(absl::Duration patience) {
  const std::int64_t count = logged_count.load();
  const SteadyTime end = SteadyAfter(patience);
  while (turn_count.load() + OverrunLines() < count) {
    if (SteadyNow() >= end) return false;
    absl::SleepFor(absl::Milliseconds(1));
  }
  return true;
}

void CaptureLibraryLogs() {
  gpr_set_log_function(&LogGrpcMessage);
  google::protobuf::SetLogHandler(&LogProtobufMessage);
}

}  // namespace attendant
