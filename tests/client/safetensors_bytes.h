// Builds safetensors files by hand, from the format's specification.
#ifndef ATTENDANT_TESTS_CLIENT_SAFETENSORS_BYTES_H_
#define ATTENDANT_TESTS_CLIENT_SAFETENSORS_BYTES_H_

#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace attendant {

inline std::string SafetensorsBytes(const std::string& header,
                                    const std::string& data) {
  std::string bytes(8, '\0');
  const std::uint64_t size = header.size();
  std::memcpy(bytes.data(), &size, sizeof(size));
  return absl::StrCat(bytes, header, data);
}

template <typename T>
std::string BytesOf(const std::vector<T>& components) {
  return {reinterpret_cast<const char*>(components.data()),
          components.size() * sizeof(T)};
}

struct NamedTensor {
  std::string name;
  std::string dtype;
  std::vector<std::int64_t> shape;
  std::string bytes;
};

inline NamedTensor F32Tensor(std::string name, std::vector<std::int64_t> shape,
                             const std::vector<float>& components) {
  return {std::move(name), "F32", std::move(shape), BytesOf(components)};
}

inline std::string SafetensorsBytes(const std::vector<NamedTensor>& tensors) {
  std::string header = "{\"__metadata__\": {\"format\": \"pt\"}";
  std::string data;
  for (const NamedTensor& tensor : tensors) {
    absl::StrAppend(&header, ", \"", tensor.name, "\": {\"dtype\": \"",
                    tensor.dtype, "\", \"shape\": [",
                    absl::StrJoin(tensor.shape, ", "), "], \"data_offsets\": [",
                    data.size(), ", ", data.size() + tensor.bytes.size(), "]}");
    data += tensor.bytes;
  }
  return SafetensorsBytes(header + "}", data);
}

}  // namespace attendant

#endif  // ATTENDANT_TESTS_CLIENT_SAFETENSORS_BYTES_H_
