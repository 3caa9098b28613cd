// Files in place of memory, for bulk data that can be made again.
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

// The bytes of a file, read-only, mapped twice: once for reads in any order,
// which fetch no more than they touch, once for reads of long runs, which fetch
// ahead. Its pages are the file's: the kernel takes them back when memory is
// short, and reads them again. Movable; thread-safe.
//
// A page that the disk fails to read ends the process by SIGBUS. Nobody else
// may shorten the file.
class FileMapping {
 public:
  FileMapping() = default;
  ~FileMapping();
  FileMapping(FileMapping&& other) noexcept { *this = std::move(other); }
  FileMapping& operator=(FileMapping&& other) noexcept;

  // The first `size` bytes of an open file that has as many; the descriptor may
  // then be closed. ResourceExhausted without address space; Internal if the
  // file can't be mapped.
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
  // All that was appended, at least one byte, once it is on the disk. Once.
  virtual absl::StatusOr<FileMapping> Map() = 0;
};

// Thread-safe.
class ScratchFiles {
 public:
  virtual ~ScratchFiles() = default;

  // ResourceExhausted if the disk has no room for so many bytes.
  virtual absl::Status CheckRoom(std::int64_t byte_count) const = 0;
  // An empty file that will hold byte_count bytes. It goes with the last of the
  // ScratchFile and its FileMapping, and with the process. Errors of CheckRoom
  // and Append.
  virtual absl::StatusOr<std::unique_ptr<ScratchFile>> Create(
      std::int64_t byte_count) = 0;
};

}  // namespace attendant

#endif  // ATTENDANT_CORE_BASE_SCRATCH_FILES_H_
