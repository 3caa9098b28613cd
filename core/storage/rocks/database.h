// A RocksDB as this project uses it: every write is synced and numbered, errors
// are absl::Status, and damage is never taken for the end of the log.
#ifndef ATTENDANT_CORE_STORAGE_ROCKS_DATABASE_H_
#define ATTENDANT_CORE_STORAGE_ROCKS_DATABASE_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/base/clock.h"
#include "core/base/interrupt.h"
#include "core/base/mutex.h"
#include "core/storage/files/disk_space.h"
#include "core/storage/records/store_figures.h"
#include "core/storage/rocks/acknowledged.h"
#include "core/storage/rocks/database_resources.h"

namespace rocksdb {
class DB;
class WriteBatch;
}  // namespace rocksdb

namespace attendant {

// The first byte of a key tells its kind.
inline constexpr char kSequenceTag = 'm';

// Thread-safe. Errors of every method: ResourceExhausted with reason DISK_FULL,
// FILE_TOO_LARGE or TOO_MANY_OPEN_FILES, Unavailable with reason
// kFilesNotAccessible, DataLoss on damage, otherwise Internal naming the
// directory.
//
// Opening a damaged database: a log record with a wrong checksum is DataLoss
// wherever it is. A last record that is cut off by the end of the log, or by
// zeros (see FindTornTail), is a torn write and is dropped. If that write was
// acknowledged, or the manifest is not what it was (see AcknowledgedMark), Open
// returns DataLoss and leaves the log unchanged. Closed logs are checked
// against their size in the manifest, tables as they are read.
class Database {
 public:
  enum class Mode { kCreateIfMissing, kMustExist };

  // FailedPrecondition if it is already open. With little space on the disk
  // (see CheckDiskSpace) a new database is refused and an existing one is
  // opened for reading; the first Write that finds space again opens it for
  // writing.
  static absl::StatusOr<std::unique_ptr<Database>> Open(
      const std::string& directory, Mode mode,
      const DatabaseResources& resources);
  ~Database();

  // True if Open found the mark of acknowledged writes. Otherwise somebody
  // removed the mark, and the last acknowledged writes may be missing.
  bool was_marked() const { return was_marked_; }

  // OK if a Write of `bytes` would find the space that it needs.
  absl::Status CheckSpace(std::uint64_t bytes,
                          DiskReserve reserve = DiskReserve::kKept) const;

  // Applies the batch, in full or not at all, and returns after it is synced.
  // Refused, with nothing changed, while there is little space on the disk.
  // `sequence`, which must grow, is stored with the batch if given. After an
  // error each later Write first takes back what failed (TakeBackFailed).
  // `begun`, if not null, is set to true if the batch may be found at the next
  // Open whatever Write returns, and to false if it was refused. `confirm` is
  // called once the batch is synced; if it fails, the write fails with its
  // error.
  absl::Status Write(
      rocksdb::WriteBatch* batch, std::optional<std::int64_t> sequence,
      DiskReserve reserve = DiskReserve::kKept, bool* begun = nullptr,
      absl::FunctionRef<absl::Status()> confirm = absl::OkStatus);

  // Cuts a failed write off the log, so that this needs no restart. Until then
  // reads don't see that write, unless it was synced and not confirmed. OK at
  // once if no write failed. Fails while there is little space; Unavailable
  // with reason TAKING_BACK if current reads take longer than a second, during
  // which others wait.
  absl::Status TakeBackFailed(DiskReserve reserve = DiskReserve::kKept)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Makes `directory`, which must not exist but whose parent must, a separate
  // database that holds every Write that returned before, and each later one in
  // full or not at all. Tables are hard-linked, so it takes little time and
  // space. Writes continue while memory is flushed to a table, and wait only
  // for the links and a few syncs. After an error the next Write reopens the
  // database, as after an error of Write.
  absl::Status Checkpoint(const std::string& directory)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Returns the sequence of the last write that had one; 0 if none had.
  std::int64_t sequence() const { return sequence_.load(); }

  // Without the block cache, which belongs to the store. Zeros during a
  // recovery.
  StoreFigures figures() const;

  // Returns the value of a key, or nothing.
  absl::StatusOr<std::optional<std::string>> Get(absl::string_view key) const;

  // Calls `visit` for the keys, in order and from one consistent state, with
  // the value, or nothing if there is none. Stops at the first error of `visit`
  // and returns it. The views are valid until `visit` returns.
  absl::Status GetAll(
      std::span<const std::string> keys,
      absl::FunctionRef<absl::Status(std::size_t i,
                                     std::optional<absl::string_view> value)>
          visit) const;

  // Calls `visit` for the keys in [begin, end) in order, from one consistent
  // state, until it returns false. The views are valid until `visit` returns.
  absl::Status Scan(
      absl::string_view begin, absl::string_view end,
      absl::FunctionRef<bool(absl::string_view key, absl::string_view value)>
          visit) const;

  // Returns the greatest key in [begin, end), or nothing.
  absl::StatusOr<std::optional<std::string>> LastKey(
      absl::string_view begin, absl::string_view end) const;

 private:
  Database(std::string directory, DatabaseResources resources,
           std::unique_ptr<rocksdb::DB> db, AcknowledgedMark mark);

  // Returns the database for a read or write; holding it delays a recovery.
  // Waits for a recovery that is under way.
  absl::StatusOr<std::shared_ptr<rocksdb::DB>> db() const
      ABSL_LOCKS_EXCLUDED(db_mutex_);
  absl::StatusOr<std::int64_t> ReadSequence() const;
  // Updates the mark with the sequence, and with the manifest if it may have
  // grown. Skips the update if memory is short.
  void Acknowledge(std::int64_t sequence) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Mark(std::int64_t sequence) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Does nothing if no write failed.
  absl::Status Recover(DiskReserve reserve)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) ABSL_LOCKS_EXCLUDED(db_mutex_);
  absl::Status Reopen() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_)
      ABSL_LOCKS_EXCLUDED(db_mutex_);
  absl::Status AwaitReads() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_)
      ABSL_LOCKS_EXCLUDED(db_mutex_);
  // Recovers if needed, checks the space for a checkpoint, and returns the
  // database.
  absl::StatusOr<std::shared_ptr<rocksdb::DB>> ReadyForCheckpoint()
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) ABSL_LOCKS_EXCLUDED(db_mutex_);
  absl::Status FlushBesideWrites() ABSL_LOCKS_EXCLUDED(mutex_);
  // Records a failure that RocksDB may not recover from by itself. Returns
  // `status`.
  absl::Status Failed(const absl::Status& status)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::string directory_;
  const DatabaseResources resources_;
  std::atomic<std::int64_t> sequence_ = 0;
  Mutex mutex_;  // one write at a time
  AcknowledgedMark mark_ ABSL_GUARDED_BY(mutex_);
  // Changes with the manifest; the version of the manifest in mark_.
  std::uint64_t marked_version_ ABSL_GUARDED_BY(mutex_) = 0;
  // RocksDB's sequence number of the last durable write.
  std::uint64_t last_number_ ABSL_GUARDED_BY(mutex_) = 0;
  bool was_marked_ = false;  // set by Open
  // Why db_ must be reopened before the next write.
  absl::Status failure_ ABSL_GUARDED_BY(mutex_);
  std::atomic<bool> has_failed_ = false;  // set with mutex_ held
  SteadyTime next_wait_ ABSL_GUARDED_BY(mutex_) = SteadyTime::min();
  mutable Mutex db_mutex_ ABSL_ACQUIRED_AFTER(mutex_);
  mutable CondVar reopened_;
  bool reopening_ ABSL_GUARDED_BY(db_mutex_) = false;
  std::shared_ptr<rocksdb::DB> db_ ABSL_GUARDED_BY(db_mutex_);
  absl::Status closed_ ABSL_GUARDED_BY(db_mutex_);  // why db_ is null
};

// Which blocks of a database's tables are verified by their checksums.
enum class Blocks {
  kAll,
  kRead,  // blocks of keys and values, as they are read
};

// Reads a database that nobody has open, without writing anything: calls
// `visit` for every key in order, until it returns an error. Returns the
// sequence of the last write that had one. DataLoss on damage; errors of the
// interrupt, which is checked for each table and every thousand keys.
absl::StatusOr<std::int64_t> ReadWholeDatabase(
    const std::string& directory, const DatabaseResources& resources,
    Blocks verified, const Interrupt& interrupt,
    absl::FunctionRef<absl::Status(absl::string_view key,
                                   absl::string_view value)>
        visit);

}  // namespace attendant

#endif  // ATTENDANT_CORE_STORAGE_ROCKS_DATABASE_H_
