// A file system that loses unsynced data in a simulated power cut and fails on
// request.
#ifndef ATTENDANT_TESTS_DURABILITY_FAULTY_FILE_SYSTEM_H_
#define ATTENDANT_TESTS_DURABILITY_FAULTY_FILE_SYSTEM_H_

#include <rocksdb/file_system.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/base/mutex.h"

namespace attendant {

// Message of the injected errors.
inline constexpr char kInjectedError[] = "injected";

// Calls that change the disk, and calls that open a file for reading.
enum class FileCall { kOpen, kCreate, kWrite, kSync, kRename, kRemove };

// A fault to inject into a call.
struct FileFault {
  enum class Kind {
    kFail,      // nothing is done, and an error returned
    kNoSpace,   // as kFail; the error: disk full
    kNoRights,  // as kFail; the error: access denied
    kShorten,   // half of a write is done, and an error returned; else kFail
    kDelay,     // it takes 20 ms
    kHold,      // it takes until InjectNothing
  };
  Kind kind = Kind::kFail;
  FileCall call = FileCall::kWrite;
  // Counts from 1 the calls whose path contains `path_part`.
  int nth = 1;
  std::string path_part;
};

// Files are kept by the operating system and never really synced; memory tracks
// what a power cut would leave of them. A file keeps the bytes of its last
// sync, a directory its names; of later changes a random part survives: a
// prefix of a file's bytes and of a directory's changes. With `zeros`, blocks
// of zeros may also appear in or after a tail, as file systems that preallocate
// leave them.
//
// Covers only files below `root` that were made through this object; initially
// there are none. Thread-safe.
class FaultyFileSystem : public rocksdb::FileSystemWrapper {
 public:
  FaultyFileSystem(std::string root, std::uint64_t seed);
  ~FaultyFileSystem() override;
  const char* Name() const override { return "FaultyFileSystem"; }

  // Cuts the power just before the nth FileCall from now, counted from 1. The
  // process goes on unaware; whatever it writes after the cut is lost.
  void CutPowerAt(std::int64_t nth, bool zeros);
  // Returns true once the power has been cut.
  bool cut() const;
  // Puts the files into the state that the cut left. Everything below the root
  // must be closed.
  void RestoreAfterCut();

  // Replaces any earlier fault: at most one is active.
  void Inject(const FileFault& fault);
  // Returns true if a fault has hit a call since InjectNothing.
  bool befell() const;
  // Returns all faults that have hit calls so far, with the calls' whole paths
  // below the root.
  std::vector<FileFault> struck() const;
  void InjectNothing();

  // Number of FileCalls so far.
  std::int64_t call_count() const;

  rocksdb::IOStatus NewSequentialFile(
      const std::string& path, const rocksdb::FileOptions& options,
      std::unique_ptr<rocksdb::FSSequentialFile>* result,
      rocksdb::IODebugContext* debug) override;
  rocksdb::IOStatus NewRandomAccessFile(
      const std::string& path, const rocksdb::FileOptions& options,
      std::unique_ptr<rocksdb::FSRandomAccessFile>* result,
      rocksdb::IODebugContext* debug) override;
  rocksdb::IOStatus NewWritableFile(
      const std::string& path, const rocksdb::FileOptions& options,
      std::unique_ptr<rocksdb::FSWritableFile>* result,
      rocksdb::IODebugContext* debug) override;
  rocksdb::IOStatus NewRandomRWFile(
      const std::string& path, const rocksdb::FileOptions& options,
      std::unique_ptr<rocksdb::FSRandomRWFile>* result,
      rocksdb::IODebugContext* debug) override;
  rocksdb::IOStatus NewDirectory(const std::string& path,
                                 const rocksdb::IOOptions& options,
                                 std::unique_ptr<rocksdb::FSDirectory>* result,
                                 rocksdb::IODebugContext* debug) override;
  rocksdb::IOStatus DeleteFile(const std::string& path,
                               const rocksdb::IOOptions& options,
                               rocksdb::IODebugContext* debug) override;
  rocksdb::IOStatus CreateDir(const std::string& path,
                              const rocksdb::IOOptions& options,
                              rocksdb::IODebugContext* debug) override;
  rocksdb::IOStatus CreateDirIfMissing(const std::string& path,
                                       const rocksdb::IOOptions& options,
                                       rocksdb::IODebugContext* debug) override;
  rocksdb::IOStatus DeleteDir(const std::string& path,
                              const rocksdb::IOOptions& options,
                              rocksdb::IODebugContext* debug) override;
  rocksdb::IOStatus RenameFile(const std::string& source,
                               const std::string& target,
                               const rocksdb::IOOptions& options,
                               rocksdb::IODebugContext* debug) override;
  rocksdb::IOStatus LinkFile(const std::string& source,
                             const std::string& target,
                             const rocksdb::IOOptions& options,
                             rocksdb::IODebugContext* debug) override;
  // Not simulated, so refused: nobody may rely on it to survive a power cut.
  rocksdb::IOStatus ReopenWritableFile(
      const std::string& path, const rocksdb::FileOptions& options,
      std::unique_ptr<rocksdb::FSWritableFile>* result,
      rocksdb::IODebugContext* debug) override;
  rocksdb::IOStatus ReuseWritableFile(
      const std::string& path, const std::string& old_path,
      const rocksdb::FileOptions& options,
      std::unique_ptr<rocksdb::FSWritableFile>* result,
      rocksdb::IODebugContext* debug) override;

 private:
  class WritableFile;
  class RandomFile;
  class Directory;

  struct Inode {
    std::int64_t number = 0;  // in the order of creation
    std::string live;
    std::string synced;
    bool overwritten = false;  // since the last sync, not just appended to
  };
  using Names = std::map<std::string, std::shared_ptr<Inode>>;  // null: a
                                                                // directory
  // A change of a directory since its last sync.
  struct Change {
    std::string removed;  // empty: none
    std::string added;    // empty: none
    std::shared_ptr<Inode> inode;

    bool IsRenamedDirectory() const {
      return inode == nullptr && !removed.empty() && !added.empty();
    }
  };

  // Counts the call and cuts the power if it is due. Returns the fault that
  // hits the call, if any.
  std::optional<FileFault::Kind> ComeBy(FileCall call, const std::string& path)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Returns the error if an injected fault makes this call fail.
  rocksdb::IOStatus FailureOf(FileCall call, const std::string& path)
      ABSL_LOCKS_EXCLUDED(mutex_);
  std::shared_ptr<Inode> NewInode() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Note(const std::string& directory, Change change)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  static void Apply(const Change& change, Names& names);
  void SyncNames(const std::string& directory)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  static void SyncBytes(Inode& inode);
  void CutPower() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::string WhatIsLeftOf(const Inode& inode)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Returns a number in [0, count).
  std::size_t Random(std::size_t count) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::string root_;
  mutable Mutex mutex_;
  std::mt19937_64 random_ ABSL_GUARDED_BY(mutex_);
  Names live_ ABSL_GUARDED_BY(mutex_);
  Names synced_ ABSL_GUARDED_BY(mutex_);
  // Ordered by each directory's first change, so that one seed cuts the same
  // way whatever the names are.
  std::vector<std::pair<std::string, std::vector<Change>>> changes_
      ABSL_GUARDED_BY(mutex_);
  std::int64_t inode_count_ ABSL_GUARDED_BY(mutex_) = 0;
  std::int64_t call_count_ ABSL_GUARDED_BY(mutex_) = 0;
  std::int64_t cut_at_ ABSL_GUARDED_BY(mutex_) = 0;  // 0: never
  bool zeros_ ABSL_GUARDED_BY(mutex_) = false;
  // After a cut: the bytes of each path, or nullopt for a directory.
  std::optional<std::map<std::string, std::optional<std::string>>> left_
      ABSL_GUARDED_BY(mutex_);
  std::optional<FileFault> fault_ ABSL_GUARDED_BY(mutex_);
  std::vector<FileFault> struck_ ABSL_GUARDED_BY(mutex_);
  // The number that had hit calls at the last InjectNothing.
  std::size_t struck_before_ ABSL_GUARDED_BY(mutex_) = 0;
  bool holds_ ABSL_GUARDED_BY(mutex_) = false;
  CondVar released_;
};

}  // namespace attendant

#endif  // ATTENDANT_TESTS_DURABILITY_FAULTY_FILE_SYSTEM_H_
