// Checks tokens while their file changes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdio>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "core/base/clock.h"
#include "service/log/log.h"
#include "service/security/authenticator.h"
#include "tests/support/scratch_directory.h"
#include "tests/support/status_matchers.h"

namespace attendant {
namespace {

using ::testing::HasSubstr;

// Replaces the file atomically, as an editor does.
void Replace(const std::string& path, const std::string& content) {
  const std::string next = absl::StrCat(path, ".next");
  std::FILE* file = std::fopen(next.c_str(), "w");
  ASSERT_NE(file, nullptr);
  std::fputs(content.c_str(), file);
  ASSERT_EQ(std::fclose(file), 0);
  ASSERT_EQ(std::rename(next.c_str(), path.c_str()), 0);
}

NewToken TokenFor(const std::string& name, Role role) {
  auto scope = CatalogScope::FromText("*");
  EXPECT_OK(scope.status());
  auto token =
      MakeToken({.name = name, .role = role, .scope = *std::move(scope)});
  EXPECT_OK(token.status());
  return *std::move(token);
}

TEST(AuthenticatorStressTest, ATokenThatStaysIsKnownThroughEveryChange) {
  SetLogLevel(LogLevel::kError);  // each change is logged
  constexpr int kThreads = 4;
  constexpr int kChanges = 200;
  const NewToken stays = TokenFor("stays", Role::kWrite);
  const NewToken goes = TokenFor("goes", Role::kRead);
  const ScratchDirectory directory;
  const std::string path = directory / "tokens";
  const std::string with_both = absl::StrCat(stays.line, "\n", goes.line, "\n");
  const std::string with_one = absl::StrCat(stays.line, "\n");
  Replace(path, with_both);
  ASSERT_OK_AND_ASSIGN(const auto authenticator,
                       Authenticator::Open(path, /*anonymous_read=*/false));
  std::atomic<bool> stopping = false;
  std::atomic<int> known_count = 0;
  std::atomic<int> unknown_count = 0;
  std::vector<std::thread> callers;
  for (int t = 0; t < kThreads; ++t) {
    callers.emplace_back([&] {
      const std::string stays_header = absl::StrCat("Bearer ", stays.token);
      const std::string goes_header = absl::StrCat("Bearer ", goes.token);
      while (!stopping.load()) {
        EXPECT_OK(authenticator->CheckRole(Role::kWrite, stays_header));
        const auto grant = authenticator->GrantOf(stays_header);
        ASSERT_NE(grant, nullptr);
        EXPECT_EQ(grant->name, "stays");
        const absl::Status other =
            authenticator->CheckRole(Role::kRead, goes_header);
        EXPECT_TRUE(other.ok() || absl::IsUnauthenticated(other)) << other;
        ++(other.ok() ? known_count : unknown_count);
      }
    });
  }
  // Runs until every state was seen: on a single core callers may get no turn
  // for a long time.
  const SteadyTime end = SteadyAfter(absl::Minutes(1));
  for (int i = 0; i < kChanges || ((known_count == 0 || unknown_count == 0) &&
                                   SteadyNow() < end);
       ++i) {
    Replace(path, i % 2 == 0 ? with_one : with_both);
    EXPECT_OK(authenticator->Reload());
  }
  stopping.store(true);
  for (std::thread& caller : callers) caller.join();
  EXPECT_GT(known_count, 0);
  EXPECT_GT(unknown_count, 0);
  EXPECT_EQ(authenticator->refusals()[AuthRefusal::kUnknownToken].value(),
            unknown_count);
}

TEST(AuthenticatorStressTest, AFileThatIsBeingWrittenIsNotUsed) {
  SetLogLevel(LogLevel::kError);
  const ScratchDirectory directory;
  const std::string path = directory / "tokens";
  Replace(path, absl::StrCat(TokenFor("one", Role::kRead).line, "\n"));
  ASSERT_OK_AND_ASSIGN(const auto authenticator,
                       Authenticator::Open(path, /*anonymous_read=*/false));
  std::atomic<bool> stopping = false;
  // Writes the file in place, line by line; each state is valid.
  std::thread writer([&] {
    while (!stopping.load()) {
      std::FILE* file = std::fopen(path.c_str(), "w");
      for (int i = 0; i < 10'000 && !stopping.load(); ++i) {
        std::fputs("# a line that takes none\n", file);
        std::fflush(file);
      }
      std::fclose(file);
    }
  });
  absl::Status status;
  const SteadyTime end = SteadyAfter(absl::Minutes(1));
  while (!absl::IsAborted(status) && SteadyNow() < end) {
    status = authenticator->Reload();
  }
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kAborted,
                               path + " was written while it was read"));
  stopping.store(true);
  writer.join();
  testing::internal::CaptureStderr();
  SetLogLevel(LogLevel::kWarning);
  EXPECT_OK(authenticator->Reload());
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              HasSubstr("tokens_empty"));
}

}  // namespace
}  // namespace attendant
