// kill -9 while writes stream in. Acknowledged writes are there afterwards; an
// unacknowledged one is there completely or not at all. The page cache outlives
// the process, so this tests the order of acknowledgement and logging, not that
// the disk was synced.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "client/api/importer.h"
#include "core/base/mutex.h"
#include "tests/integration/requests.h"
#include "tests/integration/server_process.h"
#include "tests/support/sanitized.h"
#include "tests/support/scratch_directory.h"
#include "tests/support/status_matchers.h"

namespace attendant {
namespace {

constexpr std::uint64_t kSeed = 20240611;
constexpr int kKillCount = kSanitized ? 6 : 12;
constexpr int kWriterCount = 3;
constexpr int kIdsPerWriter = 100;
constexpr char kCatalog[] = "kept";

using Versions = std::map<std::string, std::int64_t>;

v1::Item VersionedItem(const std::string& id, std::int64_t version) {
  v1::Item item = ItemOf(id, "key", {static_cast<double>(version), 1});
  (*item.mutable_attributes())["version"].set_int64_value(version);
  return item;
}

// One write of a writer.
struct Write {
  std::string request_id;
  std::int64_t version = 0;  // of the items; 0 if deleted
  std::vector<std::string> ids;

  void ApplyTo(Versions& state) const {
    for (const std::string& id : ids) {
      if (version == 0) {
        state.erase(id);
      } else {
        state[id] = version;
      }
    }
  }

  absl::Status Send(Client& client) const {
    if (version == 0) {
      return client.BatchDeleteItems(DeleteOf(kCatalog, ids, request_id))
          .status();
    }
    std::vector<v1::Item> items;
    for (const std::string& id : ids) {
      items.push_back(VersionedItem(id, version));
    }
    return client.BatchUpsertItems(UpsertOf(kCatalog, items, request_id))
        .status();
  }
};

// Wakes a waiting thread when the first write of a round is acknowledged.
class FirstAcknowledgement {
 public:
  void Notify() {
    MutexLock lock(&mutex_);
    happened_ = true;
    changed_.NotifyAll();
  }
  void Wait() {
    MutexLock lock(&mutex_);
    while (!happened_) changed_.Wait(&mutex_);
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  bool happened_ ABSL_GUARDED_BY(mutex_) = false;
};

// Writes batches of upserts and deletes to ids of its own until a write fails,
// and keeps the log of what was acknowledged outside the server.
class Writer {
 public:
  explicit Writer(int number)
      : prefix_(absl::StrCat("writer", number, "-")), random_(kSeed + number) {}

  void WriteUntilKilled(Client& client, FirstAcknowledgement& first) {
    unfinished_ = Write();
    while (true) {
      const Write write = NextWrite();
      const absl::Status sent = write.Send(client);
      if (!sent.ok()) {
        EXPECT_EQ(sent.code(), absl::StatusCode::kUnavailable) << sent;
        unfinished_ = write;
        first.Notify();  // Nobody waits for a writer that failed at once.
        return;
      }
      write.ApplyTo(acknowledged_);
      ++acknowledged_count_;
      first.Notify();
    }
  }

  // `stored` is what the server holds of this writer's ids after a restart. The
  // write whose reply was lost is then sent again.
  void CheckAndRepeat(const Versions& stored, Client& client) {
    Versions with_unfinished = acknowledged_;
    unfinished_.ApplyTo(with_unfinished);
    // Equality with either is the whole claim: nothing acknowledged is lost, no
    // delete is undone, and the unfinished write is visible completely or not
    // at all.
    EXPECT_TRUE(stored == acknowledged_ || stored == with_unfinished)
        << prefix_ << " seed " << kSeed << ": stored "
        << ::testing::PrintToString(stored) << "\nacknowledged "
        << ::testing::PrintToString(acknowledged_) << "\nunfinished "
        << ::testing::PrintToString(with_unfinished);
    ASSERT_OK(unfinished_.Send(client));
    acknowledged_ = with_unfinished;
  }

  const std::string& prefix() const { return prefix_; }
  const Versions& acknowledged() const { return acknowledged_; }
  std::int64_t acknowledged_count() const { return acknowledged_count_; }

 private:
  Write NextWrite() {
    Write write;
    ++write_count_;
    write.request_id = absl::StrCat(prefix_, write_count_);
    write.version = random_() % 4 == 0 ? 0 : write_count_;
    const std::int64_t begin = random_() % kIdsPerWriter;
    const std::int64_t count = 1 + random_() % 32;
    for (std::int64_t i = begin; i < begin + count; ++i) {
      write.ids.push_back(absl::StrCat(prefix_, i % kIdsPerWriter));
    }
    return write;
  }

  const std::string prefix_;
  std::mt19937_64 random_;
  std::int64_t write_count_ = 0;
  std::int64_t acknowledged_count_ = 0;
  Versions acknowledged_;
  Write unfinished_;
};

// Imports new items until the stream fails; returns how many of them, from the
// first, were acknowledged.
std::int64_t ImportUntilKilled(Client& client, const std::string& prefix) {
  ImportOptions options;
  options.batch_item_count = 16;
  const std::unique_ptr<Importer> importer =
      client.StartImport(kCatalog, options);
  for (std::int64_t i = 0;; ++i) {
    if (!importer->Add(VersionedItem(absl::StrCat(prefix, i), 1)).ok()) break;
  }
  EXPECT_EQ(importer->progress().refused_count, 0);
  return importer->progress().acknowledged_count;
}

Versions WithPrefix(const Versions& all, const std::string& prefix) {
  Versions part;
  for (const auto& [id, version] : all) {
    if (absl::StartsWith(id, prefix)) part[id] = version;
  }
  return part;
}

TEST(KillTest, AcknowledgedWritesSurviveAndUnfinishedOnesAreWhole) {
  SCOPED_TRACE(absl::StrCat("seed ", kSeed));
  std::mt19937_64 random(kSeed);
  const ScratchDirectory data;
  std::vector<Writer> writers;
  for (int i = 0; i < kWriterCount; ++i) writers.emplace_back(i);
  std::map<std::string, std::int64_t> imported;  // acknowledged, by prefix

  {
    ASSERT_OK_AND_ASSIGN(const auto server, ServerProcess::Start(data.path()));
    ASSERT_OK_AND_ASSIGN(const auto client, server->Connect());
    ASSERT_OK(CreateCatalog(*client, kCatalog,
                            {KeyFieldOf("key", 2, v1::SCORE_KIND_DOT)}));
    server->Kill();
  }
  for (int round = 0; round < kKillCount; ++round) {
    SCOPED_TRACE(absl::StrCat("round ", round));
    {
      ASSERT_OK_AND_ASSIGN(const auto server,
                           ServerProcess::Start(data.path()));
      ASSERT_OK_AND_ASSIGN(const auto client, server->Connect());
      FirstAcknowledgement first;
      std::vector<std::thread> threads;
      for (Writer& writer : writers) {
        threads.emplace_back([&] { writer.WriteUntilKilled(*client, first); });
      }
      const std::string prefix = absl::StrCat("import", round, "-");
      std::int64_t& imported_count = imported[prefix];
      threads.emplace_back(
          [&] { imported_count = ImportUntilKilled(*client, prefix); });
      first.Wait();
      // This sleep does not synchronise: the moment of the kill is random
      // input.
      std::this_thread::sleep_for(std::chrono::microseconds(random() % 150000));
      server->Kill();
      for (std::thread& thread : threads) thread.join();
    }
    ASSERT_OK_AND_ASSIGN(const auto server, ServerProcess::Start(data.path()));
    ASSERT_OK_AND_ASSIGN(const auto client, server->Connect());
    ASSERT_OK_AND_ASSIGN(const Versions all, ListVersions(*client, kCatalog));
    for (Writer& writer : writers) {
      writer.CheckAndRepeat(WithPrefix(all, writer.prefix()), *client);
    }
    for (const auto& [prefix, count] : imported) {
      for (std::int64_t i = 0; i < count; ++i) {
        ASSERT_TRUE(all.contains(absl::StrCat(prefix, i)))
            << prefix << i << " of " << count;
      }
    }
    // The repeated writes are now applied, each once.
    ASSERT_OK_AND_ASSIGN(const Versions repeated,
                         ListVersions(*client, kCatalog));
    for (const Writer& writer : writers) {
      EXPECT_EQ(WithPrefix(repeated, writer.prefix()), writer.acknowledged());
    }
    server->Kill();
  }
  // The kills interrupted writers at work.
  for (const Writer& writer : writers) {
    EXPECT_GT(writer.acknowledged_count(), kKillCount);
  }
}

}  // namespace
}  // namespace attendant
