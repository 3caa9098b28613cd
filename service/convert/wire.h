// Messages from and to the buffers that gRPC hands over.
#ifndef ATTENDANT_SERVICE_CONVERT_WIRE_H_
#define ATTENDANT_SERVICE_CONVERT_WIRE_H_

#include <google/protobuf/message_lite.h>
#include <grpcpp/support/byte_buffer.h>

#include <cstdint>

#include "absl/status/status.h"

namespace attendant {

// Parses without copying the buffer's slices into one. InvalidArgument if the
// bytes are not such a message; that includes strings that are not UTF-8.
absl::Status ParseMessage(const grpc::ByteBuffer& buffer,
                          google::protobuf::MessageLite* message);

// ResourceExhausted: a reply may have max_bytes and would have more.
absl::Status ReplyTooLarge(std::int64_t max_bytes);

// ReplyTooLarge if the message is larger than max_bytes.
absl::Status SerialiseMessage(const google::protobuf::MessageLite& message,
                              std::int64_t max_bytes, grpc::ByteBuffer* buffer);

}  // namespace attendant

#endif  // ATTENDANT_SERVICE_CONVERT_WIRE_H_
