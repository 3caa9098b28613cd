#include "service/log/log.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdint>
#include <future>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/time.h"
#include "tests/core/catalog/failing_allocation.h"

namespace attendant {
namespace {

// Generous, for sanitizers and a busy machine.
constexpr absl::Duration kPatience = absl::Minutes(1);

// Makes stderr the smallest possible pipe, whose reader reads on demand.
class PipeAsStderr {
 public:
  PipeAsStderr() : stderr_(dup(STDERR_FILENO)) {
    EXPECT_EQ(pipe2(ends_, O_CLOEXEC), 0);
    EXPECT_GT(fcntl(ends_[1], F_SETPIPE_SZ, 1), 0);
    dup2(ends_[1], STDERR_FILENO);
    close(ends_[1]);
  }
  // Restores stderr and returns all lines.
  std::vector<nlohmann::json> Read() {
    std::string text;
    std::thread reader([&] {
      char bytes[4096];
      ssize_t count = 0;
      while ((count = read(ends_[0], bytes, sizeof(bytes))) > 0) {
        text.append(bytes, static_cast<std::size_t>(count));
      }
    });
    EXPECT_TRUE(FlushLog(kPatience));
    dup2(stderr_, STDERR_FILENO);
    reader.join();
    close(ends_[0]);
    close(stderr_);
    std::vector<nlohmann::json> lines;
    for (const absl::string_view line :
         absl::StrSplit(text, '\n', absl::SkipEmpty())) {
      lines.push_back(nlohmann::json::parse(line, nullptr, false));
      EXPECT_TRUE(lines.back().is_object()) << line;
    }
    return lines;
  }

 private:
  const int stderr_;
  int ends_[2] = {-1, -1};
};

class LogTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { LogInBackground(); }
};

TEST_F(LogTest, AFlushedLineIsWritten) {
  PipeAsStderr pipe;
  LogEvent(LogLevel::kInfo, "one", {{"text", "\"quoted\""}});
  LogEvent(LogLevel::kDebug, "two", {});
  EXPECT_TRUE(FlushLog(kPatience));
  const auto lines = pipe.Read();
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_EQ(lines[0].value("event", ""), "one");
  EXPECT_EQ(lines[0].value("level", ""), "info");
  EXPECT_EQ(lines[0].value("text", ""), "\"quoted\"");
}

TEST_F(LogTest, ALineWithoutMemoryIsNotWaitedFor) {
  PipeAsStderr pipe;
  int nth = 0;
  // The long text is copied for the writing thread.
  while (WithoutMemoryAt(++nth, [] {
    LogEvent(LogLevel::kInfo, "long", {{"text", std::string(1000, 'x')}});
  })) {
  }
  EXPECT_TRUE(FlushLog(kPatience));
  EXPECT_EQ(pipe.Read().size(), 1U);
}

// A full pipe used to block every thread that logged.
TEST_F(LogTest, NobodyWaitsForAPipeThatIsNotReadAndLostLinesAreTold) {
  const std::int64_t dropped_before = DroppedLogLines();
  PipeAsStderr pipe;
  std::int64_t logged = 0;
  auto logging = std::async(std::launch::async, [&] {
    const auto log = [&] {
      LogEvent(LogLevel::kInfo, "line",
               {{"number", LogValue::Json(absl::StrCat(logged++))}});
    };
    // Logs until the pipe is full.
    for (int i = 0; i < 1000 && FlushLog(absl::Milliseconds(200)); ++i) log();
    for (std::size_t i = 0; i < 2 * kMaxWaitingLogLines; ++i) log();
  });
  const bool has_logged = logging.wait_for(absl::ToChronoSeconds(kPatience)) ==
                          std::future_status::ready;
  EXPECT_TRUE(has_logged);
  const std::int64_t dropped = DroppedLogLines() - dropped_before;
  EXPECT_GE(dropped, static_cast<std::int64_t>(kMaxWaitingLogLines));

  std::int64_t next = 0;
  std::int64_t told = 0;
  for (const auto& line : pipe.Read()) {
    if (line.value("event", "") == "log_lines_dropped") {
      EXPECT_EQ(line.value("level", ""), "warning");
      told += line.value("count", 0);
      // The place where lines are missing.
      next += line.value("count", 0);
    } else {
      EXPECT_EQ(line.value("number", -1), next);
      ++next;
    }
  }
  EXPECT_EQ(next, logged);
  EXPECT_EQ(told, dropped);
  EXPECT_EQ(DroppedLogLines() - dropped_before, dropped);
}

TEST_F(LogTest, LinesAreWholeInAPipeThatDoesNotBlock) {
  PipeAsStderr pipe;
  ASSERT_EQ(fcntl(STDERR_FILENO, F_SETFL, O_NONBLOCK), 0);
  const std::int64_t dropped_before = DroppedLogLines();
  const std::string text(kMaxLogTextBytes, 'x');
  constexpr int kLines = 100;
  for (int i = 0; i < kLines; ++i) {
    LogEvent(LogLevel::kInfo, "long", {{"text", text}});
  }
  const auto lines = pipe.Read();
  ASSERT_EQ(lines.size(), static_cast<std::size_t>(kLines));
  for (const auto& line : lines) EXPECT_EQ(line.value("text", ""), text);
  EXPECT_EQ(DroppedLogLines(), dropped_before);
}

TEST_F(LogTest, LinesThatTheDiskRefusesAreCountedAndTold) {
  const std::int64_t dropped_before = DroppedLogLines();
  const int before = dup(STDERR_FILENO);
  const int full = open("/dev/full", O_WRONLY | O_CLOEXEC);
  ASSERT_GE(full, 0);
  dup2(full, STDERR_FILENO);
  LogEvent(LogLevel::kInfo, "refused", {});
  EXPECT_TRUE(FlushLog(kPatience));
  EXPECT_EQ(DroppedLogLines() - dropped_before, 1);
  dup2(before, STDERR_FILENO);
  close(before);
  close(full);

  PipeAsStderr pipe;
  LogEvent(LogLevel::kInfo, "accepted", {});
  const auto lines = pipe.Read();
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[0].value("event", ""), "accepted");
  EXPECT_EQ(lines[1].value("event", ""), "log_lines_dropped");
  EXPECT_EQ(lines[1].value("count", 0), 1);
}

}  // namespace
}  // namespace attendant
