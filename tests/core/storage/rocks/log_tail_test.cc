#include "core/storage/rocks/log_tail.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rocksdb/db.h>
#include <rocksdb/options.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/storage/files/files.h"
#include "core/storage/rocks/database_files.h"
#include "core/storage/rocks/database_resources.h"
#include "core/storage/rocks/open_rocks.h"
#include "tests/support/scratch_directory.h"
#include "tests/support/status_matchers.h"

namespace attendant {
namespace {

constexpr std::size_t kHeaderBytes = 7;
constexpr std::size_t kSectorBytes = 512;

using ::testing::HasSubstr;

std::string ReadLog(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void WriteLog(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

std::unique_ptr<rocksdb::DB> OpenDatabase(const std::string& path) {
  rocksdb::Options options;
  options.create_if_missing = true;
  options.allow_fallocate = false;
  rocksdb::DB* opened = nullptr;
  EXPECT_TRUE(rocksdb::DB::Open(options, path, &opened).ok());
  return std::unique_ptr<rocksdb::DB>(opened);
}

// Returns the log being written. Names have six digits.
std::string LastLogIn(const std::string& path) {
  std::filesystem::path last;
  for (const auto& entry : std::filesystem::directory_iterator(path)) {
    if (entry.path().extension() == ".log" && entry.path() > last) {
      last = entry.path();
    }
  }
  return ReadLog(last);
}

// Returns a log written by RocksDB: writes of the given sizes, whose only zero
// bytes are in numbers.
std::string LogOf(const std::vector<std::size_t>& sizes) {
  const ScratchDirectory directory;
  const auto db = OpenDatabase(directory / "db");
  for (const std::size_t size : sizes) {
    EXPECT_TRUE(db->Put({}, "key", std::string(size, 'x')).ok());
  }
  return LastLogIn(directory / "db");
}

// Returns two logs of one database, with the given number of writes each.
std::vector<std::string> SplitLogOf(int first_count, int second_count,
                                    std::size_t size) {
  const ScratchDirectory directory;
  const auto db = OpenDatabase(directory / "db");
  std::vector<std::string> logs;
  for (const int count : {first_count, second_count}) {
    for (int i = 0; i < count; ++i) {
      EXPECT_TRUE(db->Put({}, "key", std::string(size, 'x')).ok());
    }
    logs.push_back(LastLogIn(directory / "db"));
    // Starts a new log for the next write.
    EXPECT_TRUE(db->Flush({}).ok());
  }
  return logs;
}

// Returns the offset of the last write.
std::size_t LastWriteOf(std::vector<std::size_t> sizes) {
  sizes.pop_back();
  return LogOf(sizes).size();
}

std::string WithZeros(std::string log, std::size_t begin, std::size_t end) {
  std::fill(log.begin() + begin, log.begin() + end, '\0');
  return log;
}

// A name of seven digits sorts before one of six as text.
TEST(LogTailTest, OfManyLogsTheOneOfTheGreatestNumberIsCut) {
  const ScratchDirectory directory;
  const std::string torn(1000, '\0');
  for (const char* name : {"999998.log", "999999.log", "1000000.log"}) {
    std::ofstream(directory / name, std::ios::binary) << torn;
  }
  ASSERT_OK_AND_ASSIGN(const bool cut, CutTornLog(directory.path(), Files()));
  EXPECT_TRUE(cut);
  const auto size = [&](const char* name) {
    return std::filesystem::file_size(directory / name);
  };
  EXPECT_EQ(size("1000000.log"), 0u);
  EXPECT_EQ(size("999999.log"), torn.size());
  EXPECT_EQ(size("999998.log"), torn.size());
}

// The failed write was the last of its log, and another log followed.
TEST(LogTailTest, AnEmptyLogDoesNotHideATornOne) {
  const ScratchDirectory directory;
  WriteLog(directory / "000004.log", std::string(1000, '\0'));
  WriteLog(directory / "000009.log", "");
  ASSERT_OK_AND_ASSIGN(const bool cut, CutTornLog(directory.path(), Files()));
  EXPECT_TRUE(cut);
  EXPECT_EQ(ReadLog(directory / "000004.log"), "");
}

TEST(LogTailTest, WritesThatFailedAreCutOffEveryLog) {
  const std::string log = LogOf({10, 10, 10});
  const std::string kept = log.substr(0, LastWriteOf({10, 10, 10}));
  const std::string third = log.substr(kept.size());
  const ScratchDirectory directory;
  for (const auto& [last, next_to_last] :
       std::vector<std::pair<std::string, std::string>>{
           {"", log}, {third, kept}, {third.substr(0, 9), kept}, {"", kept}}) {
    // Logs before one that keeps a write are not read.
    WriteLog(directory / "000003.log", "damaged");
    WriteLog(directory / "000004.log", next_to_last);
    WriteLog(directory / "000009.log", last);
    EXPECT_OK(CutWritesAfter(directory.path(), Files(), 2));
    EXPECT_EQ(ReadLog(directory / "000003.log"), "damaged");
    EXPECT_EQ(ReadLog(directory / "000004.log"), kept);
    EXPECT_EQ(ReadLog(directory / "000009.log"), "");
  }
}

TEST(LogTailTest, WithDamageBeforeAWriteThatFailedNothingIsCut) {
  const std::string log = LogOf({10, 10, 10});
  const std::string third = log.substr(LastWriteOf({10, 10, 10}));
  std::string damaged = log;
  damaged[20] = static_cast<char>(damaged[20] ^ 1);
  const ScratchDirectory directory;
  WriteLog(directory / "000004.log", damaged);
  WriteLog(directory / "000009.log", third);
  EXPECT_THAT(CutWritesAfter(directory.path(), Files(), 2),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("000004.log")));
  EXPECT_EQ(ReadLog(directory / "000004.log"), damaged);
  EXPECT_EQ(ReadLog(directory / "000009.log"), third);
}

class LogNumbersTest : public ::testing::Test {
 protected:
  // Returns the numbers of two logs.
  absl::StatusOr<LogNumbers> Numbers(const std::string& earlier,
                                     const std::string& later) {
    WriteLog(directory_ / "000001.log", earlier);
    WriteLog(directory_ / "000002.log", later);
    return NumbersInLogs(directory_.path(), Files());
  }

  const ScratchDirectory directory_;
  const std::vector<std::string> logs_ = SplitLogOf(3, 3, 20000);
};

TEST_F(LogNumbersTest, AreOfTheFirstWriteAndTheLast) {
  ASSERT_OK_AND_ASSIGN(LogNumbers numbers, Numbers(logs_[0], logs_[1]));
  EXPECT_EQ(numbers.first, 1u);
  EXPECT_EQ(numbers.last, 6u);
  ASSERT_OK_AND_ASSIGN(numbers, Numbers(logs_[0], ""));
  EXPECT_EQ(numbers.last, 3u);
  ASSERT_OK_AND_ASSIGN(numbers, Numbers("", logs_[1]));
  EXPECT_EQ(numbers.first, 4u);
  ASSERT_OK_AND_ASSIGN(numbers, Numbers("", ""));
  EXPECT_EQ(numbers.last, 0u);
}

// RocksDB would continue at the next block as if nothing had been there.
TEST_F(LogNumbersTest, DamageBeforeTheLastLogIsSeen) {
  const std::size_t second = LogOf({20000}).size();
  EXPECT_THAT(
      Numbers(WithZeros(logs_[0], second, second + kHeaderBytes), logs_[1])
          .status(),
      StatusIs(absl::StatusCode::kDataLoss, HasSubstr("is damaged at byte")));
}

// Logs before a gap may be in tables already and not yet removed.
TEST_F(LogNumbersTest, BeginBehindAGapBetweenLogs) {
  const std::string& log = logs_[0];
  for (const std::string& earlier :
       {log.substr(0, log.size() - 100), log.substr(0, log.size() / 2),
        WithZeros(log, log.size() - 1000, log.size())}) {
    ASSERT_OK_AND_ASSIGN(const LogNumbers numbers, Numbers(earlier, logs_[1]));
    EXPECT_EQ(numbers.first, 4u);
    EXPECT_EQ(numbers.last, 6u);
  }
}

TEST_F(LogNumbersTest, LogsInAnotherOrderAreSeen) {
  for (const auto& [earlier, later] :
       {std::pair(logs_[1], logs_[0]), std::pair(logs_[0], logs_[0])}) {
    EXPECT_THAT(Numbers(earlier, later).status(),
                StatusIs(absl::StatusCode::kDataLoss,
                         HasSubstr("or not where it belongs")));
  }
  const std::string small = LogOf({100, 100});
  EXPECT_THAT(Numbers(small + small, "").status(),
              StatusIs(absl::StatusCode::kDataLoss,
                       HasSubstr("or not where it belongs")));
}

// A kill during a flush leaves a log that is closed and synced but not yet in a
// table; the manifest tells.
TEST_F(LogNumbersTest, TablesAreToldBesideTwoLogs) {
  rocksdb::Options options;
  options.create_if_missing = true;
  options.track_and_verify_wals_in_manifest = true;
  options.write_buffer_size = 64 << 10;
  rocksdb::DB* opened = nullptr;
  ASSERT_TRUE(rocksdb::DB::Open(options, directory_ / "db", &opened).ok());
  const std::unique_ptr<rocksdb::DB> db(opened);
  rocksdb::WriteOptions synced;
  synced.sync = true;
  const auto put = [&](int count) {
    for (int i = 0; i < count; ++i) {
      ASSERT_TRUE(db->Put(synced, "key", std::string(20000, 'x')).ok());
    }
  };
  put(2);
  ASSERT_TRUE(db->Flush({}).ok());
  ASSERT_TRUE(db->PauseBackgroundWork().ok());
  put(6);
  std::filesystem::copy(directory_ / "db", directory_ / "killed");
  ASSERT_TRUE(db->ContinueBackgroundWork().ok());
  ASSERT_OK_AND_ASSIGN(const LogNumbers in_logs,
                       NumbersInLogs(directory_ / "killed", Files()));
  EXPECT_EQ(in_logs.first, 3u);
  EXPECT_EQ(in_logs.last, 8u);
  ASSERT_OK_AND_ASSIGN(const std::uint64_t in_tables,
                       LastNumberInTables(directory_ / "killed",
                                          DatabaseResources::Make(Files())));
  EXPECT_EQ(in_tables, 2u);
}

// Its numbers are assigned again.
TEST_F(LogNumbersTest, AWriteThatFailedIsNotMissed) {
  const std::vector<std::string> shorter = SplitLogOf(2, 3, 20000);
  ASSERT_OK_AND_ASSIGN(LogNumbers numbers, Numbers(logs_[0], shorter[1]));
  EXPECT_EQ(numbers.last, 5u);
  // Only part of the write reached the disk.
  ASSERT_OK_AND_ASSIGN(
      numbers, Numbers(logs_[0].substr(0, logs_[0].size() - 100), shorter[1]));
  EXPECT_EQ(numbers.last, 5u);
}

TEST(LogTailTest, WholeLogsAreNotTorn) {
  for (const std::vector<std::size_t>& sizes :
       std::vector<std::vector<std::size_t>>{
           {},
           {10},
           {10, 1000, 20},
           {100000, 10},
           // A block without room for another header, and one with just enough.
           {32768 - 7 - 26 - 6, 5},
           {32768 - 7 - 26 - 7, 5}}) {
    EXPECT_EQ(FindTornTail(LogOf(sizes)), std::nullopt);
  }
}

std::size_t EndOfWrites(const std::string& log) {
  return ForEachWrite(log, [](std::size_t, absl::string_view) { return true; });
}

// RocksDB detects these itself.
TEST(LogTailTest, LogsThatEndEarlyAreLeftAlone) {
  for (const std::size_t last : {2000, 70000}) {
    const std::string log = LogOf({10, last});
    for (std::size_t size = 0; size < log.size(); size += last / 400) {
      const std::string cut = log.substr(0, size);
      EXPECT_EQ(FindTornTail(cut), std::nullopt) << size;
      EXPECT_TRUE(EndsEarly(cut, EndOfWrites(cut))) << size;
    }
  }
}

TEST(LogTailTest, WhatIsDamagedDoesNotEndEarly) {
  const std::string log = LogOf({10, 2000, 70000, 10});
  // Except at the lengths of the last record, which could belong to a longer
  // one.
  const std::size_t end = LastWriteOf({10, 2000, 70000, 10});
  for (std::size_t at = 0; at < end; at += 97) {
    std::string damaged = log;
    damaged[at] = static_cast<char>(damaged[at] ^ 1);
    EXPECT_FALSE(EndsEarly(damaged, EndOfWrites(damaged))) << at;
  }
}

TEST(LogTailTest, ZerosInTheLastWriteAreATornTail) {
  const std::vector<std::size_t> sizes = {10, 3000};
  const std::string log = LogOf(sizes);
  const std::size_t begin = LastWriteOf(sizes);
  // The whole write, the write and more, its first part, and one sector of it.
  EXPECT_EQ(FindTornTail(WithZeros(log, begin, log.size())), begin);
  EXPECT_EQ(FindTornTail(WithZeros(log, begin, log.size()) +
                         std::string(40000, '\0')),
            begin);
  EXPECT_EQ(FindTornTail(WithZeros(log, begin, kSectorBytes)), begin);
  EXPECT_EQ(FindTornTail(WithZeros(log, 2 * kSectorBytes, 3 * kSectorBytes)),
            begin);
  // The end of the write.
  EXPECT_EQ(FindTornTail(WithZeros(
                log, log.size() / kSectorBytes * kSectorBytes, log.size())),
            begin);
}

TEST(LogTailTest, ZerosFromSomewhereOnAreATornTail) {
  const std::vector<std::size_t> sizes = {10, 300};
  const std::string log = LogOf(sizes);
  const std::size_t begin = LastWriteOf(sizes);
  for (std::size_t at = begin; at + 8 <= log.size(); ++at) {
    EXPECT_EQ(FindTornTail(WithZeros(log, at, log.size())), begin) << at;
    EXPECT_EQ(FindTornTail(log.substr(0, at) + std::string(700, '\0')), begin)
        << at;
  }
}

TEST(LogTailTest, ZerosInAWriteOfSeveralBlocksAreATornTail) {
  const std::vector<std::size_t> sizes = {10, 100000};
  const std::string log = LogOf(sizes);
  const std::size_t begin = LastWriteOf(sizes);
  for (std::size_t at = kSectorBytes; at + kSectorBytes < log.size();
       at += 7 * kSectorBytes) {
    EXPECT_EQ(FindTornTail(WithZeros(log, at, at + kSectorBytes)), begin) << at;
  }
}

TEST(LogTailTest, AWriteBeforeAnotherWasSynced) {
  const std::string log = LogOf({10, 3000, 40});
  EXPECT_EQ(FindTornTail(WithZeros(log, kSectorBytes, 2 * kSectorBytes)),
            std::nullopt);
  // Also if its length is lost and the next write is found in the next block.
  const std::string blocks = LogOf({10, 40000, 40});
  EXPECT_EQ(FindTornTail(WithZeros(blocks, 0, kSectorBytes)), std::nullopt);
}

TEST(LogTailTest, OtherDamageIsNotATornTail) {
  const std::vector<std::size_t> sizes = {10, 3000};
  const std::string log = LogOf(sizes);
  for (std::size_t at = 0; at < log.size(); at += 11) {
    std::string damaged = log;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x20);
    EXPECT_EQ(FindTornTail(damaged), std::nullopt) << at;
  }
  // Zeros, but fewer than a sector, or not at the end.
  const std::size_t begin = LastWriteOf(sizes);
  EXPECT_EQ(FindTornTail(WithZeros(log, begin, begin + kHeaderBytes)),
            std::nullopt);
  EXPECT_EQ(FindTornTail(WithZeros(log, 1000, 1400)), std::nullopt);
}

TEST(LogTailTest, WritesAreVisitedInOrder) {
  const std::vector<std::size_t> sizes = {10, 100000, 20, 30};
  const std::string log = LogOf(sizes);
  std::vector<std::size_t> begins;
  std::vector<std::size_t> found;
  const auto visit = [&](std::size_t begin, absl::string_view payload) {
    begins.push_back(begin);
    found.push_back(static_cast<std::size_t>(std::ranges::count(payload, 'x')));
    return found.size() < 3;
  };
  // The third write stops the iteration, so the end is at its beginning.
  EXPECT_EQ(ForEachWrite(log, visit), LogOf({10, 100000}).size());
  EXPECT_EQ(found, (std::vector<std::size_t>{10, 100000, 20}));
  EXPECT_EQ(begins, (std::vector<std::size_t>{0, LogOf({10}).size(),
                                              LogOf({10, 100000}).size()}));
  const auto all = [](std::size_t, absl::string_view) { return true; };
  EXPECT_EQ(ForEachWrite(log, all), log.size());
  EXPECT_EQ(ForEachWrite("", all), 0u);
  // Iterates up to the first incomplete write.
  EXPECT_EQ(ForEachWrite(log.substr(0, 90000), all), LogOf({10}).size());
}

TEST(LogTailTest, AnyBytesAreRead) {
  std::string bytes;
  std::uint64_t state = 1;
  for (int i = 0; i < 200; ++i) {
    for (int j = 0; j < 977; ++j) {
      state = state * 6364136223846793005 + 1442695040888963407;
      bytes.push_back(static_cast<char>(state >> 56));
    }
    EXPECT_LE(FindTornTail(bytes).value_or(0), bytes.size());
  }
}

TEST(LogTailTest, AHeaderMayBeTheLastOfABlock) {
  for (const std::size_t spare : {6, 7, 8}) {
    const std::string log = LogOf({32768 - 27 - spare, 100});
    int count = 0;
    std::size_t last = 0;
    EXPECT_EQ(ForEachWrite(log,
                           [&](std::size_t begin, absl::string_view) {
                             ++count;
                             last = begin;
                             return true;
                           }),
              log.size())
        << spare;
    EXPECT_EQ(last, spare < 7 ? 32768 : 32768 - spare) << spare;
    EXPECT_EQ(count, 2) << spare;
    EXPECT_EQ(FindTornTail(log), std::nullopt) << spare;
  }
}

}  // namespace
}  // namespace attendant
