#include "service/convert/vector.h"

#include <bit>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "core/base/status.h"

namespace attendant {

static_assert(std::endian::native == std::endian::little,
              "float32_le is copied as it is");

absl::StatusOr<std::vector<float>> FloatsFromBytes(const std::string& bytes,
                                                   absl::string_view field) {
  if (bytes.size() % sizeof(float) != 0) {
    return InvalidField(field, absl::StrCat(bytes.size(), " bytes"),
                        "4 bytes per component");
  }
  std::vector<float> floats(bytes.size() / sizeof(float));
  if (!floats.empty()) std::memcpy(floats.data(), bytes.data(), bytes.size());
  return floats;
}

absl::StatusOr<std::vector<float>> VectorFromProto(const v1::Vector& vector) {
  constexpr absl::string_view kWant = "one component for each dimension";
  switch (vector.encoding_case()) {
    case v1::Vector::kFloats: {
      const auto& values = vector.floats().values();
      if (values.empty()) return InvalidField("floats.values", "none", kWant);
      return std::vector<float>(values.begin(), values.end());
    }
    case v1::Vector::kFloat32Le:
      if (vector.float32_le().empty()) {
        return InvalidField("float32_le", "no bytes", kWant);
      }
      return FloatsFromBytes(vector.float32_le(), "float32_le");
    case v1::Vector::ENCODING_NOT_SET:
      break;
  }
  return InvalidField("encoding", "none", "floats or float32_le");
}

absl::StatusOr<std::vector<float>> VectorFromProto(const v1::Vector& vector,
                                                   absl::string_view path) {
  absl::StatusOr<std::vector<float>> floats = VectorFromProto(vector);
  if (floats.ok()) return floats;
  return PrefixField(floats.status(), absl::StrCat(path, "."));
}

void VectorToProto(std::span<const float> components, v1::Vector* vector) {
  vector->mutable_floats()->mutable_values()->Add(components.begin(),
                                                  components.end());
}

}  // namespace attendant
