// Scratch files in memory that fail when told to.
#ifndef ATTENDANT_TESTS_SUPPORT_MEMORY_FILES_H_
#define ATTENDANT_TESTS_SUPPORT_MEMORY_FILES_H_

#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <memory>
#include <utility>

#include "core/base/mutex.h"
#include "core/base/scratch_files.h"

namespace attendant {

class MemoryFiles : public ScratchFiles {
 public:
  // Set how the next files fail: before the first byte, after a number of
  // bytes, and when the complete file is synced.
  void FailToCreate(absl::Status status) {
    MutexLock lock(&mutex_);
    create_status_ = std::move(status);
  }
  void FailAfter(std::int64_t byte_count, absl::Status status) {
    MutexLock lock(&mutex_);
    good_bytes_ = byte_count;
    append_status_ = std::move(status);
  }
  void FailToMap(absl::Status status) {
    MutexLock lock(&mutex_);
    map_status_ = std::move(status);
  }

  // Number of files mapped since construction.
  std::int64_t mapped_count() const { return mapped_count_; }
  std::int64_t appended_bytes() const { return appended_bytes_; }

  absl::Status CheckRoom(std::int64_t) const override {
    MutexLock lock(&mutex_);
    return create_status_;
  }

  absl::StatusOr<std::unique_ptr<ScratchFile>> Create(
      std::int64_t byte_count) override {
    if (const absl::Status status = CheckRoom(byte_count); !status.ok()) {
      return status;
    }
    return std::make_unique<File>(*this);
  }

 private:
  class File : public ScratchFile {
   public:
    explicit File(MemoryFiles& files)
        : files_(files), fd_(memfd_create("scratch", MFD_CLOEXEC)) {}
    ~File() override { close(fd_); }

    absl::Status Append(std::span<const std::byte> bytes) override {
      size_ += bytes.size();
      files_.appended_bytes_ += static_cast<std::int64_t>(bytes.size());
      {
        MutexLock lock(&files_.mutex_);
        if (!files_.append_status_.ok() &&
            static_cast<std::int64_t>(size_) > files_.good_bytes_) {
          return files_.append_status_;
        }
      }
      const auto written = write(fd_, bytes.data(), bytes.size());
      return written == static_cast<ssize_t>(bytes.size())
                 ? absl::OkStatus()
                 : absl::InternalError("memfd");
    }
    absl::StatusOr<FileMapping> Map() override {
      {
        MutexLock lock(&files_.mutex_);
        if (!files_.map_status_.ok()) return files_.map_status_;
      }
      ++files_.mapped_count_;
      return FileMapping::Map(fd_, size_);
    }

   private:
    MemoryFiles& files_;
    const int fd_;
    std::size_t size_ = 0;
  };

  std::atomic<std::int64_t> mapped_count_ = 0;
  std::atomic<std::int64_t> appended_bytes_ = 0;
  mutable Mutex mutex_;
  absl::Status create_status_ ABSL_GUARDED_BY(mutex_);
  absl::Status append_status_ ABSL_GUARDED_BY(mutex_);
  absl::Status map_status_ ABSL_GUARDED_BY(mutex_);
  std::int64_t good_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace attendant

#endif  // ATTENDANT_TESTS_SUPPORT_MEMORY_FILES_H_
