#include "core/storage/rocks/open_rocks.h"

#include <rocksdb/cache.h>
#include <rocksdb/db.h>
#include <rocksdb/env.h>
#include <rocksdb/file_system.h>
#include <rocksdb/filter_policy.h>
#include <rocksdb/listener.h>
#include <rocksdb/metadata.h>
#include <rocksdb/options.h>
#include <rocksdb/table.h>
#include <rocksdb/write_buffer_manager.h>

#include <cstdarg>
#include <cstddef>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/base/fail_point.h"
#include "core/base/spare_time.h"
#include "core/base/status.h"
#include "core/storage/files/rocks_status.h"
#include "core/storage/rocks/table_properties.h"

namespace attendant {
namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;
constexpr std::size_t kWriteBufferBytes = 16 * kMiB;

// RocksDB's own log has nothing beyond the errors, and on a full disk it aborts
// the process (see CheckDiskSpace).
class NullLogger : public rocksdb::Logger {
 public:
  using rocksdb::Logger::Logv;
  void Logv(const char*, va_list) override {}
};

// Compaction yields to queries at once, instead of at the end of its time
// slice.
class LowShareOfCompaction : public rocksdb::EventListener {
 public:
  // Called on the compacting thread.
  void OnCompactionBegin(rocksdb::DB*,
                         const rocksdb::CompactionJobInfo&) override {
    TakeShare(Share::kLow);
  }
};

// Database takes back failed writes itself. RocksDB would resume by itself once
// there is space and begin another log for the write.
class NoRecoveryOfWrites : public rocksdb::EventListener {
 public:
  void OnErrorRecoveryBegin(rocksdb::BackgroundErrorReason reason,
                            rocksdb::Status /*error*/,
                            bool* auto_recovery) override {
    if (reason == rocksdb::BackgroundErrorReason::kWriteCallback) {
      *auto_recovery = false;
    }
  }
};

#ifndef ATTENDANT_NO_FAIL_POINTS
// Lets tests kill the process while RocksDB writes tables.
class TableFailPoints : public rocksdb::EventListener {
 public:
  void OnTableFileCreationStarted(
      const rocksdb::TableFileCreationBriefInfo&) override {
    ATTENDANT_FAIL_POINT("table.before_write");
  }
  void OnTableFileCreated(const rocksdb::TableFileCreationInfo&) override {
    ATTENDANT_FAIL_POINT("table.after_write");
  }
  void OnCompactionBegin(rocksdb::DB*,
                         const rocksdb::CompactionJobInfo&) override {
    ATTENDANT_FAIL_POINT("compaction.before_tables");
  }
  void OnCompactionCompleted(rocksdb::DB*,
                             const rocksdb::CompactionJobInfo&) override {
    ATTENDANT_FAIL_POINT("compaction.after_manifest");
  }
};
#endif

// Up to a thousand databases may be open at a time: the large budgets are
// shared, and each takes little for itself.
rocksdb::Options MakeOptions(const DatabaseResources& resources) {
  rocksdb::Options options;
  options.env = resources.env.get();
  // Damage must be found, not skipped.
  options.paranoid_checks = true;
  options.wal_recovery_mode =
      rocksdb::WALRecoveryMode::kTolerateCorruptedTailRecords;
  options.recycle_log_file_num = 0;
  options.track_and_verify_wals_in_manifest = true;
  options.verify_sst_unique_id_in_manifest = true;

  // RocksDB ends the process if the system has no threads for this.
  options.max_file_opening_threads = 1;

  options.write_buffer_manager = resources.write_buffers;
  options.write_buffer_size = kWriteBufferBytes;
  options.arena_block_size = 64 * 1024;
  options.max_write_buffer_number = 3;
  // Four times RocksDB's default, because each compaction of level 0 rewrites
  // the level below. Writes are slowed down correspondingly later.
  options.level0_file_num_compaction_trigger = 16;
  options.level0_slowdown_writes_trigger = 32;
  options.level0_stop_writes_trigger = 48;
  // Keys and values are floats, which don't compress.
  options.compression = rocksdb::kNoCompression;
  rocksdb::BlockBasedTableOptions table;
  table.block_cache = resources.block_cache;
  table.block_size = 16 * 1024;
  // The format that CheckTableProperties reads.
  table.format_version = 5;
  table.checksum = rocksdb::kXXH3;
  table.filter_policy.reset(rocksdb::NewBloomFilterPolicy(10));
  options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));

  options.max_open_files = 32;
  // Preallocation would reserve a write buffer's worth of disk for each log.
  options.allow_fallocate = false;
  options.max_manifest_file_size = kMiB;
  options.info_log = std::make_shared<NullLogger>();
  options.listeners.push_back(std::make_shared<LowShareOfCompaction>());
  options.listeners.push_back(std::make_shared<NoRecoveryOfWrites>());
#ifndef ATTENDANT_NO_FAIL_POINTS
  options.listeners.push_back(std::make_shared<TableFailPoints>());
#endif
  options.stats_dump_period_sec = 0;
  options.stats_persist_period_sec = 0;
  return options;
}

// Returns the names of the tables that would make RocksDB end the process. A
// crash may leave unfinished tables that the database doesn't need.
absl::StatusOr<std::vector<std::string>> FindBadTables(
    const std::string& directory, const Files& files) {
  ATTENDANT_ASSIGN_OR_RETURN(const std::vector<std::string> names,
                             files.ListDirectory(directory));
  std::vector<std::string> bad;
  for (const std::string& name : names) {
    if (!absl::EndsWith(name, ".sst")) continue;
    const absl::Status status =
        CheckTableProperties(files, absl::StrCat(directory, "/", name));
    if (absl::IsDataLoss(status)) {
      bad.push_back(name);
    } else if (!status.ok()) {
      return status;
    }
  }
  return bad;
}

class EmptyFile : public rocksdb::FSSequentialFile {
 public:
  rocksdb::IOStatus Read(std::size_t /*size*/,
                         const rocksdb::IOOptions& /*options*/,
                         rocksdb::Slice* result, char* /*scratch*/,
                         rocksdb::IODebugContext* /*debug*/) override {
    *result = rocksdb::Slice();
    return rocksdb::IOStatus::OK();
  }
  rocksdb::IOStatus Skip(std::uint64_t /*size*/) override {
    return rocksdb::IOStatus::OK();
  }
};

// A file system in which logs are empty and tables can't be opened. The logs
// must exist for RocksDB to compare with those in the manifest; if it compares
// none, it ends the process if the manifest has any.
class ManifestAlone : public rocksdb::FileSystemWrapper {
 public:
  using FileSystemWrapper::FileSystemWrapper;
  const char* Name() const override { return "ManifestAlone"; }
  rocksdb::IOStatus NewSequentialFile(
      const std::string& path, const rocksdb::FileOptions& options,
      std::unique_ptr<rocksdb::FSSequentialFile>* result,
      rocksdb::IODebugContext* debug) override {
    if (!absl::EndsWith(path, ".log")) {
      return FileSystemWrapper::NewSequentialFile(path, options, result, debug);
    }
    *result = std::make_unique<EmptyFile>();
    return rocksdb::IOStatus::OK();
  }
  rocksdb::IOStatus NewRandomAccessFile(
      const std::string& path, const rocksdb::FileOptions& options,
      std::unique_ptr<rocksdb::FSRandomAccessFile>* result,
      rocksdb::IODebugContext* debug) override {
    if (absl::EndsWith(path, ".sst")) {
      return rocksdb::IOStatus::IOError(path, "is not to be opened");
    }
    return FileSystemWrapper::NewRandomAccessFile(path, options, result, debug);
  }
};

// Returns what `open` returns. Tries again if RocksDB reports that direct I/O,
// which nobody requested, is not supported: it says so of a file that could not
// be opened at first but could a moment later.
absl::StatusOr<std::unique_ptr<rocksdb::DB>> Opened(
    const std::string& directory,
    absl::FunctionRef<rocksdb::Status(rocksdb::DB** db)> open) {
  rocksdb::DB* db = nullptr;
  rocksdb::Status status = open(&db);
  if (status.IsInvalidArgument() &&
      absl::StrContains(status.ToString(), "Direct I/O is not supported")) {
    status = open(&db);
  }
  if (status.ok()) return std::unique_ptr<rocksdb::DB>(db);
  return FromOpening(status, directory);
}

// The content of the manifest, as read by RocksDB.
struct Manifest {
  std::vector<rocksdb::LiveFileMetaData> tables;
  std::uint64_t last_number = 0;
};

absl::StatusOr<Manifest> ReadManifest(const std::string& directory,
                                      const DatabaseResources& resources) {
  rocksdb::Options options = MakeOptions(resources);
  const std::unique_ptr<rocksdb::Env> env = rocksdb::NewCompositeEnv(
      std::make_shared<ManifestAlone>(resources.files.file_system()));
  options.env = env.get();
  options.paranoid_checks = false;  // continues without tables
  options.skip_stats_update_on_db_open = true;
  options.verify_sst_unique_id_in_manifest = false;
  ATTENDANT_ASSIGN_OR_RETURN(const std::unique_ptr<rocksdb::DB> db,
                             Opened(directory, [&](rocksdb::DB** opened) {
                               return rocksdb::DB::OpenForReadOnly(
                                   options, directory, opened);
                             }));
  Manifest manifest;
  db->GetLiveFilesMetaData(&manifest.tables);
  manifest.last_number = db->GetLatestSequenceNumber();
  return manifest;
}

absl::Status CheckTables(const std::string& directory,
                         const DatabaseResources& resources) {
  ATTENDANT_ASSIGN_OR_RETURN(const std::vector<std::string> bad,
                             FindBadTables(directory, resources.files));
  if (bad.empty()) return absl::OkStatus();
  ATTENDANT_ASSIGN_OR_RETURN(const Manifest manifest,
                             ReadManifest(directory, resources));
  for (const rocksdb::LiveFileMetaData& table : manifest.tables) {
    for (const std::string& name : bad) {
      if (!absl::EndsWith(table.name, name)) continue;
      return absl::DataLossError(absl::StrCat("database ", directory,
                                              ": table ", name, " is damaged"));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<rocksdb::DB>> OpenRocks(
    const std::string& directory, const DatabaseResources& resources,
    bool create_if_missing) {
  ATTENDANT_RETURN_IF_ERROR(CheckTables(directory, resources));
  rocksdb::Options options = MakeOptions(resources);
  options.create_if_missing = create_if_missing;
  return Opened(directory, [&](rocksdb::DB** db) {
    return rocksdb::DB::Open(options, directory, db);
  });
}

absl::StatusOr<std::unique_ptr<rocksdb::DB>> OpenReader(
    const std::string& directory, const DatabaseResources& resources) {
  ATTENDANT_RETURN_IF_ERROR(CheckTables(directory, resources));
  return Opened(directory, [&](rocksdb::DB** db) {
    return rocksdb::DB::OpenForReadOnly(MakeOptions(resources), directory, db);
  });
}

absl::StatusOr<std::uint64_t> LastNumberInTables(
    const std::string& directory, const DatabaseResources& resources) {
  ATTENDANT_ASSIGN_OR_RETURN(const Manifest manifest,
                             ReadManifest(directory, resources));
  return manifest.last_number;
}

}  // namespace attendant
