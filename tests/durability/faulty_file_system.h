// A file system that a power cut takes what was not synced from, and that
// fails on request.
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

// What its errors say.
inline constexpr char kInjectedError[] = "injected";

// Calls that change what is on the disk, and those that open a file to read.
enum class FileCall { kOpen, kCreate, kWrite, kSync, kRename, kRemove };

// What befalls a call.
struct FileFault {
  enum class Kind {
    kFail,      // nothing is done, and an error returned
    kNoSpace,   // the same, and the error is that the disk is full
    kNoRights,  // the same, and the error is that access is denied
    kShorten,   // half of a write is done, and an error returned; else kFail
    kDelay,     // it takes 20 ms
    kHold,      // it takes until InjectNothing
  };
  Kind kind = Kind::kFail;
  FileCall call = FileCall::kWrite;
  // From 1: that of the calls whose path contains `path_part`.
  int nth = 1;
  std::string path_part;
};

// The files are the operating system's, and nothing is really synced: what of
// them a power cut would leave is kept in memory beside. A file keeps the bytes
// that were there at its last sync, a directory the names; of what came after,
// a random part is kept too: a prefix of a file's bytes and of a directory's
// changes. With `zeros` a tail may also have blocks of zeros in it or after it,
// as file systems leave them that make room before they write.
//
// Only for files below `root`, and only those made through this; at first there
// are none. Thread-safe.
class FaultyFileSystem : public rocksdb::FileSystemWrapper {
 public:
  FaultyFileSystem(std::string root, std::uint64_t seed);
  ~FaultyFileSystem() override;
  const char* Name() const override { return "FaultyFileSystem"; }

  // The power is cut just before the nth FileCall from now, from 1. The process
  // goes on as if nothing were: what it does from then on is for nothing.
  void CutPowerAt(std::int64_t nth, bool zeros);
  // It has been cut.
  bool cut() const;
  // Puts the files into the state that the cut left them in. Everything that is
  // below the root must be closed.
  void RestoreAfterCut();

  // One fault at a time.
  void Inject(const FileFault& fault);
  // One has befallen a call since InjectNothing.
  bool befell() const;
  void InjectNothing();

  // FileCalls so far.
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
  // Not known here, and so not survived: refused, that nobody relies on it.
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
  // A change of a directory that it is not synced since.
  struct Change {
    std::string removed;  // empty: none
    std::string added;    // empty: none
    std::shared_ptr<Inode> inode;

    bool IsRenamedDirectory() const {
      return inode == nullptr && !removed.empty() && !added.empty();
    }
  };

  // Counts the call, and cuts the power. Returns what befalls it.
  std::optional<FileFault::Kind> ComeBy(FileCall call, const std::string& path)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The error of a call that fails, if one befalls it.
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
  // In [0, count).
  std::size_t Random(std::size_t count) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::string root_;
  mutable Mutex mutex_;
  std::mt19937_64 random_ ABSL_GUARDED_BY(mutex_);
  Names live_ ABSL_GUARDED_BY(mutex_);
  Names synced_ ABSL_GUARDED_BY(mutex_);
  // In the order of the first, that the same seed cuts the same whatever names
  // there are.
  std::vector<std::pair<std::string, std::vector<Change>>> changes_
      ABSL_GUARDED_BY(mutex_);
  std::int64_t inode_count_ ABSL_GUARDED_BY(mutex_) = 0;
  std::int64_t call_count_ ABSL_GUARDED_BY(mutex_) = 0;
  std::int64_t cut_at_ ABSL_GUARDED_BY(mutex_) = 0;  // 0: never
  bool zeros_ ABSL_GUARDED_BY(mutex_) = false;
  // After a cut: paths and bytes; no bytes: a directory.
  std::optional<std::map<std::string, std::optional<std::string>>> left_
      ABSL_GUARDED_BY(mutex_);
  std::optional<FileFault> fault_ ABSL_GUARDED_BY(mutex_);
  bool befell_ ABSL_GUARDED_BY(mutex_) = false;
  bool holds_ ABSL_GUARDED_BY(mutex_) = false;
  CondVar released_;
};

}  // namespace attendant

#endif  // ATTENDANT_TESTS_DURABILITY_FAULTY_FILE_SYSTEM_H_
