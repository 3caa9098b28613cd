// NumPy's .npy files, versions 1.0 to 3.0: little-endian binary16, binary32 or
// binary64 numbers in C order, in one or two dimensions.
// numpy.org/doc/stable/reference/generated/numpy.lib.format.html
#ifndef ATTENDANT_CLIENT_FILES_NPY_H_
#define ATTENDANT_CLIENT_FILES_NPY_H_

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "client/files/vector_file.h"

namespace attendant {

// The header's description of the array, as in "{'descr': '<f4',
// 'fortran_order': False, 'shape': (3, 4), }".
struct NpyDescription {
  std::string descr;
  bool fortran_order = false;
  std::vector<std::int64_t> shape;
};

// Reads such a literal. InvalidArgument, without the file's name, if `text` is
// none.
absl::StatusOr<NpyDescription> ParseNpyDescription(absl::string_view text);

// Opens a file; an array of one dimension is one row. InvalidArgument: not an
// .npy file, another dtype, Fortran order, other than 1 or 2 dimensions, rows
// of 0 or more than kMaxFileDim components, or a file size that disagrees with
// the shape.
absl::StatusOr<std::unique_ptr<VectorFile>> OpenNpy(const std::string& path);

// Returns the bytes of a binary32 file of shape (row_count, dim). `values` is
// [row_count, dim].
std::string NpyBytes(std::span<const float> values, std::int64_t dim);
// Returns the bytes of a binary64 file of shape (values.size(),).
std::string NpyBytes(std::span<const double> values);

}  // namespace attendant

#endif  // ATTENDANT_CLIENT_FILES_NPY_H_
