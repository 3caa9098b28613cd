// Vectors of the wire to floats and back.
#ifndef ATTENDANT_SERVICE_CONVERT_VECTOR_H_
#define ATTENDANT_SERVICE_CONVERT_VECTOR_H_

#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "attendant/v1/vector.pb.h"

namespace attendant {

// At least one component; core checks their number and that they are finite.
// InvalidArgument names the field within the message: put the path of the
// message before it with PrefixField, or give it.
absl::StatusOr<std::vector<float>> VectorFromProto(const v1::Vector& vector);

// The same, of the message at `path`.
absl::StatusOr<std::vector<float>> VectorFromProto(const v1::Vector& vector,
                                                   absl::string_view path);

// As packed floats, which every client reads alike.
void VectorToProto(std::span<const float> components, v1::Vector* vector);

// Little-endian binary32, 4 bytes each. InvalidArgument naming `field` if the
// size is not a multiple of 4.
absl::StatusOr<std::vector<float>> FloatsFromBytes(const std::string& bytes,
                                                   absl::string_view field);

}  // namespace attendant

#endif  // ATTENDANT_SERVICE_CONVERT_VECTOR_H_
