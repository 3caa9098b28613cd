// Matrices in memory-mapped files, so that a benchmark's data does not count
// towards the anonymous memory that it measures.
#ifndef ATTENDANT_BENCH_DATA_MATRIX_FILE_H_
#define ATTENDANT_BENCH_DATA_MATRIX_FILE_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace attendant {

// A file mapped for reading; its pages are in the kernel's page cache.
class MappedFile {
 public:
  // NotFound if the file does not exist.
  static absl::StatusOr<MappedFile> Open(const std::string& path);

  MappedFile() = default;
  MappedFile(MappedFile&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)),
        size_(std::exchange(other.size_, 0)) {}
  MappedFile& operator=(MappedFile&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
  }
  ~MappedFile();

  const std::byte* data() const { return data_; }
  std::size_t size() const { return size_; }

 private:
  const std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

// The first 64 bytes of a file; the rows follow without padding.
struct MatrixHeader {
  char magic[8] = {'a', 't', 't', 'm', 'a', 't', 'r', '1'};
  std::int64_t row_count = 0;
  std::int64_t column_count = 0;
  std::int64_t element_size = 0;
  std::int64_t unused[4] = {};
};
static_assert(sizeof(MatrixHeader) == 64);

// Returns the header of a mapped file. DataLoss if the file is incomplete or
// its elements are not of `element_size` bytes.
absl::StatusOr<MatrixHeader> ReadHeader(const MappedFile& file,
                                        std::size_t element_size,
                                        const std::string& path);

// Writes a temporary file next to `path` and renames it, so that a file that
// exists is complete.
absl::Status WriteMatrixBytes(const std::string& path,
                              const MatrixHeader& header,
                              std::span<const std::byte> bytes);

// A row-major matrix in a file. Movable; rows keep their addresses.
template <typename T>
class MatrixFile {
 public:
  static absl::StatusOr<MatrixFile> Open(const std::string& path) {
    absl::StatusOr<MappedFile> file = MappedFile::Open(path);
    if (!file.ok()) return file.status();
    absl::StatusOr<MatrixHeader> header = ReadHeader(*file, sizeof(T), path);
    if (!header.ok()) return header.status();
    MatrixFile matrix;
    matrix.file_ = *std::move(file);
    matrix.row_count_ = header->row_count;
    matrix.column_count_ = header->column_count;
    return matrix;
  }

  static absl::Status Write(const std::string& path, std::int64_t column_count,
                            std::span<const T> elements) {
    MatrixHeader header;
    header.row_count =
        static_cast<std::int64_t>(elements.size()) / column_count;
    header.column_count = column_count;
    header.element_size = sizeof(T);
    return WriteMatrixBytes(path, header, std::as_bytes(elements));
  }

  std::int64_t row_count() const { return row_count_; }
  std::int64_t column_count() const { return column_count_; }
  const T* data() const {
    return reinterpret_cast<const T*>(file_.data() + sizeof(MatrixHeader));
  }
  std::span<const T> Row(std::int64_t row) const {
    return {data() + row * column_count_,
            static_cast<std::size_t>(column_count_)};
  }

 private:
  MappedFile file_;
  std::int64_t row_count_ = 0;
  std::int64_t column_count_ = 0;
};

}  // namespace attendant

#endif  // ATTENDANT_BENCH_DATA_MATRIX_FILE_H_
