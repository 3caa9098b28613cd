// Files of vectors, read row by row.
#ifndef ATTENDANT_CLIENT_FILES_VECTOR_FILE_H_
#define ATTENDANT_CLIENT_FILES_VECTOR_FILE_H_

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "client/files/input.h"

namespace attendant {

// The most components of a row; a larger number means a damaged header.
inline constexpr std::int64_t kMaxFileDim = 1000000;

// A file of row_count rows of dim numbers. Rows can be read in any order; in
// order is fastest. Not thread-safe.
class VectorFile {
 public:
  virtual ~VectorFile() = default;

  const std::string& path() const { return path_; }
  std::int64_t row_count() const { return row_count_; }
  std::int64_t dim() const { return dim_; }  // in [1, kMaxFileDim]

  // Puts row `row`, in [0, row_count), into out [dim]. InvalidArgument, naming
  // the file, the row and the column (both from 1), if a number is not finite
  // or too large for binary32, or if the row violates the format. Other rows
  // can be read after that.
  absl::Status ReadRow(std::int64_t row, std::span<float> out);

 protected:
  VectorFile(std::string path, std::int64_t row_count, std::int64_t dim);

 private:
  // Reads a row without checking that its numbers are finite.
  virtual absl::Status ReadFloats(std::int64_t row, std::span<float> out) = 0;

  const std::string path_;
  const std::int64_t row_count_;
  const std::int64_t dim_;
};

// A file whose rows all have the same size in bytes.
class FixedRowFile : public VectorFile {
 protected:
  // The rows begin at data_offset, row_bytes apart. All must lie within the
  // file.
  FixedRowFile(RandomFile file, std::int64_t data_offset,
               std::int64_t row_bytes, std::int64_t row_count,
               std::int64_t dim);

 private:
  // Decodes the bytes of a row.
  virtual absl::Status Decode(std::int64_t row, std::span<const char> bytes,
                              std::span<float> out) const = 0;
  absl::Status ReadFloats(std::int64_t row, std::span<float> out) override;

  RandomFile file_;
  const std::int64_t data_offset_;
  const std::int64_t row_bytes_;
  std::vector<char> buffer_;  // rows from buffer_row_ on
  std::int64_t buffer_row_ = 0;
  std::int64_t buffer_row_count_ = 0;
  std::int64_t last_row_ = -1;
};

// Opens an .npy, .fvecs, .txt or .csv file, by its extension. InvalidArgument
// for another extension.
absl::StatusOr<std::unique_ptr<VectorFile>> OpenVectorFile(
    const std::string& path);
// True if OpenVectorFile supports the path's extension.
bool IsVectorFile(absl::string_view path);

}  // namespace attendant

#endif  // ATTENDANT_CLIENT_FILES_VECTOR_FILE_H_
