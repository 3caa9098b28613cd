#include "core/storage/database.h"

#include <rocksdb/cache.h>
#include <rocksdb/db.h>
#include <rocksdb/filter_policy.h>
#include <rocksdb/iterator.h>
#include <rocksdb/options.h>
#include <rocksdb/table.h>
#include <rocksdb/write_batch.h>
#include <rocksdb/write_buffer_manager.h>

#include <cstring>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/base/status.h"
#include "core/storage/files.h"

namespace attendant {
namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;

rocksdb::Slice ToSlice(absl::string_view view) {
  return {view.data(), view.size()};
}

absl::string_view ToView(const rocksdb::Slice& slice) {
  return {slice.data(), slice.size()};
}

const std::string& SequenceKey() {
  static const auto* const key = new std::string(1, kSequenceTag);
  return *key;
}

absl::Status FromRocks(const rocksdb::Status& status,
                       absl::string_view directory) {
  if (status.ok()) return absl::OkStatus();
  const std::string message =
      absl::StrCat("database ", directory, ": ", status.ToString());
  if (status.IsNoSpace()) {
    return StatusWithReason(absl::StatusCode::kResourceExhausted, message,
                            "DISK_FULL");
  }
  if (status.IsMemoryLimit()) return absl::ResourceExhaustedError(message);
  if (status.IsCorruption()) return absl::DataLossError(message);
  return absl::InternalError(message);
}

// Up to a thousand of these are open at a time: the budgets that matter are
// shared, and what each takes for itself is small.
rocksdb::Options MakeOptions(const DatabaseResources& resources) {
  rocksdb::Options options;
  // Damage must be found, not skipped.
  options.paranoid_checks = true;
  options.wal_recovery_mode =
      rocksdb::WALRecoveryMode::kTolerateCorruptedTailRecords;
  options.recycle_log_file_num = 0;
  options.track_and_verify_wals_in_manifest = true;
  options.verify_sst_unique_id_in_manifest = true;

  options.write_buffer_manager = resources.write_buffers;
  options.write_buffer_size = 16 * kMiB;
  options.arena_block_size = 64 * 1024;
  options.max_write_buffer_number = 3;
  // Keys and values are floats, which don't compress.
  options.compression = rocksdb::kNoCompression;
  rocksdb::BlockBasedTableOptions table;
  table.block_cache = resources.block_cache;
  table.block_size = 16 * 1024;
  table.filter_policy.reset(rocksdb::NewBloomFilterPolicy(10));
  options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));

  options.max_open_files = 32;
  // Preallocation would reserve a write buffer's worth of disk for each log.
  options.allow_fallocate = false;
  options.max_manifest_file_size = 16 * kMiB;
  options.info_log_level = rocksdb::InfoLogLevel::WARN_LEVEL;
  options.max_log_file_size = kMiB;
  options.keep_log_file_num = 2;
  options.stats_dump_period_sec = 0;
  options.stats_persist_period_sec = 0;
  return options;
}

bool IsDataFile(absl::string_view name) {
  return absl::EndsWith(name, ".sst") || absl::EndsWith(name, ".log");
}

// RocksDB takes a directory without CURRENT for a new database and deletes the
// files that it finds there.
absl::Status CheckCurrent(const std::string& directory, Database::Mode mode) {
  if (PathExists(directory + "/CURRENT")) return absl::OkStatus();
  ATTENDANT_ASSIGN_OR_RETURN(const std::vector<std::string> names,
                             ListDirectory(directory));
  bool lost = mode == Database::Mode::kMustExist;
  for (const std::string& name : names) lost = lost || IsDataFile(name);
  if (!lost) return absl::OkStatus();
  return absl::DataLossError(
      absl::StrCat("database ", directory, ": its file CURRENT is missing"));
}

absl::StatusOr<std::unique_ptr<rocksdb::DB>> OpenRocks(
    const std::string& directory, const DatabaseResources& resources) {
  rocksdb::Options options = MakeOptions(resources);
  options.create_if_missing = true;
  rocksdb::DB* db = nullptr;
  const rocksdb::Status status = rocksdb::DB::Open(options, directory, &db);
  if (status.ok()) return std::unique_ptr<rocksdb::DB>(db);
  const std::string text = status.ToString();
  if (absl::StrContains(text, "lock hold by current process") ||
      absl::StrContains(text, "While lock file")) {
    return absl::FailedPreconditionError(
        absl::StrCat("database ", directory, " is open already: ", text));
  }
  // A file that the manifest names and that is not there.
  if (status.IsPathNotFound()) {
    return absl::DataLossError(
        absl::StrCat("database ", directory, ": ", text));
  }
  return FromRocks(status, directory);
}

}  // namespace

DatabaseResources DatabaseResources::Make() {
  DatabaseResources resources;
  resources.block_cache = rocksdb::NewLRUCache(64 * kMiB);
  resources.write_buffers =
      std::make_shared<rocksdb::WriteBufferManager>(64 * kMiB);
  return resources;
}

Database::Database(std::string directory, std::unique_ptr<rocksdb::DB> db,
                   AcknowledgedMark mark)
    : directory_(std::move(directory)),
      db_(std::move(db)),
      mark_(std::move(mark)) {}

Database::~Database() = default;

absl::StatusOr<std::unique_ptr<Database>> Database::Open(
    const std::string& directory, Mode mode,
    const DatabaseResources& resources) {
  ATTENDANT_RETURN_IF_ERROR(CheckCurrent(directory, mode));
  ATTENDANT_RETURN_IF_ERROR(MakeDirectory(directory));
  ATTENDANT_ASSIGN_OR_RETURN(std::unique_ptr<rocksdb::DB> db,
                             OpenRocks(directory, resources));
  ATTENDANT_ASSIGN_OR_RETURN(
      AcknowledgedMark mark,
      AcknowledgedMark::Open(directory + "/ACKNOWLEDGED"));
  std::unique_ptr<Database> database(
      new Database(directory, std::move(db), std::move(mark)));
  ATTENDANT_RETURN_IF_ERROR(database->ReadSequence());
  return database;
}

absl::Status Database::ReadSequence() {
  std::int64_t sequence = 0;
  ATTENDANT_ASSIGN_OR_RETURN(const std::optional<std::string> bytes,
                             Get(SequenceKey()));
  if (bytes.has_value()) {
    if (bytes->size() != sizeof(sequence)) {
      return absl::DataLossError(absl::StrCat(
          "database ", directory_, ": the stored sequence is damaged"));
    }
    std::memcpy(&sequence, bytes->data(), sizeof(sequence));
  }
  MutexLock lock(&mutex_);
  if (sequence < mark_.sequence()) {
    return absl::DataLossError(absl::StrCat(
        "database ", directory_, ": acknowledged writes are lost: found up to ",
        sequence, ", acknowledged were ", mark_.sequence()));
  }
  sequence_.store(sequence);
  return absl::OkStatus();
}

absl::Status Database::Write(rocksdb::WriteBatch* batch,
                             std::optional<std::int64_t> sequence) {
  MutexLock lock(&mutex_);
  if (sequence.has_value()) {
    if (*sequence <= sequence_.load()) {
      return absl::InternalError(absl::StrCat("database ", directory_,
                                              ": sequence ", *sequence,
                                              " after ", sequence_.load()));
    }
    batch->Put(SequenceKey(),
               rocksdb::Slice(reinterpret_cast<const char*>(&*sequence),
                              sizeof(*sequence)));
  }
  if (!failure_.ok() && !db_->Resume().ok()) return failure_;
  rocksdb::WriteOptions options;
  options.sync = true;
  failure_ = FromRocks(db_->Write(options, batch), directory_);
  if (!failure_.ok()) return failure_;
  if (sequence.has_value()) {
    sequence_.store(*sequence);
    mark_.Advance(*sequence);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::optional<std::string>> Database::Get(
    absl::string_view key) const {
  std::string value;
  const rocksdb::Status status =
      db_->Get(rocksdb::ReadOptions(), ToSlice(key), &value);
  if (status.IsNotFound()) return std::nullopt;
  ATTENDANT_RETURN_IF_ERROR(FromRocks(status, directory_));
  return value;
}

absl::Status Database::Scan(
    absl::string_view begin, absl::string_view end,
    const std::function<bool(absl::string_view key, absl::string_view value)>&
        visit) const {
  const rocksdb::Slice upper_bound = ToSlice(end);
  rocksdb::ReadOptions options;
  options.iterate_upper_bound = &upper_bound;
  options.fill_cache = false;
  const std::unique_ptr<rocksdb::Iterator> at(db_->NewIterator(options));
  for (at->Seek(ToSlice(begin)); at->Valid(); at->Next()) {
    if (!visit(ToView(at->key()), ToView(at->value()))) return absl::OkStatus();
  }
  return FromRocks(at->status(), directory_);
}

absl::StatusOr<std::optional<std::string>> Database::LastKey(
    absl::string_view begin, absl::string_view end) const {
  const rocksdb::Slice lower_bound = ToSlice(begin);
  const rocksdb::Slice upper_bound = ToSlice(end);
  rocksdb::ReadOptions options;
  options.iterate_lower_bound = &lower_bound;
  options.iterate_upper_bound = &upper_bound;
  const std::unique_ptr<rocksdb::Iterator> at(db_->NewIterator(options));
  at->SeekToLast();
  ATTENDANT_RETURN_IF_ERROR(FromRocks(at->status(), directory_));
  if (!at->Valid()) return std::nullopt;
  return at->key().ToString();
}

}  // namespace attendant
