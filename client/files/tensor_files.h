// Named arrays of numbers, from several kinds of files.
#ifndef ATTENDANT_CLIENT_FILES_TENSOR_FILES_H_
#define ATTENDANT_CLIENT_FILES_TENSOR_FILES_H_

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace attendant {

struct Tensor {
  std::vector<std::int64_t> shape;
  std::vector<float> data;  // row-major
};

// Returns the shape as text, as in "[3, 4]".
std::string ShapeText(const std::vector<std::int64_t>& shape);

// The arrays of .safetensors files, of NAME.npy and NAME.txt files (named as
// the file; an array of one dimension is one row), and of directories of .npy
// files. Open reads the headers, Read the arrays. Not thread-safe.
class TensorFiles {
 public:
  // Opens all paths. InvalidArgument: no path, another kind of file, a
  // directory without .npy files, a damaged header, or two arrays of the same
  // name.
  static absl::StatusOr<TensorFiles> Open(
      const std::vector<std::string>& paths);

  // Returns the names of the arrays in sorted order.
  std::vector<std::string> names() const;
  // Returns the shape of an array, or null if there is none of this name.
  const std::vector<std::int64_t>* FindShape(const std::string& name) const;
  // Reads an existing array. InvalidArgument, naming the file, if it has more
  // than max_count components or a number that is not a finite 32-bit float.
  absl::StatusOr<Tensor> Read(const std::string& name,
                              std::int64_t max_count) const;
  // Returns InvalidArgument "PATH: tensor NAME: MESSAGE" for an existing array.
  absl::Status Error(const std::string& name, absl::string_view message) const;

 private:
  struct Entry {
    std::string path;
    std::vector<std::int64_t> shape;
    std::function<absl::StatusOr<std::vector<float>>()> read;
  };

  absl::Status Add(const std::string& path);
  absl::Status AddVectors(const std::string& path);
  absl::Status AddSafetensors(const std::string& path);
  absl::Status AddDirectory(const std::string& path);
  absl::Status AddEntry(const std::string& name, Entry entry);

  std::map<std::string, Entry> entries_;
};

}  // namespace attendant

#endif  // ATTENDANT_CLIENT_FILES_TENSOR_FILES_H_
