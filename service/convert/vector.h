// Converts vectors between the wire and floats.
#ifndef ATTENDANT_SERVICE_CONVERT_VECTOR_H_
#define ATTENDANT_SERVICE_CONVERT_VECTOR_H_

#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "attendant/v1/vector.pb.h"

namespace attendant {

// Requires at least one component; core checks the number of components and
// that they are finite. InvalidArgument names the field within the message:
// prepend the message's path with PrefixField, or pass `path`.
absl::StatusOr<std::vector<float>> VectorFromProto(const v1::Vector& vector);

// Like VectorFromProto above, with errors that name fields under `path`.
absl::StatusOr<std::vector<float>> VectorFromProto(const v1::Vector& vector,
                                                   absl::string_view path);

// Writes packed floats, which every client can read.
void VectorToProto(std::span<const float> components, v1::Vector* vector);

// Reads little-endian binary32, 4 bytes each. InvalidArgument naming `field` if
// the size is not a multiple of 4.
absl::StatusOr<std::vector<float>> FloatsFromBytes(const std::string& bytes,
                                                   absl::string_view field);

}  // namespace attendant

#endif  // ATTENDANT_SERVICE_CONVERT_VECTOR_H_
