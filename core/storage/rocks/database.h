// One RocksDB as this project uses it: every write synced and numbered, errors
// as absl::Status, damage never taken for the end of the log.
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

// The first byte of a key says what it is the key of.
inline constexpr char kSequenceTag = 'm';

// Thread-safe. Errors of every method: ResourceExhausted with reason DISK_FULL,
// FILE_TOO_LARGE or TOO_MANY_OPEN_FILES, Unavailable with reason
// kFilesNotAccessible, DataLoss on damage, Internal naming the directory
// otherwise.
//
// Opening a damaged database: a record of the log with a wrong checksum is
// DataLoss wherever it stands. A last record that is cut off by the end of the
// log, or by zeros (see FindTornTail), is a torn write and dropped, unless its
// write was acknowledged: that is DataLoss, with the log as it was, and so is a
// manifest that is not what it was (see AcknowledgedMark). Closed logs are
// checked against their size in the manifest, tables as they are read.
class Database {
 public:
  enum class Mode { kCreateIfMissing, kMustExist };

  // FailedPrecondition if it is open already. With little space on the disk
  // (see CheckDiskSpace) a new one is refused, and one that exists can be read;
  // the first Write that finds space again opens it for writing.
  static absl::StatusOr<std::unique_ptr<Database>> Open(
      const std::string& directory, Mode mode,
      const DatabaseResources& resources);
  ~Database();

  // Whether Open found up to where writes were acknowledged. Else the last of
  // them may be missing: somebody removed the mark.
  bool was_marked() const { return was_marked_; }

  // OK if a Write of so many bytes would find the space that it needs.
  absl::Status CheckSpace(std::uint64_t bytes,
                          DiskReserve reserve = DiskReserve::kKept) const;

  // Applies the batch, whole or not at all, and returns after it is synced.
  // Refused, with nothing changed, while there is little space on the disk.
  // `sequence`, which must grow, is stored with it if given. After an error
  // each Write first takes back what failed (TakeBackFailed). `begun`, if
  // given, becomes true if the batch may be found at the next Open whatever
  // Write returns, and false if it was refused. `confirm` is asked once the
  // batch is synced: after its error the write has failed with that.
  absl::Status Write(
      rocksdb::WriteBatch* batch, std::optional<std::int64_t> sequence,
      DiskReserve reserve = DiskReserve::kKept, bool* begun = nullptr,
      absl::FunctionRef<absl::Status()> confirm = absl::OkStatus);

  // Cuts a write that failed off the log, so that this needs no restart; what
  // is read until then does not hold it, unless it was synced and not
  // confirmed. OK, at once, if none did. Fails while there is little space, and
  // is Unavailable with reason TAKING_BACK where reads that are under way take
  // longer than a second, for which others wait.
  absl::Status TakeBackFailed(DiskReserve reserve = DiskReserve::kKept)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Makes `directory`, which does not exist and whose parent does, a database
  // of its own that holds every Write that returned before, and each later one
  // whole or not at all. Tables become links of the same files, so that it
  // takes little time and space. Writes go on while what is in memory becomes a
  // table, and wait for the links and a few syncs. After an error the next
  // Write opens the database anew, as after one of its own.
  absl::Status Checkpoint(const std::string& directory)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Of the last write that had one; 0 if none had.
  std::int64_t sequence() const { return sequence_.load(); }

  // Without the block cache, which is the store's. Zeros while it recovers.
  StoreFigures figures() const;

  // The value of a key, or nothing.
  absl::StatusOr<std::optional<std::string>> Get(absl::string_view key) const;

  // Calls `visit` for the keys, in their order, all from one state, with the
  // value or nothing, until it returns an error, which is returned. The views
  // live until it returns.
  absl::Status GetAll(
      std::span<const std::string> keys,
      absl::FunctionRef<absl::Status(std::size_t i,
                                     std::optional<absl::string_view> value)>
          visit) const;

  // Calls `visit` for the keys in [begin, end) in their order, all from one
  // state, until it returns false. The views live until it returns.
  absl::Status Scan(
      absl::string_view begin, absl::string_view end,
      absl::FunctionRef<bool(absl::string_view key, absl::string_view value)>
          visit) const;

  // The greatest key in [begin, end), or nothing.
  absl::StatusOr<std::optional<std::string>> LastKey(
      absl::string_view begin, absl::string_view end) const;

 private:
  Database(std::string directory, DatabaseResources resources,
           std::unique_ptr<rocksdb::DB> db, AcknowledgedMark mark);

  // What reads and writes use; holding it puts off a recovery. Waits for one
  // that is under way.
  absl::StatusOr<std::shared_ptr<rocksdb::DB>> db() const
      ABSL_LOCKS_EXCLUDED(db_mutex_);
  absl::StatusOr<std::int64_t> ReadSequence() const;
  // Keeps the number, and the manifest if it may have grown; or not, where
  // there is no memory for it.
  void Acknowledge(std::int64_t sequence) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Mark(std::int64_t sequence) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Nothing if nothing failed.
  absl::Status Recover(DiskReserve reserve)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) ABSL_LOCKS_EXCLUDED(db_mutex_);
  absl::Status Reopen() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_)
      ABSL_LOCKS_EXCLUDED(db_mutex_);
  absl::Status AwaitReads() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_)
      ABSL_LOCKS_EXCLUDED(db_mutex_);
  // Recovered, and with space for a checkpoint.
  absl::StatusOr<std::shared_ptr<rocksdb::DB>> ReadyForCheckpoint()
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) ABSL_LOCKS_EXCLUDED(db_mutex_);
  absl::Status FlushBesideWrites() ABSL_LOCKS_EXCLUDED(mutex_);
  // Notes what RocksDB may not get over by itself. Returns `status`.
  absl::Status Failed(const absl::Status& status)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::string directory_;
  const DatabaseResources resources_;
  std::atomic<std::int64_t> sequence_ = 0;
  Mutex mutex_;  // one write at a time
  AcknowledgedMark mark_ ABSL_GUARDED_BY(mutex_);
  // Changes with the manifest; of the manifest that mark_ holds.
  std::uint64_t marked_version_ ABSL_GUARDED_BY(mutex_) = 0;
  // RocksDB's own, of the last write that is stored for good.
  std::uint64_t last_number_ ABSL_GUARDED_BY(mutex_) = 0;
  bool was_marked_ = false;  // set by Open
  // Why db_ must be opened anew before the next write.
  absl::Status failure_ ABSL_GUARDED_BY(mutex_);
  std::atomic<bool> has_failed_ = false;  // set with mutex_ held
  SteadyTime next_wait_ ABSL_GUARDED_BY(mutex_) = SteadyTime::min();
  mutable Mutex db_mutex_ ABSL_ACQUIRED_AFTER(mutex_);
  mutable CondVar reopened_;
  bool reopening_ ABSL_GUARDED_BY(db_mutex_) = false;
  std::shared_ptr<rocksdb::DB> db_ ABSL_GUARDED_BY(db_mutex_);
  absl::Status closed_ ABSL_GUARDED_BY(db_mutex_);  // why db_ is null
};

// What of the tables of a database is compared with its checksums.
enum class Blocks {
  kAll,
  kRead,  // those of keys and values, as they are read
};

// Reads a database that nobody has open, without writing anything: `visit` gets
// every key in its order, until it returns an error. The number is that of the
// last write that had one. DataLoss on damage; errors of the interrupt, which
// is looked at for each table and every thousand keys.
absl::StatusOr<std::int64_t> ReadWholeDatabase(
    const std::string& directory, const DatabaseResources& resources,
    Blocks verified, const Interrupt& interrupt,
    absl::FunctionRef<absl::Status(absl::string_view key,
                                   absl::string_view value)>
        visit);

}  // namespace attendant

#endif  // ATTENDANT_CORE_STORAGE_ROCKS_DATABASE_H_
