// .safetensors files: named arrays behind one header.
// huggingface.co/docs/safetensors: the header's size in 8 bytes, little-endian;
// a JSON object with {"dtype", "shape", "data_offsets": [begin, end]} for each
// name; then the data. Offsets count from the end of the header.
#ifndef ATTENDANT_CLIENT_FILES_SAFETENSORS_H_
#define ATTENDANT_CLIENT_FILES_SAFETENSORS_H_

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "client/files/input.h"

namespace attendant {

// An open file. Thread-safe. Errors name the file and the tensor, if they
// concern one.
class SafetensorsFile {
 public:
  struct Entry {
    std::string dtype;
    std::vector<std::int64_t> shape;  // each >= 0; empty for a scalar
    // The tensor's bytes are [begin, end) of the file.
    std::int64_t begin = 0;
    std::int64_t end = 0;
  };

  // Reads the header. InvalidArgument: not a .safetensors file, a name that
  // appears twice, or a tensor that lies outside the file, overlaps another or,
  // if Read supports its dtype, differs in size from its shape.
  static absl::StatusOr<SafetensorsFile> Open(const std::string& path);

  const std::map<std::string, Entry>& tensors() const { return tensors_; }

  // Returns the components, row-major, of a tensor of type F64, F32, F16 or
  // BF16 that is in tensors(). InvalidArgument for another dtype, or if a
  // number is not finite or too large for binary32.
  absl::StatusOr<std::vector<float>> Read(const std::string& name) const;

 private:
  SafetensorsFile(RandomFile file, std::map<std::string, Entry> tensors)
      : file_(std::move(file)), tensors_(std::move(tensors)) {}

  RandomFile file_;
  std::map<std::string, Entry> tensors_;
};

}  // namespace attendant

#endif  // ATTENDANT_CLIENT_FILES_SAFETENSORS_H_
