#include "core/base/scratch_files.h"

#include <sys/mman.h>

#include <cerrno>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"

namespace attendant {

FileMapping::~FileMapping() {
  if (random_ != nullptr) munmap(random_, size_);
  if (sequential_ != nullptr) munmap(sequential_, size_);
}

FileMapping& FileMapping::operator=(FileMapping&& other) noexcept {
  std::swap(size_, other.size_);
  std::swap(random_, other.random_);
  std::swap(sequential_, other.sequential_);
  return *this;
}

absl::StatusOr<FileMapping> FileMapping::Map(int fd, std::size_t size) {
  FileMapping mapping;
  mapping.size_ = size;
  for (std::byte** bytes : {&mapping.random_, &mapping.sequential_}) {
    void* mapped = mmap(nullptr, size, PROT_READ, MAP_SHARED, fd, 0);
    if (mapped == MAP_FAILED) {
      const std::string message = absl::StrCat(
          "can't map ", size, " bytes of a file: ",
          std::error_code(errno, std::generic_category()).message());
      return errno == ENOMEM ? absl::ResourceExhaustedError(message)
                             : absl::InternalError(message);
    }
    *bytes = static_cast<std::byte*>(mapped);
  }
  // Hints only; errors don't matter.
  madvise(mapping.random_, size, MADV_RANDOM);
  madvise(mapping.sequential_, size, MADV_SEQUENTIAL);
  return mapping;
}

}  // namespace attendant
