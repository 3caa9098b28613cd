#include "core/storage/database.h"

#include <rocksdb/cache.h>
#include <rocksdb/db.h>
#include <rocksdb/env.h>
#include <rocksdb/filter_policy.h>
#include <rocksdb/iterator.h>
#include <rocksdb/listener.h>
#include <rocksdb/options.h>
#include <rocksdb/snapshot.h>
#include <rocksdb/table.h>
#include <rocksdb/utilities/checkpoint.h>
#include <rocksdb/write_batch.h>
#include <rocksdb/write_buffer_manager.h>
#include <xxhash.h>

#include <algorithm>
#include <cstdarg>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "core/base/fail_point.h"
#include "core/base/spare_time.h"
#include "core/base/status.h"
#include "core/storage/log_tail.h"

namespace attendant {
namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;
constexpr std::size_t kWriteBufferBytes = 16 * kMiB;

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

// EMFILE or ENFILE, of which RocksDB keeps only the text.
bool IsTooManyOpenFiles(const rocksdb::Status& status) {
  return absl::StrContains(status.ToString(), "Too many open files");
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
  if (IsTooManyOpenFiles(status)) return TooManyOpenFiles(message);
  if (status.IsMemoryLimit()) return absl::ResourceExhaustedError(message);
  if (status.IsCorruption()) return absl::DataLossError(message);
  return absl::InternalError(message);
}

absl::Status FromOpening(const rocksdb::Status& status,
                         absl::string_view directory) {
  if (IsTooManyOpenFiles(status)) return FromRocks(status, directory);
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

// RocksDB's own log says nothing that the errors don't, and on a full disk it
// aborts the process (see CheckDiskSpace).
class NullLogger : public rocksdb::Logger {
 public:
  using rocksdb::Logger::Logv;
  void Logv(const char*, va_list) override {}
};

// Compaction makes way for queries at once, and not when its slice is over.
class LowShareOfCompaction : public rocksdb::EventListener {
 public:
  // On the thread that does it.
  void OnCompactionBegin(rocksdb::DB*,
                         const rocksdb::CompactionJobInfo&) override {
    TakeShare(Share::kLow);
  }
};

#ifndef ATTENDANT_NO_FAIL_POINTS
// Where tests let the process die while RocksDB writes tables.
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

// Up to a thousand of these are open at a time: the budgets that matter are
// shared, and what each takes for itself is small.
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

  options.write_buffer_manager = resources.write_buffers;
  options.write_buffer_size = kWriteBufferBytes;
  options.arena_block_size = 64 * 1024;
  options.max_write_buffer_number = 3;
  // Twice RocksDB's default: each time, what lies below is written again.
  options.level0_file_num_compaction_trigger = 8;
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
  options.max_manifest_file_size = kMiB;
  options.info_log = std::make_shared<NullLogger>();
  options.listeners.push_back(std::make_shared<LowShareOfCompaction>());
#ifndef ATTENDANT_NO_FAIL_POINTS
  options.listeners.push_back(std::make_shared<TableFailPoints>());
#endif
  options.stats_dump_period_sec = 0;
  options.stats_persist_period_sec = 0;
  return options;
}

bool IsDataFile(absl::string_view name) {
  return absl::EndsWith(name, ".sst") || absl::EndsWith(name, ".log");
}

// RocksDB takes a directory without CURRENT for a new database and deletes the
// files that it finds there.
absl::Status CheckCurrent(const std::string& directory, Database::Mode mode,
                          const Files& files) {
  if (files.PathExists(directory + "/CURRENT")) return absl::OkStatus();
  ATTENDANT_ASSIGN_OR_RETURN(const std::vector<std::string> names,
                             files.ListDirectory(directory));
  bool lost = mode == Database::Mode::kMustExist;
  for (const std::string& name : names) lost = lost || IsDataFile(name);
  if (!lost) return absl::OkStatus();
  return absl::DataLossError(
      absl::StrCat("database ", directory, ": its file CURRENT is missing"));
}

// Opening writes what the logs hold to tables.
absl::Status CheckSpaceToOpen(const std::string& directory, const Files& files,
                              DiskReserve reserve) {
  ATTENDANT_ASSIGN_OR_RETURN(const std::vector<std::string> names,
                             files.ListDirectory(directory));
  std::uint64_t log_bytes = 0;
  for (const std::string& name : names) {
    if (!absl::EndsWith(name, ".log")) continue;
    std::error_code error;
    const std::uintmax_t size =
        std::filesystem::file_size(directory + "/" + name, error);
    if (!error) log_bytes += size;
  }
  return CheckDiskSpace(directory, log_bytes, reserve);
}

absl::StatusOr<std::unique_ptr<rocksdb::DB>> OpenRocks(
    const std::string& directory, const DatabaseResources& resources) {
  rocksdb::Options options = MakeOptions(resources);
  options.create_if_missing = true;
  rocksdb::DB* db = nullptr;
  const rocksdb::Status status = rocksdb::DB::Open(options, directory, &db);
  if (status.ok()) return std::unique_ptr<rocksdb::DB>(db);
  return FromOpening(status, directory);
}

// Writes nothing at all.
absl::StatusOr<std::unique_ptr<rocksdb::DB>> OpenReader(
    const std::string& directory, const DatabaseResources& resources) {
  rocksdb::DB* db = nullptr;
  const rocksdb::Status status =
      rocksdb::DB::OpenForReadOnly(MakeOptions(resources), directory, &db);
  if (status.ok()) return std::unique_ptr<rocksdb::DB>(db);
  return FromOpening(status, directory);
}

// The number in MANIFEST-NUMBER, or 0.
std::uint64_t ManifestNumber(absl::string_view name) {
  name = absl::StripAsciiWhitespace(name);
  absl::ConsumePrefix(&name, "/");
  std::uint64_t number = 0;
  if (!absl::ConsumePrefix(&name, "MANIFEST-") ||
      !absl::SimpleAtoi(name, &number)) {
    return 0;
  }
  return number;
}

// Of the first `size` bytes of a manifest; nothing if it has less.
absl::StatusOr<std::optional<std::uint64_t>> HashManifest(
    const std::string& directory, const Files& files, std::uint64_t number,
    std::uint64_t size) {
  ATTENDANT_ASSIGN_OR_RETURN(
      const std::optional<std::string> bytes,
      files.ReadFile(absl::StrFormat("%s/MANIFEST-%06d", directory, number)));
  if (!bytes.has_value() || bytes->size() < size) return std::nullopt;
  return XXH3_64bits(bytes->data(), size);
}

// RocksDB drops the end of a manifest from a damaged length on, and deletes the
// tables that it then does not know.
absl::Status CheckManifest(const std::string& directory, const Files& files,
                           const Acknowledged& acknowledged) {
  ATTENDANT_ASSIGN_OR_RETURN(const std::optional<std::string> current,
                             files.ReadFile(directory + "/CURRENT"));
  if (!current.has_value() || acknowledged.manifest_number == 0 ||
      ManifestNumber(*current) != acknowledged.manifest_number) {
    return absl::OkStatus();
  }
  ATTENDANT_ASSIGN_OR_RETURN(
      const std::optional<std::uint64_t> hash,
      HashManifest(directory, files, acknowledged.manifest_number,
                   acknowledged.manifest_bytes));
  if (hash == acknowledged.manifest_hash) return absl::OkStatus();
  return absl::DataLossError(
      absl::StrCat("database ", directory, ": its manifest is damaged"));
}

// Cuts off what a power cut left of a last write that was never synced. True
// if there was any.
absl::StatusOr<bool> CutTornTail(const std::string& path, const Files& files) {
  ATTENDANT_ASSIGN_OR_RETURN(const std::optional<std::string> bytes,
                             files.ReadFile(path));
  if (!bytes.has_value()) return false;
  const std::optional<std::size_t> tail = FindTornTail(*bytes);
  if (!tail.has_value()) return false;
  ATTENDANT_RETURN_IF_ERROR(
      files.ReplaceFile(path, absl::string_view(*bytes).substr(0, *tail)));
  return true;
}

// The greatest of the logs in a directory by number, which have leading zeros;
// empty if there is none.
std::string LastLog(const std::vector<std::string>& names) {
  std::string last;
  for (const std::string& name : names) {
    if (absl::EndsWith(name, ".log")) last = std::max(last, name);
  }
  return last;
}

// Finds the sequence that a batch stores.
class SequenceOfBatch : public rocksdb::WriteBatch::Handler {
 public:
  void Put(const rocksdb::Slice& key, const rocksdb::Slice& value) override {
    if (key != SequenceKey() || value.size() != sizeof(sequence_)) return;
    std::memcpy(&sequence_, value.data(), sizeof(sequence_));
  }
  void Delete(const rocksdb::Slice&) override {}
  std::int64_t sequence() const { return sequence_; }

 private:
  std::int64_t sequence_ = 0;
};

// Cuts the writes after `sequence` off the last log: those that failed, and
// reached it all the same.
absl::Status CutFailedWrites(const std::string& directory, const Files& files,
                             std::int64_t sequence) {
  ATTENDANT_ASSIGN_OR_RETURN(const std::vector<std::string> names,
                             files.ListDirectory(directory));
  const std::string last = LastLog(names);
  if (last.empty()) return absl::OkStatus();
  const std::string path = absl::StrCat(directory, "/", last);
  ATTENDANT_ASSIGN_OR_RETURN(const std::optional<std::string> log,
                             files.ReadFile(path));
  if (!log.has_value()) return absl::OkStatus();
  bool failed = false;
  const std::size_t end =
      ForEachWrite(*log, [&](std::size_t, absl::string_view payload) {
        SequenceOfBatch found;
        const rocksdb::WriteBatch batch((std::string(payload)));
        failed = batch.Iterate(&found).ok() && found.sequence() > sequence;
        return !failed;
      });
  if (!failed) return absl::OkStatus();
  return files.ReplaceFile(path, absl::string_view(*log).substr(0, end));
}

// In the last log and the manifest: before a log or a manifest is followed by
// another, it is synced.
absl::StatusOr<bool> CutTornTails(const std::string& directory,
                                  const Files& files) {
  ATTENDANT_ASSIGN_OR_RETURN(const std::vector<std::string> names,
                             files.ListDirectory(directory));
  bool any = false;
  if (const std::string last = LastLog(names); !last.empty()) {
    ATTENDANT_ASSIGN_OR_RETURN(
        any, CutTornTail(absl::StrCat(directory, "/", last), files));
  }
  ATTENDANT_ASSIGN_OR_RETURN(const std::optional<std::string> current,
                             files.ReadFile(directory + "/CURRENT"));
  if (!current.has_value()) return any;
  ATTENDANT_ASSIGN_OR_RETURN(
      const bool cut, CutTornTail(absl::StrFormat("%s/MANIFEST-%06d", directory,
                                                  ManifestNumber(*current)),
                                  files));
  return any || cut;
}

// Opens the database, for writing or only to read. What looks damaged may be
// what a power cut left of a write that was under way: then once more without
// that.
absl::StatusOr<std::unique_ptr<rocksdb::DB>> OpenEither(
    const std::string& directory, const DatabaseResources& resources,
    bool for_writing) {
  const auto open = for_writing ? OpenRocks : OpenReader;
  absl::StatusOr<std::unique_ptr<rocksdb::DB>> db = open(directory, resources);
  if (!absl::IsDataLoss(db.status())) return db;
  ATTENDANT_ASSIGN_OR_RETURN(const bool cut,
                             CutTornTails(directory, resources.files));
  return cut ? open(directory, resources) : std::move(db);
}

// Adds to a count of bytes while it lives, so that writes of several databases
// don't take the same space for theirs.
class UnderWay {
 public:
  UnderWay(std::atomic<std::uint64_t>& count, std::uint64_t bytes)
      : count_(count), bytes_(bytes), total_(count.fetch_add(bytes) + bytes) {}
  ~UnderWay() { count_.fetch_sub(bytes_); }
  UnderWay(const UnderWay&) = delete;
  UnderWay& operator=(const UnderWay&) = delete;

  // Of all that were under way when this began, and this.
  std::uint64_t total() const { return total_; }

 private:
  std::atomic<std::uint64_t>& count_;
  const std::uint64_t bytes_;
  const std::uint64_t total_;
};

}  // namespace

DatabaseResources DatabaseResources::Make(Files files) {
  DatabaseResources resources;
  resources.env = rocksdb::NewCompositeEnv(files.file_system());
  // Of the process: compaction is not to hold up queries.
  resources.env->LowerThreadPoolCPUPriority(rocksdb::Env::LOW,
                                            rocksdb::CpuPriority::kLow);
  resources.files = std::move(files);
  resources.block_cache = rocksdb::NewLRUCache(64 * kMiB);
  resources.write_buffers =
      std::make_shared<rocksdb::WriteBufferManager>(64 * kMiB);
  resources.bytes_under_way = std::make_shared<std::atomic<std::uint64_t>>(0);
  return resources;
}

Database::Database(std::string directory, DatabaseResources resources,
                   std::unique_ptr<rocksdb::DB> db, AcknowledgedMark mark)
    : directory_(std::move(directory)),
      resources_(std::move(resources)),
      mark_(std::move(mark)),
      db_(std::move(db)) {}

Database::~Database() {
  MutexLock lock(&mutex_);
  Acknowledge(sequence_.load());
}

absl::StatusOr<std::unique_ptr<Database>> Database::Open(
    const std::string& directory, Mode mode,
    const DatabaseResources& resources) {
  ATTENDANT_RETURN_IF_ERROR(CheckCurrent(directory, mode, resources.files));
  const absl::Status space =
      CheckSpaceToOpen(directory, resources.files, DiskReserve::kKept);
  if (!space.ok() && !resources.files.PathExists(directory + "/CURRENT"))
    return space;
  ATTENDANT_RETURN_IF_ERROR(resources.files.MakeDirectory(directory));
  ATTENDANT_ASSIGN_OR_RETURN(
      AcknowledgedMark mark,
      AcknowledgedMark::Open(directory + "/ACKNOWLEDGED", resources.files));
  const std::int64_t acknowledged = mark.get().sequence;
  ATTENDANT_RETURN_IF_ERROR(
      CheckManifest(directory, resources.files, mark.get()));
  ATTENDANT_ASSIGN_OR_RETURN(std::unique_ptr<rocksdb::DB> db,
                             OpenEither(directory, resources, space.ok()));
  std::unique_ptr<Database> database(
      new Database(directory, resources, std::move(db), std::move(mark)));
  MutexLock lock(&database->mutex_);
  database->failure_ = space;
  ATTENDANT_ASSIGN_OR_RETURN(const std::int64_t sequence,
                             database->ReadSequence());
  if (sequence < acknowledged) {
    return absl::DataLossError(absl::StrCat(
        "database ", directory, ": acknowledged writes are lost: found up to ",
        sequence, ", acknowledged were ", acknowledged));
  }
  database->sequence_.store(sequence);
  database->Acknowledge(sequence);
  return database;
}

absl::StatusOr<std::shared_ptr<rocksdb::DB>> Database::db() const {
  MutexLock lock(&db_mutex_);
  while (reopening_) reopened_.Wait(&db_mutex_);
  if (db_ == nullptr) return closed_;
  return db_;
}

StoreFigures Database::figures() const {
  StoreFigures figures;
  std::shared_ptr<rocksdb::DB> db;
  {
    MutexLock lock(&db_mutex_);
    db = db_;
  }
  if (db == nullptr) return figures;
  const auto read = [&](const std::string& property) {
    std::uint64_t value = 0;
    db->GetIntProperty(property, &value);
    return static_cast<std::int64_t>(value);
  };
  using Properties = rocksdb::DB::Properties;
  figures.write_buffer_bytes = read(Properties::kSizeAllMemTables);
  figures.table_reader_bytes = read(Properties::kEstimateTableReadersMem);
  figures.table_bytes = read(Properties::kLiveSstFilesSize);
  figures.compaction_backlog_bytes =
      read(Properties::kEstimatePendingCompactionBytes);
  figures.background_error_count = read(Properties::kBackgroundErrors);
  figures.writes_stopped = read(Properties::kIsWriteStopped) != 0;
  std::string level0;  // not among the properties that are numbers
  if (db->GetProperty(Properties::kNumFilesAtLevelPrefix + "0", &level0) &&
      !absl::SimpleAtoi(level0, &figures.level0_table_count)) {
    figures.level0_table_count = 0;
  }
  return figures;
}

absl::StatusOr<std::int64_t> Database::ReadSequence() const {
  std::int64_t sequence = 0;
  ATTENDANT_ASSIGN_OR_RETURN(const std::optional<std::string> bytes,
                             Get(SequenceKey()));
  if (!bytes.has_value()) return sequence;
  if (bytes->size() != sizeof(sequence)) {
    return absl::DataLossError(absl::StrCat(
        "database ", directory_, ": the stored sequence is damaged"));
  }
  std::memcpy(&sequence, bytes->data(), sizeof(sequence));
  return sequence;
}

// The tables that all write buffers may become at any time, and the log.
absl::Status Database::CheckSpace(std::uint64_t bytes,
                                  DiskReserve reserve) const {
  bytes *= 2;
  if (reserve == DiskReserve::kKept) {
    bytes += resources_.write_buffers->memory_usage();
  }
  return CheckDiskSpace(directory_, bytes, reserve);
}

absl::Status Database::Write(rocksdb::WriteBatch* batch,
                             std::optional<std::int64_t> sequence,
                             DiskReserve reserve, bool* begun) {
  if (begun != nullptr) *begun = false;
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
  if (!failure_.ok()) {
    ATTENDANT_RETURN_IF_ERROR(Recover(reserve));
    failure_ = absl::OkStatus();
  }
  {
    const UnderWay under_way(*resources_.bytes_under_way, batch->GetDataSize());
    ATTENDANT_RETURN_IF_ERROR(CheckSpace(under_way.total(), reserve));
    ATTENDANT_ASSIGN_OR_RETURN(const std::shared_ptr<rocksdb::DB> db,
                               this->db());
    rocksdb::WriteOptions options;
    options.sync = !ATTENDANT_PLANTED_BUG("skip_log_sync");
    ATTENDANT_FAIL_POINT("log.before_sync");
    if (begun != nullptr) *begun = true;
    failure_ = FromRocks(db->Write(options, batch), directory_);
  }
  if (!failure_.ok()) return failure_;
  if (sequence.has_value()) sequence_.store(*sequence);
  ATTENDANT_FAIL_POINT("log.after_sync");
  Acknowledge(sequence_.load());
  ATTENDANT_FAIL_POINT("log.after_mark");
  return absl::OkStatus();
}

void Database::Acknowledge(std::int64_t sequence) {
  Acknowledged acknowledged = mark_.get();
  // Never back: an Open that found writes missing leaves the mark as it is.
  if (sequence > acknowledged.sequence) acknowledged.sequence = sequence;
  std::uint64_t version = 0;
  std::uint64_t size = 0;
  std::vector<std::string> files;
  if (const auto db = this->db();
      db.ok() &&
      (*db)->GetIntProperty(rocksdb::DB::Properties::kCurrentSuperVersionNumber,
                            &version) &&
      version != marked_version_ &&
      (*db)->GetLiveFiles(files, &size, /*flush_memtable=*/false).ok()) {
    for (const std::string& file : files) {
      const std::uint64_t number = ManifestNumber(file);
      if (number == 0) continue;
      const auto hash =
          HashManifest(directory_, resources_.files, number, size);
      if (!hash.ok() || !hash->has_value()) continue;
      acknowledged.manifest_number = number;
      acknowledged.manifest_bytes = size;
      acknowledged.manifest_hash = **hash;
      marked_version_ = version;
    }
  }
  mark_.Put(acknowledged);
}

// DB::Resume does not serve: RocksDB 7.8 reports success and then refuses every
// write to the log that once failed.
absl::Status Database::Recover(DiskReserve reserve) {
  ATTENDANT_RETURN_IF_ERROR(
      CheckSpaceToOpen(directory_, resources_.files, reserve));
  if (!Reopen().ok()) return failure_;
  marked_version_ = 0;
  ATTENDANT_ASSIGN_OR_RETURN(const std::int64_t sequence, ReadSequence());
  if (sequence == sequence_.load()) return absl::OkStatus();
  // The write that was reported as failed could not be taken back, or an
  // earlier one is gone: the callers no longer know what is stored.
  return absl::InternalError(absl::StrCat(
      "database ", directory_, ": found sequence ", sequence, " instead of ",
      sequence_.load(), " after a failed write; restart to go on from there"));
}

absl::Status Database::Reopen() {
  std::shared_ptr<rocksdb::DB> before;
  {
    MutexLock lock(&db_mutex_);
    if (db_.use_count() > 1) {
      return absl::UnavailableError("a read is under way");
    }
    before = std::move(db_);
    closed_ = absl::UnavailableError("it could not be opened again");
    reopening_ = true;
  }
  // Whatever becomes of it, reads don't wait for ever.
  const absl::Cleanup reopened = [this] {
    MutexLock lock(&db_mutex_);
    reopening_ = false;
    reopened_.NotifyAll();
  };
  before.reset();
  // If that is not possible, Recover sees what it finds.
  CutFailedWrites(directory_, resources_.files, sequence_.load()).IgnoreError();
  absl::StatusOr<std::unique_ptr<rocksdb::DB>> db =
      OpenRocks(directory_, resources_);
  const absl::Status status = db.status();
  // Reads go on.
  if (!status.ok()) db = OpenReader(directory_, resources_);
  MutexLock lock(&db_mutex_);
  closed_ = db.status();
  if (db.ok()) db_ = *std::move(db);
  return status;
}

absl::Status Database::Checkpoint(const std::string& directory) {
  std::shared_ptr<rocksdb::DB> db;
  {
    MutexLock lock(&mutex_);
    if (!failure_.ok()) {
      ATTENDANT_RETURN_IF_ERROR(Recover(DiskReserve::kKept));
      failure_ = absl::OkStatus();
    }
    // What is in memory becomes a table, and logs that are left are copied.
    ATTENDANT_RETURN_IF_ERROR(
        CheckSpaceToOpen(directory_, resources_.files, DiskReserve::kKept));
    ATTENDANT_RETURN_IF_ERROR(CheckSpace(0));
    ATTENDANT_ASSIGN_OR_RETURN(db, this->db());
  }
  rocksdb::Checkpoint* made = nullptr;
  ATTENDANT_RETURN_IF_ERROR(
      FromRocks(rocksdb::Checkpoint::Create(db.get(), &made), directory_));
  const std::unique_ptr<rocksdb::Checkpoint> checkpoint(made);
  return FromRocks(checkpoint->CreateCheckpoint(directory), directory_);
}

absl::StatusOr<std::optional<std::string>> Database::Get(
    absl::string_view key) const {
  ATTENDANT_ASSIGN_OR_RETURN(const std::shared_ptr<rocksdb::DB> db, this->db());
  std::string value;
  const rocksdb::Status status =
      db->Get(rocksdb::ReadOptions(), ToSlice(key), &value);
  if (status.IsNotFound()) return std::nullopt;
  ATTENDANT_RETURN_IF_ERROR(FromRocks(status, directory_));
  return value;
}

absl::StatusOr<std::vector<std::optional<std::string>>> Database::GetAll(
    std::span<const std::string> keys) const {
  ATTENDANT_ASSIGN_OR_RETURN(const std::shared_ptr<rocksdb::DB> db, this->db());
  rocksdb::ManagedSnapshot state(db.get());
  rocksdb::ReadOptions options;
  options.snapshot = state.snapshot();
  std::vector<std::optional<std::string>> values(keys.size());
  for (std::size_t i = 0; i < keys.size(); ++i) {
    std::string value;
    const rocksdb::Status status = db->Get(options, keys[i], &value);
    if (status.IsNotFound()) continue;
    ATTENDANT_RETURN_IF_ERROR(FromRocks(status, directory_));
    values[i] = std::move(value);
  }
  return values;
}

absl::Status Database::Scan(
    absl::string_view begin, absl::string_view end,
    const std::function<bool(absl::string_view key, absl::string_view value)>&
        visit) const {
  ATTENDANT_ASSIGN_OR_RETURN(const std::shared_ptr<rocksdb::DB> db, this->db());
  const rocksdb::Slice upper_bound = ToSlice(end);
  rocksdb::ReadOptions options;
  options.iterate_upper_bound = &upper_bound;
  options.fill_cache = false;
  const std::unique_ptr<rocksdb::Iterator> at(db->NewIterator(options));
  for (at->Seek(ToSlice(begin)); at->Valid(); at->Next()) {
    if (!visit(ToView(at->key()), ToView(at->value()))) return absl::OkStatus();
  }
  return FromRocks(at->status(), directory_);
}

absl::StatusOr<std::optional<std::string>> Database::LastKey(
    absl::string_view begin, absl::string_view end) const {
  ATTENDANT_ASSIGN_OR_RETURN(const std::shared_ptr<rocksdb::DB> db, this->db());
  const rocksdb::Slice lower_bound = ToSlice(begin);
  const rocksdb::Slice upper_bound = ToSlice(end);
  rocksdb::ReadOptions options;
  options.iterate_lower_bound = &lower_bound;
  options.iterate_upper_bound = &upper_bound;
  const std::unique_ptr<rocksdb::Iterator> at(db->NewIterator(options));
  at->SeekToLast();
  ATTENDANT_RETURN_IF_ERROR(FromRocks(at->status(), directory_));
  if (!at->Valid()) return std::nullopt;
  return at->key().ToString();
}

absl::StatusOr<std::int64_t> ReadWholeDatabase(
    const std::string& directory, const DatabaseResources& resources,
    const std::function<absl::Status(absl::string_view key,
                                     absl::string_view value)>& visit) {
  ATTENDANT_RETURN_IF_ERROR(
      CheckCurrent(directory, Database::Mode::kMustExist, resources.files));
  ATTENDANT_ASSIGN_OR_RETURN(const std::unique_ptr<rocksdb::DB> db,
                             OpenReader(directory, resources));
  rocksdb::ReadOptions options;
  options.fill_cache = false;
  ATTENDANT_RETURN_IF_ERROR(FromRocks(db->VerifyChecksum(options), directory));
  std::int64_t sequence = 0;
  const std::unique_ptr<rocksdb::Iterator> at(db->NewIterator(options));
  for (at->SeekToFirst(); at->Valid(); at->Next()) {
    if (ToView(at->key()) == SequenceKey()) {
      if (at->value().size() != sizeof(sequence)) {
        return absl::DataLossError(absl::StrCat(
            "database ", directory, ": the stored sequence is damaged"));
      }
      std::memcpy(&sequence, at->value().data(), sizeof(sequence));
    }
    ATTENDANT_RETURN_IF_ERROR(visit(ToView(at->key()), ToView(at->value())));
  }
  ATTENDANT_RETURN_IF_ERROR(FromRocks(at->status(), directory));
  return sequence;
}

}  // namespace attendant
