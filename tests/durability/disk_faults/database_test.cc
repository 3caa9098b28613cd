// Failing writes to one database, concurrent with flushes, checkpoints and
// reads.
#include "core/storage/rocks/database.h"

#include <gtest/gtest.h>
#include <rocksdb/write_batch.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "core/base/clock.h"
#include "core/base/mutex.h"
#include "core/storage/files/files.h"
#include "tests/durability/disk_faults/fixture.h"
#include "tests/durability/disk_faults/watched_file_system.h"
#include "tests/support/scratch_directory.h"
#include "tests/support/status_matchers.h"

namespace attendant {
namespace {

// A database on a disk that may fail.
class FaultyDatabase {
 public:
  explicit FaultyDatabase(WatchedFileSystem::Watch watch = {}) {
    files_->WatchSyncs(std::move(watch));
    Open();
  }

  Database& operator*() { return *database_; }
  Database* operator->() { return database_.get(); }
  void Open() {
    database_ = nullptr;
    auto opened =
        Database::Open(path_, Database::Mode::kCreateIfMissing, resources_);
    ASSERT_OK(opened);
    database_ = *std::move(opened);
  }
  absl::Status Write(const std::string& key,
                     std::optional<std::int64_t> sequence) {
    rocksdb::WriteBatch batch;
    batch.Put(key, "value");
    return database_->Write(&batch, sequence);
  }
  bool Has(const std::string& key) const {
    const auto value = database_->Get(key);
    EXPECT_OK(value);
    return value.ok() && value->has_value();
  }
  // Checks the keys now and after a restart.
  void ExpectKeys(const std::vector<std::string>& there,
                  const std::string& not_there) {
    for (int i = 0; i < 2; ++i) {
      for (const std::string& key : there) EXPECT_TRUE(Has(key)) << key;
      EXPECT_FALSE(Has(not_there)) << not_there;
      Open();
    }
  }
  void FailWrite(const std::string& key, std::optional<std::int64_t> sequence) {
    files_->Inject({FileFault::Kind::kFail, FileCall::kSync, 1, ".log"});
    EXPECT_FALSE(Write(key, sequence).ok());
    files_->InjectNothing();
  }
  std::string checkpoint_path() const { return directory_ / "checkpoint"; }
  const DatabaseResources& resources() const { return resources_; }
  const std::string& path() const { return path_; }
  std::string log_path() const {
    for (const auto& entry : std::filesystem::directory_iterator(path_)) {
      if (entry.path().extension() == ".log") return entry.path();
    }
    return "";
  }

 private:
  const ScratchDirectory directory_;
  const std::string path_ = directory_ / "database";
  const std::shared_ptr<WatchedFileSystem> files_ =
      std::make_shared<WatchedFileSystem>(path_, /*seed=*/1);
  const DatabaseResources resources_ = DatabaseResources::Make(Files(files_));
  std::unique_ptr<Database> database_;
};

// Data without sequences, such as text encoders, is rolled back like data with
// them.
TEST_F(DiskFaultTest, AFailedWriteWithoutSequenceIsTakenBack) {
  FaultyDatabase database;
  ASSERT_OK(database.Write("first", 1));
  database.FailWrite("failed", std::nullopt);
  EXPECT_OK(database->TakeBackFailed());
  ASSERT_OK(database.Write("last", 2));
  database.ExpectKeys({"first", "last"}, "failed");
}

// A flush that waits for the failing write begins another log after it.
TEST_F(DiskFaultTest, AnEmptyLogDoesNotHideAWriteThatFailed) {
  FaultyDatabase database;
  ASSERT_OK(database.Write("first", 1));
  database.FailWrite("failed", 2);
  std::ofstream(database.path() + "/999999.log");
  ASSERT_OK(database.Write("last", 2));
  database.ExpectKeys({"first", "last"}, "failed");
}

// RocksDB aborts the process if a checkpoint syncs a log that a write failed to
// sync.
TEST_F(DiskFaultTest, AWriteThatFailsBesideACheckpointEndsNothingElse) {
  Mutex mutex;
  CondVar changed;
  bool flushing = false;
  bool writing = false;
  // The first write's table appears only after the sync of the second write's
  // log has begun; that sync is slow and fails.
  FaultyDatabase database([&](const std::string& path) {
    {
      MutexLock lock(&mutex);
      if (absl::EndsWith(path, ".sst") && !flushing) {
        flushing = true;
        changed.NotifyAll();
        while (!writing) changed.Wait(&mutex);
      }
      if (!absl::EndsWith(path, ".log") || !flushing || writing) {
        return rocksdb::IOStatus::OK();
      }
      writing = true;
      changed.NotifyAll();
    }
    // Without protection, the checkpoint would reach its own sync during this
    // time.
    absl::SleepFor(absl::Milliseconds(100));
    return rocksdb::IOStatus::IOError("injected", path);
  });
  ASSERT_OK(database.Write("first", 1));
  absl::Status made;
  std::thread checkpoint(
      [&] { made = database->Checkpoint(database.checkpoint_path()); });
  {
    MutexLock lock(&mutex);
    while (!flushing) changed.Wait(&mutex);
  }
  EXPECT_FALSE(database.Write("failed", 2).ok());
  checkpoint.join();
  ASSERT_OK(database.Write("last", 2));
  database.ExpectKeys({"first", "last"}, "failed");
  // The checkpoint either failed too or is complete.
  EXPECT_EQ(std::filesystem::exists(database.checkpoint_path()), made.ok());
  if (!made.ok()) return;
  ASSERT_OK_AND_ASSIGN(
      const auto copy,
      Database::Open(database.checkpoint_path(), Database::Mode::kMustExist,
                     database.resources()));
  EXPECT_EQ(copy->sequence(), 1);
}

// The damaged part was acknowledged before the write that failed.
TEST_F(DiskFaultTest, ADamagedLogIsNotCut) {
  FaultyDatabase database;
  for (int i = 1; i <= 3; ++i) {
    ASSERT_OK(database.Write(absl::StrCat("key", i), i));
  }
  database.FailWrite("failed", 4);
  const std::string path = database.log_path();
  std::string log;
  {
    std::ifstream file(path, std::ios::binary);
    log.assign(std::istreambuf_iterator<char>(file), {});
  }
  log[20] = static_cast<char>(log[20] ^ 1);
  std::ofstream(path, std::ios::binary) << log;
  EXPECT_EQ(database->TakeBackFailed().code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(database.Write("next", 4).code(), absl::StatusCode::kDataLoss);
  std::ifstream file(path, std::ios::binary);
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(file), {}), log);
  // Reads still work.
  ASSERT_OK_AND_ASSIGN(const auto value, database->Get("key2"));
  EXPECT_TRUE(value.has_value());
}

TEST_F(DiskFaultTest, ReadsThatAreUnderWayPutARecoveryOff) {
  FaultyDatabase database;
  ASSERT_OK(database.Write("first", 1));
  database.FailWrite("failed", 2);
  Mutex mutex;
  CondVar changed;
  bool reading = false;
  bool go_on = false;
  std::thread reader([&] {
    EXPECT_OK(
        database->Scan("a", "z", [&](absl::string_view, absl::string_view) {
          MutexLock lock(&mutex);
          reading = true;
          changed.NotifyAll();
          while (!go_on) changed.Wait(&mutex);
          return true;
        }));
  });
  {
    MutexLock lock(&mutex);
    while (!reading) changed.Wait(&mutex);
  }
  EXPECT_EQ(database->TakeBackFailed().code(), absl::StatusCode::kUnavailable);
  // While that read is blocked, a write fails soon and does not hold up other
  // reads.
  const SteadyTime begin = SteadyNow();
  EXPECT_EQ(database.Write("next", 2).code(), absl::StatusCode::kUnavailable);
  EXPECT_LT(TimeSince(begin), absl::Milliseconds(900));
  EXPECT_OK(database->Get("first"));
  {
    MutexLock lock(&mutex);
    go_on = true;
    changed.NotifyAll();
  }
  reader.join();
  EXPECT_OK(database.Write("next", 2));
  ASSERT_OK_AND_ASSIGN(const auto value, database->Get("failed"));
  EXPECT_FALSE(value.has_value());
}

}  // namespace
}  // namespace attendant
