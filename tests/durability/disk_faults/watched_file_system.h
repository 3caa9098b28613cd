// A file system that lets a test observe syncs.
#ifndef ATTENDANT_TESTS_DURABILITY_DISK_FAULTS_WATCHED_FILE_SYSTEM_H_
#define ATTENDANT_TESTS_DURABILITY_DISK_FAULTS_WATCHED_FILE_SYSTEM_H_

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "tests/durability/faulty_file_system.h"

namespace attendant {

// Calls a function before each sync of a file; the function may block, or
// return an error that the sync then fails with.
class WatchedFileSystem : public FaultyFileSystem {
 public:
  using Watch = std::function<rocksdb::IOStatus(const std::string& path)>;

  using FaultyFileSystem::FaultyFileSystem;
  // Call before any file is open.
  void WatchSyncs(Watch watch) { watch_ = std::move(watch); }
  rocksdb::IOStatus NewWritableFile(
      const std::string& path, const rocksdb::FileOptions& options,
      std::unique_ptr<rocksdb::FSWritableFile>* result,
      rocksdb::IODebugContext* debug) override {
    const rocksdb::IOStatus status =
        FaultyFileSystem::NewWritableFile(path, options, result, debug);
    if (status.ok() && watch_) {
      *result = std::make_unique<File>(std::move(*result), path, watch_);
    }
    return status;
  }

 private:
  class File : public rocksdb::FSWritableFileOwnerWrapper {
   public:
    File(std::unique_ptr<rocksdb::FSWritableFile> file, std::string path,
         Watch watch)
        : FSWritableFileOwnerWrapper(std::move(file)),
          path_(std::move(path)),
          watch_(std::move(watch)) {}
    rocksdb::IOStatus Sync(const rocksdb::IOOptions& options,
                           rocksdb::IODebugContext* debug) override {
      const rocksdb::IOStatus status = watch_(path_);
      return status.ok() ? target()->Sync(options, debug) : status;
    }
    rocksdb::IOStatus Fsync(const rocksdb::IOOptions& options,
                            rocksdb::IODebugContext* debug) override {
      return Sync(options, debug);
    }

   private:
    const std::string path_;
    const Watch watch_;
  };

  Watch watch_;
};

}  // namespace attendant

#endif  // ATTENDANT_TESTS_DURABILITY_DISK_FAULTS_WATCHED_FILE_SYSTEM_H_
