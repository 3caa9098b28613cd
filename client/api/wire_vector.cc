#include "client/api/wire_vector.h"

#include <bit>
#include <cstring>
#include <string>

#include "absl/status/status.h"

namespace attendant {

static_assert(std::endian::native == std::endian::little);

v1::Vector ToVector(std::span<const float> components) {
  v1::Vector vector;
  vector.set_float32_le(components.data(), components.size_bytes());
  return vector;
}

absl::StatusOr<std::vector<float>> FromVector(const v1::Vector& vector) {
  if (vector.has_floats()) {
    const auto& values = vector.floats().values();
    return std::vector<float>(values.begin(), values.end());
  }
  const std::string& bytes = vector.float32_le();
  if (bytes.size() % sizeof(float) != 0) {
    return absl::InternalError("a vector from the server is cut off");
  }
  std::vector<float> components(bytes.size() / sizeof(float));
  if (!bytes.empty()) {
    std::memcpy(components.data(), bytes.data(), bytes.size());
  }
  return components;
}

}  // namespace attendant
