// Kills a real server at random moments and at every fail point, repeatedly on
// the same data. Each writer knows what it wrote and what was acknowledged;
// after each restart the server holds exactly that, and all or nothing of each
// writer's one unanswered write. Some writers have a catalog to themselves,
// others share one.
//
// crash_loop_test --kills=2000 --rounds=20 --seed=1    the long form
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/base/fail_point.h"
#include "tests/durability/crash_server.h"
#include "tests/durability/crash_writer.h"
#include "tests/durability/flags.h"
#include "tests/integration/binaries.h"
#include "tests/integration/process.h"
#include "tests/integration/server_process.h"
#include "tests/support/scratch_directory.h"
#include "tests/support/status_matchers.h"

namespace attendant {
namespace {

constexpr int kWriterCount = 2;
// While one sharer's write is being synced, the others queue behind it.
constexpr int kSharerCount = 4;

class CrashLoopTest : public ::testing::Test {
 protected:
  CrashLoopTest() : seed_(Flag("seed", 1)), random_(seed_) {
    for (int i = 0; i < kWriterCount; ++i) {
      writers_.push_back(std::make_unique<CrashWriter>(
          absl::StrCat("writer", i), seed_ * 1000 + i));
    }
    for (int i = 0; i < kSharerCount; ++i) {
      sharers_.push_back(std::make_unique<CrashSharer>(
          "shared", absl::StrCat("sharer", i), seed_ * 2000 + i));
    }
  }

  // Starts the server, checks its contents, and writes until it is killed after
  // a random time.
  void KillAtRandom() {
    SCOPED_TRACE(absl::StrCat("seed ", seed_, ", round ", ++round_));
    ASSERT_OK_AND_ASSIGN(const auto server, ServerProcess::Start(data_.path()));
    {
      Connection connection(server->address());
      CheckAll(connection);
    }
    if (HasFailure()) return;
    const std::int64_t before = AcknowledgedCount();
    std::vector<std::thread> threads = StartWriting(server->address());
    // This sleep does not synchronise: the moment of the kill is random input.
    std::this_thread::sleep_for(
        std::chrono::microseconds(random_() % most_writing_us_));
    server->Kill();
    for (std::thread& thread : threads) thread.join();
    // A machine too busy to write anything in that time gets more of it.
    if (AcknowledgedCount() == before) most_writing_us_ *= 2;
  }

  // Acknowledged writes of all writers. Call while none is writing.
  std::int64_t AcknowledgedCount() const {
    std::int64_t count = 0;
    for (const auto& writer : writers_) count += writer->acknowledged_count();
    return count;
  }

  // Writes until the server dies at the fail point (NAME:COUNT).
  void KillAt(const std::string& fail_point) {
    SCOPED_TRACE(
        absl::StrCat("seed ", seed_, ", round ", ++round_, ", ", fail_point));
    ASSERT_OK_AND_ASSIGN(const auto server,
                         StartToDie(data_.path(), fail_point));
    // The server reached the fail point before it was ready.
    if (server == nullptr) return;
    std::vector<std::thread> threads = StartWriting(server->address());
    EXPECT_EQ(server->Wait(absl::Seconds(120)), kSigKilled)
        << "no operation of the writers comes by " << fail_point
        << ": give them one that does";
    for (std::thread& thread : threads) thread.join();
  }

  std::vector<std::thread> StartWriting(const std::string& address) {
    std::vector<std::thread> threads;
    const auto start = [&](auto& writer) {
      threads.emplace_back([&writer, address] {
        Connection connection(address);
        writer.WriteUntilKilled(connection);
      });
    };
    for (const auto& writer : writers_) start(*writer);
    for (const auto& sharer : sharers_) start(*sharer);
    return threads;
  }

  // Starts the server and kills it shortly before or after it becomes ready.
  void KillWhileStarting() {
    const int null = OpenForWriting("/dev/null");
    Process process = Process::Start(
        {kAttendantd, "--data-dir", data_.path(), "--listen", "127.0.0.1:0"},
        null, null);
    close(null);
    std::this_thread::sleep_for(std::chrono::microseconds(random_() % 60000));
    process.Signal(SIGKILL);
    EXPECT_EQ(process.Wait(absl::Minutes(1)), kSigKilled);
  }

  void CheckLast() {
    SCOPED_TRACE(absl::StrCat("seed ", seed_, ", at the end"));
    ASSERT_OK_AND_ASSIGN(const auto server, ServerProcess::Start(data_.path()));
    Connection connection(server->address());
    CheckAll(connection);
  }

  void CheckAll(Connection& connection) {
    for (const auto& writer : writers_) writer->Check(connection);
    for (const auto& sharer : sharers_) sharer->Check(connection);
  }

  const std::uint64_t seed_;
  std::mt19937_64 random_;
  int round_ = 0;
  std::uint64_t most_writing_us_ = 60000;
  const ScratchDirectory data_;
  std::vector<std::unique_ptr<CrashWriter>> writers_;
  std::vector<std::unique_ptr<CrashSharer>> sharers_;
};

TEST_F(CrashLoopTest, KilledAtRandomMoments) {
  const std::int64_t kills = Flag("kills", Short(100));
  for (std::int64_t i = 0; i < kills && !HasFailure(); ++i) {
    if (i % 5 == 4) {
      KillWhileStarting();
    } else {
      KillAtRandom();
    }
  }
  CheckLast();
  // The kills interrupted writers at work.
  for (const auto& writer : writers_) {
    EXPECT_GT(writer->acknowledged_count(), kills / 4);
  }
  for (const auto& sharer : sharers_) {
    EXPECT_GT(sharer->acknowledged_count(), kills / 4);
  }
}

// Tables are merged only once there are several, so a server passes these
// points less often.
int MostCount(const std::string& name) {
  return absl::StartsWith(name, "compaction.") ? 1 : 3;
}

TEST_F(CrashLoopTest, KilledAtEveryFailPoint) {
  const std::int64_t rounds = Flag("rounds", 1);
  for (std::int64_t i = 0; i < rounds; ++i) {
    for (const std::string_view point : kFailPoints) {
      if (IsOfBackground(point)) continue;
      const std::string name(point);
      // Dies at one of the first passes.
      KillAt(absl::StrCat(name, ":", 1 + random_() % MostCount(name)));
      if (HasFailure()) return;
      CheckLast();
      if (HasFailure()) return;
    }
  }
}

}  // namespace
}  // namespace attendant
