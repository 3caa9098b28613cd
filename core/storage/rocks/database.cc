#include "core/storage/rocks/database.h"

#include <rocksdb/convenience.h>
#include <rocksdb/db.h>
#include <rocksdb/iterator.h>
#include <rocksdb/options.h>
#include <rocksdb/snapshot.h>
#include <rocksdb/utilities/checkpoint.h>
#include <rocksdb/write_batch.h>
#include <rocksdb/write_buffer_manager.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <new>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "core/base/clock.h"
#include "core/base/fail_point.h"
#include "core/base/status.h"
#include "core/storage/files/rocks_status.h"
#include "core/storage/rocks/database_files.h"
#include "core/storage/rocks/open_rocks.h"

namespace attendant {
namespace {

// How long a recovery waits for current reads to end.
constexpr absl::Duration kWaitForReads = absl::Seconds(1);
constexpr absl::Duration kLookAgain = absl::Milliseconds(1);
// How long it then doesn't wait again, so that the same reads don't hold up
// others repeatedly.
constexpr absl::Duration kWaitAgain = absl::Seconds(5);

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

absl::StatusOr<std::int64_t> DecodeSequence(absl::string_view bytes,
                                            const std::string& directory) {
  std::int64_t sequence = 0;
  if (bytes.size() != sizeof(sequence)) {
    return absl::DataLossError(absl::StrCat(
        "database ", directory, ": the stored sequence is damaged"));
  }
  std::memcpy(&sequence, bytes.data(), sizeof(sequence));
  return sequence;
}

absl::Status TakingBack() {
  return StatusWithReason(absl::StatusCode::kUnavailable,
                          "a write that failed is taken back as soon as the "
                          "reads that are under way end: try again",
                          "TAKING_BACK");
}

// Checks the space for the tables that opening writes from the logs.
absl::Status CheckSpaceToOpen(const std::string& directory, const Files& files,
                              DiskReserve reserve) {
  ATTENDANT_ASSIGN_OR_RETURN(const std::uint64_t log_bytes,
                             LogBytes(directory, files));
  return CheckDiskSpace(directory, log_bytes, reserve);
}

// `what` names the kind of the numbers.
absl::Status AcknowledgedAreLost(const std::string& directory,
                                 absl::string_view what, std::uint64_t found,
                                 std::uint64_t acknowledged) {
  return absl::DataLossError(absl::StrCat(
      "database ", directory, ": acknowledged writes are lost: found up to ",
      what, found, ", acknowledged were ", acknowledged));
}

constexpr absl::string_view kOfRocks = "RocksDB's number ";

// Opening a database writes its logs to tables and drops the logs, along with
// any damage hidden in them. So this looks for what was acknowledged
// beforehand: then no more is lost than the damage took.
absl::Status CheckAcknowledged(const std::string& directory,
                               const DatabaseResources& resources,
                               std::uint64_t acknowledged) {
  ATTENDANT_ASSIGN_OR_RETURN(const LogNumbers in_logs,
                             NumbersInLogs(directory, resources.files));
  // The logs begin at the first write, so there are no tables.
  if (in_logs.first <= 1 && in_logs.last >= acknowledged) {
    return absl::OkStatus();
  }
  ATTENDANT_ASSIGN_OR_RETURN(const std::uint64_t in_tables,
                             LastNumberInTables(directory, resources));
  const bool is_gap = in_logs.first > in_tables + 1;
  const std::uint64_t found =
      is_gap ? in_tables : std::max(in_logs.last, in_tables);
  if (!is_gap && found >= acknowledged) return absl::OkStatus();
  return AcknowledgedAreLost(directory, kOfRocks, found,
                             std::max(acknowledged, in_logs.last));
}

// Opens the database, for writing or only for reading. Apparent damage may be
// what a power failure left of a write, so it then cuts that off and tries
// again.
absl::StatusOr<std::unique_ptr<rocksdb::DB>> OpenEither(
    const std::string& directory, const DatabaseResources& resources,
    bool for_writing, Database::Mode mode) {
  const auto open = [&] {
    return for_writing ? OpenRocks(directory, resources,
                                   mode == Database::Mode::kCreateIfMissing)
                       : OpenReader(directory, resources);
  };
  absl::StatusOr<std::unique_ptr<rocksdb::DB>> db = open();
  if (!absl::IsDataLoss(db.status())) return db;
  ATTENDANT_ASSIGN_OR_RETURN(const bool cut,
                             CutTornLog(directory, resources.files));
  return cut ? open() : std::move(db);
}

// As DB::VerifyChecksum, but checks the interrupt between tables.
absl::Status VerifyTables(rocksdb::DB& db, const std::string& directory,
                          const rocksdb::ReadOptions& options,
                          const Interrupt& interrupt) {
  std::vector<rocksdb::LiveFileMetaData> tables;
  db.GetLiveFilesMetaData(&tables);
  for (const rocksdb::LiveFileMetaData& table : tables) {
    ATTENDANT_RETURN_IF_ERROR(interrupt.Check());
    const std::string path =
        absl::StrCat(table.directory, "/", table.relative_filename);
    ATTENDANT_RETURN_IF_ERROR(FromRocks(
        rocksdb::VerifySstFileChecksum(db.GetOptions(), rocksdb::EnvOptions(),
                                       options, path, table.largest_seqno),
        directory));
  }
  return absl::OkStatus();
}

// Adds to a count of bytes during its lifetime, so that writes of several
// databases don't count on the same space.
class UnderWay {
 public:
  UnderWay(std::atomic<std::uint64_t>& count, std::uint64_t bytes)
      : count_(count), bytes_(bytes), total_(count.fetch_add(bytes) + bytes) {}
  ~UnderWay() { count_.fetch_sub(bytes_); }
  UnderWay(const UnderWay&) = delete;
  UnderWay& operator=(const UnderWay&) = delete;

  // Returns the bytes of this write and of all that were under way when it
  // began.
  std::uint64_t total() const { return total_; }

 private:
  std::atomic<std::uint64_t>& count_;
  const std::uint64_t bytes_;
  const std::uint64_t total_;
};

}  // namespace

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
  ATTENDANT_RETURN_IF_ERROR(
      CheckCurrent(directory, mode == Mode::kMustExist, resources.files));
  const absl::Status space =
      CheckSpaceToOpen(directory, resources.files, DiskReserve::kKept);
  if (!space.ok()) {
    ATTENDANT_ASSIGN_OR_RETURN(
        const bool exists, resources.files.PathExists(directory + "/CURRENT"));
    if (!exists) return space;
  }
  ATTENDANT_RETURN_IF_ERROR(resources.files.MakeDirectory(directory));
  ATTENDANT_ASSIGN_OR_RETURN(
      AcknowledgedMark mark,
      AcknowledgedMark::Open(directory + "/ACKNOWLEDGED", resources.files));
  const std::int64_t acknowledged = mark.get().sequence;
  const bool was_marked = mark.get().manifest_number != 0;
  ATTENDANT_RETURN_IF_ERROR(
      CheckManifest(directory, resources.files, mark.get()));
  ATTENDANT_RETURN_IF_ERROR(CutTornManifest(directory, resources.files));
  ATTENDANT_RETURN_IF_ERROR(
      CheckAcknowledged(directory, resources, mark.get().number));
  ATTENDANT_ASSIGN_OR_RETURN(
      std::unique_ptr<rocksdb::DB> db,
      OpenEither(directory, resources, space.ok(), mode));
  std::unique_ptr<Database> database(
      new Database(directory, resources, std::move(db), std::move(mark)));
  MutexLock lock(&database->mutex_);
  database->was_marked_ = was_marked;
  database->failure_ = space;
  ATTENDANT_ASSIGN_OR_RETURN(const std::int64_t sequence,
                             database->ReadSequence());
  if (sequence < acknowledged) {
    return AcknowledgedAreLost(directory, "",
                               static_cast<std::uint64_t>(sequence),
                               static_cast<std::uint64_t>(acknowledged));
  }
  database->sequence_.store(sequence);
  ATTENDANT_ASSIGN_OR_RETURN(const std::shared_ptr<rocksdb::DB> opened,
                             database->db());
  database->last_number_ = opened->GetLatestSequenceNumber();
  // Detects that RocksDB read less from the logs than we did.
  if (database->last_number_ < database->mark_.get().number) {
    return AcknowledgedAreLost(directory, kOfRocks, database->last_number_,
                               database->mark_.get().number);
  }
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
    if (!reopening_) db = db_;
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
  std::string level0;  // not one of the numeric properties
  if (db->GetProperty(Properties::kNumFilesAtLevelPrefix + "0", &level0) &&
      !absl::SimpleAtoi(level0, &figures.level0_table_count)) {
    figures.level0_table_count = 0;
  }
  return figures;
}

absl::StatusOr<std::int64_t> Database::ReadSequence() const {
  ATTENDANT_ASSIGN_OR_RETURN(const std::optional<std::string> bytes,
                             Get(SequenceKey()));
  if (!bytes.has_value()) return std::int64_t{0};
  return DecodeSequence(*bytes, directory_);
}

absl::Status Database::CheckSpace(std::uint64_t bytes,
                                  DiskReserve reserve) const {
  const std::uint64_t buffer_bytes =
      reserve == DiskReserve::kKept ? resources_.write_buffers->memory_usage()
                                    : 0;
  return CheckDiskSpace(directory_, RoomOfWrite(bytes, buffer_bytes), reserve);
}

absl::Status Database::Write(rocksdb::WriteBatch* batch,
                             std::optional<std::int64_t> sequence,
                             DiskReserve reserve, bool* begun,
                             absl::FunctionRef<absl::Status()> confirm) {
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
  ATTENDANT_RETURN_IF_ERROR(Recover(reserve));
  bool synced = false;
  {
    const UnderWay under_way(*resources_.bytes_under_way, batch->GetDataSize());
    ATTENDANT_RETURN_IF_ERROR(CheckSpace(under_way.total(), reserve));
    ATTENDANT_ASSIGN_OR_RETURN(const std::shared_ptr<rocksdb::DB> db,
                               this->db());
    rocksdb::WriteOptions options;
    options.sync = !ATTENDANT_PLANTED_BUG("skip_log_sync");
    ATTENDANT_FAIL_POINT("log.before_sync");
    absl::Status out_of_memory = absl::ResourceExhaustedError(
        "the database is out of memory for the write");
    if (begun != nullptr) *begun = true;
    try {
      failure_ = FromRocks(db->Write(options, batch), directory_);
      synced = failure_.ok();
      if (synced) failure_ = confirm();
    } catch (const std::bad_alloc&) {
      // The log may hold the batch; it is taken back like any failed write.
      failure_ = std::move(out_of_memory);
    }
    if (failure_.ok()) last_number_ = db->GetLatestSequenceNumber();
    has_failed_.store(!failure_.ok());
  }
  if (!failure_.ok()) {
    const absl::Status status = failure_;
    // Reads find a batch that is synced but must not see it, so recover now; if
    // that fails, the next Write tries again.
    if (synced) Recover(reserve).IgnoreError();
    return status;
  }
  if (sequence.has_value()) sequence_.store(*sequence);
  ATTENDANT_FAIL_POINT("log.after_sync");
  Acknowledge(sequence_.load());
  ATTENDANT_FAIL_POINT("log.after_mark");
  return absl::OkStatus();
}

void Database::Acknowledge(std::int64_t sequence) {
  try {
    Mark(sequence);
  } catch (const std::bad_alloc&) {
    // The write is done; the next one updates the mark.
  }
}

void Database::Mark(std::int64_t sequence) {
  Acknowledged acknowledged = mark_.get();
  // Never goes back: an Open that found writes missing leaves the mark
  // unchanged.
  if (sequence > acknowledged.sequence) acknowledged.sequence = sequence;
  if (last_number_ > acknowledged.number) acknowledged.number = last_number_;
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

absl::Status Database::TakeBackFailed(DiskReserve reserve) {
  if (!has_failed_.load()) return absl::OkStatus();
  MutexLock lock(&mutex_);
  return has_failed_.load() ? Recover(reserve) : absl::OkStatus();
}

// DB::Resume does not work: RocksDB 7.8 reports success and then refuses every
// write to the log that failed.
absl::Status Database::Recover(DiskReserve reserve) {
  if (failure_.ok()) return absl::OkStatus();
  ATTENDANT_RETURN_IF_ERROR(
      CheckSpaceToOpen(directory_, resources_.files, reserve));
  if (const absl::Status status = Reopen(); !status.ok()) {
    return absl::IsUnavailable(status) || absl::IsDataLoss(status) ? status
                                                                   : failure_;
  }
  marked_version_ = 0;
  ATTENDANT_ASSIGN_OR_RETURN(const std::int64_t sequence, ReadSequence());
  ATTENDANT_ASSIGN_OR_RETURN(const std::shared_ptr<rocksdb::DB> db, this->db());
  if (sequence != sequence_.load() ||
      db->GetLatestSequenceNumber() != last_number_) {
    // The callers no longer know what is stored.
    return absl::InternalError(
        absl::StrCat("database ", directory_, ": found sequence ", sequence,
                     " instead of ", sequence_.load(),
                     " after a failed write; restart to go on from there"));
  }
  failure_ = absl::OkStatus();
  has_failed_.store(false);
  return failure_;
}

absl::Status Database::Reopen() {
  {
    MutexLock lock(&db_mutex_);
    if (db_.use_count() > 1 && SteadyNow() < next_wait_) return TakingBack();
    reopening_ = true;
  }
  // Lets reads continue whatever the outcome.
  const absl::Cleanup reopened = [this] {
    MutexLock lock(&db_mutex_);
    reopening_ = false;
    reopened_.NotifyAll();
  };
  ATTENDANT_RETURN_IF_ERROR(AwaitReads());
  // Done before closing: if this fails, reads continue with the open database,
  // which does not hold what failed.
  ATTENDANT_RETURN_IF_ERROR(
      CheckCurrent(directory_, /*must_exist=*/true, resources_.files));
  ATTENDANT_RETURN_IF_ERROR(
      CutWritesAfter(directory_, resources_.files, last_number_));
  std::shared_ptr<rocksdb::DB> before;
  {
    MutexLock lock(&db_mutex_);
    before = std::move(db_);
    closed_ = absl::UnavailableError("it could not be opened again");
  }
  before.reset();
  absl::StatusOr<std::unique_ptr<rocksdb::DB>> db =
      OpenRocks(directory_, resources_, /*create_if_missing=*/false);
  if (db.ok() && (*db)->GetLatestSequenceNumber() < last_number_) {
    db = AcknowledgedAreLost(directory_, kOfRocks,
                             (*db)->GetLatestSequenceNumber(), last_number_);
  }
  const absl::Status status = db.status();
  // Let reads continue, unless they would find less than before.
  if (!status.ok() && !absl::IsDataLoss(status)) {
    db = OpenReader(directory_, resources_);
  }
  MutexLock lock(&db_mutex_);
  closed_ = db.status();
  if (db.ok()) db_ = *std::move(db);
  return status;
}

absl::Status Database::AwaitReads() {
  const SteadyTime give_up = SteadyAfter(kWaitForReads);
  while (true) {
    {
      MutexLock lock(&db_mutex_);
      if (db_.use_count() <= 1) return absl::OkStatus();
    }
    if (SteadyNow() >= give_up) break;
    absl::SleepFor(kLookAgain);
  }
  next_wait_ = SteadyAfter(kWaitAgain);
  return TakingBack();
}

absl::StatusOr<std::shared_ptr<rocksdb::DB>> Database::ReadyForCheckpoint() {
  ATTENDANT_RETURN_IF_ERROR(Recover(DiskReserve::kKept));
  // Memory is flushed to a table, and remaining logs are copied.
  ATTENDANT_RETURN_IF_ERROR(
      CheckSpaceToOpen(directory_, resources_.files, DiskReserve::kKept));
  ATTENDANT_RETURN_IF_ERROR(CheckSpace(0));
  return db();
}

absl::Status Database::Failed(const absl::Status& status) {
  if (status.ok()) return status;
  failure_ = status;
  has_failed_.store(true);
  return status;
}

absl::Status Database::FlushBesideWrites() {
  std::shared_ptr<rocksdb::DB> db;
  {
    MutexLock lock(&mutex_);
    ATTENDANT_ASSIGN_OR_RETURN(db, ReadyForCheckpoint());
  }
  const absl::Status status =
      FromRocks(db->Flush(rocksdb::FlushOptions()), directory_);
  db.reset();  // a reference would delay a recovery
  if (status.ok()) return status;
  MutexLock lock(&mutex_);
  return Failed(status);
}

absl::Status Database::Checkpoint(const std::string& directory) {
  // Copies the remaining logs instead, as a flush may have to wait for
  // compactions.
  constexpr auto kNoFlush = std::numeric_limits<std::uint64_t>::max();
  ATTENDANT_RETURN_IF_ERROR(FlushBesideWrites());
  // Excludes writes: RocksDB syncs the log for a checkpoint, and ends the
  // process if a write's sync of it has failed.
  MutexLock lock(&mutex_);
  ATTENDANT_ASSIGN_OR_RETURN(const std::shared_ptr<rocksdb::DB> db,
                             ReadyForCheckpoint());
  rocksdb::Checkpoint* made = nullptr;
  ATTENDANT_RETURN_IF_ERROR(
      FromRocks(rocksdb::Checkpoint::Create(db.get(), &made), directory_));
  const std::unique_ptr<rocksdb::Checkpoint> checkpoint(made);
  return Failed(
      FromRocks(checkpoint->CreateCheckpoint(directory, kNoFlush), directory_));
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

absl::Status Database::GetAll(
    std::span<const std::string> keys,
    absl::FunctionRef<absl::Status(std::size_t i,
                                   std::optional<absl::string_view> value)>
        visit) const {
  ATTENDANT_ASSIGN_OR_RETURN(const std::shared_ptr<rocksdb::DB> db, this->db());
  rocksdb::ManagedSnapshot state(db.get());
  rocksdb::ReadOptions options;
  options.snapshot = state.snapshot();
  // Reads the items of a request together up to this many bytes, and the others
  // one by one.
  constexpr std::size_t kMaxTogether = 256;
  options.value_size_soft_limit = 4 << 20;
  rocksdb::ColumnFamilyHandle* const column = db->DefaultColumnFamily();
  for (std::size_t begin = 0; begin < keys.size(); begin += kMaxTogether) {
    const std::size_t count = std::min(kMaxTogether, keys.size() - begin);
    const auto batch = keys.subspan(begin, count);
    const std::vector<rocksdb::Slice> slices(batch.begin(), batch.end());
    std::vector<rocksdb::PinnableSlice> values(count);
    std::vector<rocksdb::Status> statuses(count);
    db->MultiGet(options, column, count, slices.data(), values.data(),
                 statuses.data());
    for (std::size_t i = 0; i < count; ++i) {
      if (statuses[i].IsAborted()) {
        statuses[i] = db->Get(options, column, slices[i], &values[i]);
      }
      std::optional<absl::string_view> value;
      if (!statuses[i].IsNotFound()) {
        ATTENDANT_RETURN_IF_ERROR(FromRocks(statuses[i], directory_));
        value = ToView(values[i]);
      }
      ATTENDANT_RETURN_IF_ERROR(visit(begin + i, value));
      values[i].Reset();
    }
  }
  return absl::OkStatus();
}

absl::Status Database::Scan(
    absl::string_view begin, absl::string_view end,
    absl::FunctionRef<bool(absl::string_view key, absl::string_view value)>
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
    Blocks verified, const Interrupt& interrupt,
    absl::FunctionRef<absl::Status(absl::string_view key,
                                   absl::string_view value)>
        visit) {
  constexpr std::int64_t kKeysBetweenChecks = 1024;
  ATTENDANT_RETURN_IF_ERROR(
      CheckCurrent(directory, /*must_exist=*/true, resources.files));
  ATTENDANT_ASSIGN_OR_RETURN(const std::unique_ptr<rocksdb::DB> db,
                             OpenReader(directory, resources));
  rocksdb::ReadOptions options;
  options.fill_cache = false;
  if (verified == Blocks::kAll) {
    ATTENDANT_RETURN_IF_ERROR(VerifyTables(*db, directory, options, interrupt));
  }
  std::int64_t sequence = 0;
  std::int64_t key_count = 0;
  const std::unique_ptr<rocksdb::Iterator> at(db->NewIterator(options));
  for (at->SeekToFirst(); at->Valid(); at->Next()) {
    if (key_count++ % kKeysBetweenChecks == 0) {
      ATTENDANT_RETURN_IF_ERROR(interrupt.Check());
    }
    if (ToView(at->key()) == SequenceKey()) {
      ATTENDANT_ASSIGN_OR_RETURN(
          sequence, DecodeSequence(ToView(at->value()), directory));
    }
    ATTENDANT_RETURN_IF_ERROR(visit(ToView(at->key()), ToView(at->value())));
  }
  ATTENDANT_RETURN_IF_ERROR(FromRocks(at->status(), directory));
  return sequence;
}

}  // namespace attendant
