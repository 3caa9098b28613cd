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

// More components than any row holds; a larger number is a damaged header.
inline constexpr std::int64_t kMaxFileDim = 1000000;

// row_count rows of dim numbers. Reading rows in order is quick; any order
// works. Not thread-safe.
class VectorFile {
 public:
  virtual ~VectorFile() = default;

  const std::string& path() const { return path_; }
  std::int64_t row_count() const { return row_count_; }
  std::int64_t dim() const { return dim_; }  // in [1, kMaxFileDim]

  // Puts row `row`, in [0, row_count), into out [dim]. InvalidArgument, naming
  // the file, the row from 1 and the column from 1, if a number is not finite
  // or too large for binary32, or if the row is not what the format says. Other
  // rows can be read after that.
  absl::Status ReadRow(std::int64_t row, std::span<float> out);

 protected:
  VectorFile(std::string path, std::int64_t row_count, std::int64_t dim);

 private:
  // ReadRow, before it looks at the floats.
  virtual absl::Status ReadFloats(std::int64_t row, std::span<float> out) = 0;

  const std::string path_;
  const std::int64_t row_count_;
  const std::int64_t dim_;
};

// A file whose rows are all of one size.
class FixedRowFile : public VectorFile {
 protected:
  // Rows lie row_bytes apart from data_offset on, within the file.
  FixedRowFile(RandomFile file, std::int64_t data_offset,
               std::int64_t row_bytes, std::int64_t row_count,
               std::int64_t dim);

 private:
  // Turns the bytes of a row into floats.
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

// Opens a .npy, .fvecs or .txt file, by the name's end. Another end is
// InvalidArgument.
absl::StatusOr<std::unique_ptr<VectorFile>> OpenVectorFile(
    const std::string& path);
// Whether it takes a file of such a name.
bool IsVectorFile(absl::string_view path);

}  // namespace attendant

#endif  // ATTENDANT_CLIENT_FILES_VECTOR_FILE_H_
