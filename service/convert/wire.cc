#include "service/convert/wire.h"

#include <grpcpp/impl/codegen/proto_utils.h>

#include "absl/strings/str_cat.h"
#include "core/base/status.h"

namespace attendant {

absl::Status ParseMessage(const grpc::ByteBuffer& buffer,
                          google::protobuf::MessageLite* message) {
  // Shares the slices; the reader wants a buffer that it may change.
  grpc::ByteBuffer slices(buffer);
  grpc::ProtoBufferReader reader(&slices);
  if (reader.status().ok() && message->ParseFromZeroCopyStream(&reader)) {
    return absl::OkStatus();
  }
  return StatusWithReason(
      absl::StatusCode::kInvalidArgument,
      absl::StrCat("the request's bytes are not a well-formed ",
                   message->GetTypeName(),
                   ", or one of its strings is not UTF-8"),
      "MALFORMED_MESSAGE");
}

absl::Status ReplyTooLarge(std::int64_t max_bytes) {
  return StatusWithReason(
      absl::StatusCode::kResourceExhausted,
      absl::StrCat("the reply would take more than ", max_bytes,
                   " bytes, the most of a message: ask for fewer items or a "
                   "smaller read mask"),
      kOverLimit);
}

absl::Status SerialiseMessage(const google::protobuf::MessageLite& message,
                              std::int64_t max_bytes,
                              grpc::ByteBuffer* buffer) {
  if (message.ByteSizeLong() > static_cast<std::size_t>(max_bytes)) {
    return ReplyTooLarge(max_bytes);
  }
  bool own_buffer = false;
  const grpc::Status status =
      grpc::GenericSerialize<grpc::ProtoBufferWriter,
                             google::protobuf::MessageLite>(message, buffer,
                                                            &own_buffer);
  if (status.ok()) return absl::OkStatus();
  return absl::InternalError(
      absl::StrCat("can't serialise a reply: ", status.error_message()));
}

}  // namespace attendant
