// Files that replace memory for bulk data that can be computed again.
#ifndef ATTENDANT_CORE_BASE_SCRATCH_FILES_H_
#define ATTENDANT_CORE_BASE_SCRATCH_FILES_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace attendant {

// The bytes of a file, read-only, mapped twice: random() for reads in any
// order, which load only the pages they touch, and sequential() for long runs,
// which read ahead. The kernel may drop the pages when memory is short and
// reads them again on access. Movable; thread-safe.
//
// The process ends by SIGBUS if the disk fails to read a page. Nobody may
// truncate the file.
class FileMapping {
 public:
  FileMapping() = default;
  ~FileMapping();
  FileMapping(FileMapping&& other) noexcept { *this = std::move(other); }
  FileMapping& operator=(FileMapping&& other) noexcept;

  // Maps the first `size` bytes of an open file that has at least as many; the
  // descriptor may be closed afterwards. ResourceExhausted if address space
  // runs out; Internal if the file can't be mapped.
  static absl::StatusOr<FileMapping> Map(int fd, std::size_t size);

  std::size_t size() const { return size_; }
  const std::byte* random() const { return random_; }
  const std::byte* sequential() const { return sequential_; }

 private:
  std::size_t size_ = 0;
  std::byte* random_ = nullptr;
  std::byte* sequential_ = nullptr;
};

// A file that is being written. Not thread-safe.
class ScratchFile {
 public:
  virtual ~ScratchFile() = default;

  // ResourceExhausted when the disk is full; Unavailable (reason
  // kFilesNotAccessible) or Internal if it can't be written.
  virtual absl::Status Append(std::span<const std::byte> bytes) = 0;
  // Maps all bytes appended, at least one, once they are on the disk. Call
  // once.
  virtual absl::StatusOr<FileMapping> Map() = 0;
};

// Creates scratch files. Thread-safe.
class ScratchFiles {
 public:
  virtual ~ScratchFiles() = default;

  // ResourceExhausted if the disk has no room for `byte_count` bytes.
  virtual absl::Status CheckRoom(std::int64_t byte_count) const = 0;
  // Creates an empty file that will hold `byte_count` bytes. The file
  // disappears once both the ScratchFile and its FileMapping are destroyed, or
  // when the process ends. Errors are those of CheckRoom and Append.
  virtual absl::StatusOr<std::unique_ptr<ScratchFile>> Create(
      std::int64_t byte_count) = 0;
};

}  // namespace attendant

#endif  // ATTENDANT_CORE_BASE_SCRATCH_FILES_H_
