#include "service/log/log.h"

#include <google/protobuf/stubs/logging.h>
#include <grpc/support/log.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "core/base/status.h"

namespace attendant {
namespace {

spdlog::logger& Logger() {
  // Never deleted: gRPC threads may log while the process exits.
  static spdlog::logger* const logger = [] {
    auto* made = new spdlog::logger(
        "attendant", std::make_shared<spdlog::sinks::stderr_sink_mt>());
    made->set_pattern("%v");
    made->flush_on(spdlog::level::debug);
    return made;
  }();
  return *logger;
}

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

absl::string_view Name(LogLevel level) {
  for (const auto& [known, name] : kNames) {
    if (known == level) return name;
  }
  return "error";
}

std::string Json(absl::string_view text) {
  return nlohmann::json(std::string(text))
      .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

void LogGrpcMessage(gpr_log_func_args* args) {
  LogEvent(LogLevel::kDebug, "grpc", {{"message", args->message}});
}

void LogProtobufMessage(google::protobuf::LogLevel /*level*/,
                        const char* /*file*/, int /*line*/,
                        const std::string& message) {
  LogEvent(LogLevel::kDebug, "protobuf", {{"message", message}});
}

}  // namespace

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
  Logger().log(SpdlogLevel(level), line + "}");
}

void CaptureLibraryLogs() {
  gpr_set_log_function(&LogGrpcMessage);
  google::protobuf::SetLogHandler(&LogProtobufMessage);
}

}  // namespace attendant
