// Converts vectors to and from messages.
#ifndef ATTENDANT_CLIENT_API_WIRE_VECTOR_H_
#define ATTENDANT_CLIENT_API_WIRE_VECTOR_H_

#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "attendant/v1/vector.pb.h"

namespace attendant {

v1::Vector ToVector(std::span<const float> components);
// Internal if the bytes are not a whole number of floats.
absl::StatusOr<std::vector<float>> FromVector(const v1::Vector& vector);

}  // namespace attendant

#endif  // ATTENDANT_CLIENT_API_WIRE_VECTOR_H_
