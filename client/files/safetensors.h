// .safetensors files: named arrays behind one header.
// huggingface.co/docs/safetensors: 8 bytes of header size, little-endian; a
// JSON object of {"dtype", "shape", "data_offsets": [begin, end]} for each
// name; and the bytes that the offsets count from the end of the header.
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

// Thread-safe. Errors name the file and, where there is one, the tensor.
class SafetensorsFile {
 public:
  struct Entry {
    std::string dtype;
    std::vector<std::int64_t> shape;  // each >= 0; empty: a scalar
    std::int64_t begin = 0;           // of its bytes in the file
    std::int64_t end = 0;
  };

  // Reads the header. InvalidArgument: not such a file, a name that is there
  // twice, or a tensor that lies outside of it, shares bytes with another or,
  // if its dtype is one that Read takes, is not as large as its shape.
  static absl::StatusOr<SafetensorsFile> Open(const std::string& path);

  const std::map<std::string, Entry>& tensors() const { return tensors_; }

  // The components of a tensor that is there, row-major, from F64, F32, F16 or
  // BF16. InvalidArgument for another dtype and for a number that is not finite
  // or too large for binary32.
  absl::StatusOr<std::vector<float>> Read(const std::string& name) const;

 private:
  SafetensorsFile(RandomFile file, std::map<std::string, Entry> tensors)
      : file_(std::move(file)), tensors_(std::move(tensors)) {}

  RandomFile file_;
  std::map<std::string, Entry> tensors_;
};

}  // namespace attendant

#endif  // ATTENDANT_CLIENT_FILES_SAFETENSORS_H_
