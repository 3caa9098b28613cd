#include "client/files/fvecs.h"

#include <bit>
#include <cstdint>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/status.h"

namespace attendant {
namespace {

static_assert(std::endian::native == std::endian::little);

class FvecsFile : public FixedRowFile {
 public:
  FvecsFile(RandomFile file, std::int64_t row_bytes, std::int64_t row_count,
            std::int64_t dim)
      : FixedRowFile(std::move(file), 0, row_bytes, row_count, dim) {}

 private:
  absl::Status Decode(std::int64_t row, std::span<const char> bytes,
                      std::span<float> out) const override {
    std::int32_t row_dim = 0;
    std::memcpy(&row_dim, bytes.data(), sizeof(row_dim));
    if (row_dim != dim()) {
      return RowError(path(), row + 1,
                      absl::StrCat("got dimension ", row_dim, ", want ", dim(),
                                   " as in the first row"));
    }
    std::memcpy(out.data(), bytes.data() + sizeof(row_dim), out.size_bytes());
    return absl::OkStatus();
  }
};

}  // namespace

absl::StatusOr<std::unique_ptr<VectorFile>> OpenFvecs(const std::string& path) {
  ATTENDANT_ASSIGN_OR_RETURN(RandomFile file, RandomFile::Open(path));
  std::int32_t dim = 0;
  if (file.size() < static_cast<std::int64_t>(sizeof(dim))) {
    return FileError(path, absl::StrCat("not an .fvecs file: got ", file.size(),
                                        " bytes, want at least one row"));
  }
  char bytes[sizeof(dim)];
  ATTENDANT_RETURN_IF_ERROR(file.ReadAt(0, bytes));
  std::memcpy(&dim, bytes, sizeof(dim));
  if (dim < 1 || dim > kMaxFileDim) {
    return FileError(
        path, absl::StrCat("not an .fvecs file: row 1 has dimension ", dim,
                           ", want 1 to ", kMaxFileDim));
  }
  const std::int64_t row_bytes = 4 + std::int64_t{4} * dim;
  const std::int64_t row_count = file.size() / row_bytes;
  if (file.size() % row_bytes != 0) {
    return RowError(path, row_count + 1,
                    absl::StrCat("cut off: got ", file.size() % row_bytes,
                                 " bytes, want ", row_bytes));
  }
  return std::unique_ptr<VectorFile>(
      new FvecsFile(std::move(file), row_bytes, row_count, dim));
}

}  // namespace attendant
