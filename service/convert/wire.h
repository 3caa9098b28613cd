// Messages from and to the buffers that gRPC hands over.
#ifndef ATTENDANT_SERVICE_CONVERT_WIRE_H_
#define ATTENDANT_SERVICE_CONVERT_WIRE_H_

#include <google/protobuf/arena.h>
#include <google/protobuf/message_lite.h>
#include <grpcpp/support/byte_buffer.h>

#include <cstdint>

#include "absl/status/status.h"

namespace attendant {

// What a message may take once it is parsed: two bytes can stand for a message
// of hundreds. Requests within the limits take less.
constexpr std::int64_t MostParsedBytes(std::int64_t wire_bytes) {
  return 16 * wire_bytes + (std::int64_t{32} << 20);
}

// Of the arenas that messages of callers are parsed into.
google::protobuf::ArenaOptions MessageArenaOptions();

// Parses without copying the buffer's slices into one, into a message of an
// arena of MessageArenaOptions. InvalidArgument if the bytes are not such a
// message; that includes strings that are not UTF-8. OverLimit if it would take
// more than MostParsedBytes; what was parsed must not be looked at then.
absl::Status ParseMessage(const grpc::ByteBuffer& buffer,
                          google::protobuf::MessageLite* message);

// ResourceExhausted: a reply may have max_bytes and would have more.
absl::Status ReplyTooLarge(std::int64_t max_bytes);

// ReplyTooLarge if the message is larger than max_bytes.
absl::Status SerialiseMessage(const google::protobuf::MessageLite& message,
                              std::int64_t max_bytes, grpc::ByteBuffer* buffer);

}  // namespace attendant

#endif  // ATTENDANT_SERVICE_CONVERT_WIRE_H_
