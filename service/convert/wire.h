// Parses and serialises messages from and to gRPC's buffers.
#ifndef ATTENDANT_SERVICE_CONVERT_WIRE_H_
#define ATTENDANT_SERVICE_CONVERT_WIRE_H_

#include <google/protobuf/arena.h>
#include <google/protobuf/message_lite.h>
#include <grpcpp/support/byte_buffer.h>

#include <cstdint>

#include "absl/status/status.h"

namespace attendant {

// Maximum bytes that a message of `wire_bytes` may take once parsed: two bytes
// on the wire can stand for a message of hundreds. Requests within the limits
// take less.
constexpr std::int64_t MostParsedBytes(std::int64_t wire_bytes) {
  return 16 * wire_bytes + (std::int64_t{32} << 20);
}

// Options for arenas into which callers' messages are parsed.
google::protobuf::ArenaOptions MessageArenaOptions();

// Parses without merging the buffer's slices, into a message on an arena with
// MessageArenaOptions. InvalidArgument if the bytes are not a valid message,
// including strings that are not UTF-8. OverLimit if it would take more than
// MostParsedBytes; the message must then not be used.
absl::Status ParseMessage(const grpc::ByteBuffer& buffer,
                          google::protobuf::MessageLite* message);

// Returns ResourceExhausted: the reply would exceed max_bytes.
absl::Status ReplyTooLarge(std::int64_t max_bytes);

// ReplyTooLarge if the message exceeds max_bytes.
absl::Status SerialiseMessage(const google::protobuf::MessageLite& message,
                              std::int64_t max_bytes, grpc::ByteBuffer* buffer);

}  // namespace attendant

#endif  // ATTENDANT_SERVICE_CONVERT_WIRE_H_
