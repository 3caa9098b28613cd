#include "client/files/vector_file.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "client/files/fvecs.h"
#include "client/files/npy.h"
#include "client/files/text_rows.h"
#include "core/base/status.h"

namespace attendant {
namespace {

constexpr std::int64_t kRowBufferBytes = 1 << 18;

bool IsText(absl::string_view path) {
  return absl::EndsWith(path, ".txt") || absl::EndsWith(path, ".csv");
}

}  // namespace

VectorFile::VectorFile(std::string path, std::int64_t row_count,
                       std::int64_t dim)
    : path_(std::move(path)), row_count_(row_count), dim_(dim) {}

absl::Status VectorFile::ReadRow(std::int64_t row, std::span<float> out) {
  ATTENDANT_RETURN_IF_ERROR(ReadFloats(row, out));
  for (std::size_t i = 0; i < out.size(); ++i) {
    if (std::isfinite(out[i])) continue;
    return RowError(path(), row + 1,
                    absl::StrCat("column ", i + 1, ": got ", out[i],
                                 ", want a finite 32-bit float"));
  }
  return absl::OkStatus();
}

FixedRowFile::FixedRowFile(RandomFile file, std::int64_t data_offset,
                           std::int64_t row_bytes, std::int64_t row_count,
                           std::int64_t dim)
    : VectorFile(file.path(), row_count, dim),
      file_(std::move(file)),
      data_offset_(data_offset),
      row_bytes_(row_bytes) {}

absl::Status FixedRowFile::ReadFloats(std::int64_t row, std::span<float> out) {
  if (row < buffer_row_ || row >= buffer_row_ + buffer_row_count_) {
    // Reads ahead only if rows are read in order.
    const std::int64_t ahead =
        row == last_row_ + 1
            ? std::max<std::int64_t>(1, kRowBufferBytes / row_bytes_)
            : 1;
    const std::int64_t count = std::min(ahead, row_count() - row);
    buffer_row_count_ = 0;
    buffer_.resize(static_cast<std::size_t>(count * row_bytes_));
    ATTENDANT_RETURN_IF_ERROR(
        file_.ReadAt(data_offset_ + row * row_bytes_, buffer_));
    buffer_row_ = row;
    buffer_row_count_ = count;
  }
  last_row_ = row;
  const std::span<const char> bytes = std::span<const char>(buffer_).subspan(
      static_cast<std::size_t>((row - buffer_row_) * row_bytes_),
      static_cast<std::size_t>(row_bytes_));
  return Decode(row, bytes, out);
}

absl::StatusOr<std::unique_ptr<VectorFile>> OpenVectorFile(
    const std::string& path) {
  if (absl::EndsWith(path, ".npy")) return OpenNpy(path);
  if (absl::EndsWith(path, ".fvecs")) return OpenFvecs(path);
  if (IsText(path)) return OpenTextRows(path);
  return FileError(path,
                   "the name ends neither in .npy, .fvecs, .txt nor .csv");
}

bool IsVectorFile(absl::string_view path) {
  return absl::EndsWith(path, ".npy") || absl::EndsWith(path, ".fvecs") ||
         IsText(path);
}

}  // namespace attendant
