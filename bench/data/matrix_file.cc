#include "bench/data/matrix_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"

namespace attendant {

absl::StatusOr<MappedFile> MappedFile::Open(const std::string& path) {
  const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return absl::ErrnoToStatus(errno, path);
  struct stat status;
  if (fstat(descriptor, &status) != 0) {
    close(descriptor);
    return absl::ErrnoToStatus(errno, path);
  }
  const auto size = static_cast<std::size_t>(status.st_size);
  void* data =
      mmap(nullptr, size, PROT_READ, MAP_SHARED | MAP_POPULATE, descriptor, 0);
  const int error = errno;
  close(descriptor);
  if (data == MAP_FAILED) return absl::ErrnoToStatus(error, path);
  MappedFile file;
  file.data_ = static_cast<const std::byte*>(data);
  file.size_ = size;
  return file;
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) munmap(const_cast<std::byte*>(data_), size_);
}

absl::StatusOr<MatrixHeader> ReadHeader(const MappedFile& file,
                                        std::size_t element_size,
                                        const std::string& path) {
  MatrixHeader header;
  const MatrixHeader wanted;
  if (file.size() >= sizeof(header)) {
    std::memcpy(&header, file.data(), sizeof(header));
  }
  if (file.size() < sizeof(header) ||
      std::memcmp(header.magic, wanted.magic, sizeof(header.magic)) != 0 ||
      header.element_size != static_cast<std::int64_t>(element_size) ||
      file.size() !=
          sizeof(header) +
              static_cast<std::size_t>(header.row_count * header.column_count) *
                  element_size) {
    return absl::DataLossError(
        absl::StrCat(path, ": no matrix of ", element_size,
                     " bytes an element; delete it to have it made again"));
  }
  return header;
}

absl::Status WriteMatrixBytes(const std::string& path,
                              const MatrixHeader& header,
                              std::span<const std::byte> bytes) {
  const std::string temporary = absl::StrCat(path, ".", getpid());
  std::ofstream file(temporary, std::ios::binary);
  file.write(reinterpret_cast<const char*>(&header), sizeof(header));
  file.write(reinterpret_cast<const char*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
  file.close();
  if (!file || std::rename(temporary.c_str(), path.c_str()) != 0) {
    const int error = errno;
    std::remove(temporary.c_str());
    return absl::ErrnoToStatus(error, path);
  }
  return absl::OkStatus();
}

}  // namespace attendant
