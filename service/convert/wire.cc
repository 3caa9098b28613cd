#include "service/convert/wire.h"

#include <grpc/slice.h>
#include <grpcpp/impl/codegen/proto_utils.h>
#include <grpcpp/support/slice.h>

#include <new>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "core/base/status.h"

namespace attendant {
namespace {

// Bytes left for the message that the thread is parsing; null if it parses
// none.
thread_local std::int64_t* parse_bytes_left = nullptr;

// Thrown because an arena has no other way to report failure.
struct TakesTooMuch {};

void* AllocateBlock(std::size_t bytes) {
  if (parse_bytes_left != nullptr) {
    *parse_bytes_left -= static_cast<std::int64_t>(bytes);
    if (*parse_bytes_left < 0) throw TakesTooMuch();
  }
  return ::operator new(bytes);
}

void FreeBlock(void* block, std::size_t /*bytes*/) { ::operator delete(block); }

bool Parse(const grpc::ByteBuffer& buffer,
           google::protobuf::MessageLite* message) {
  grpc::Slice slice;
  if (buffer.TrySingleSlice(&slice).ok()) {
    return message->ParseFromArray(slice.begin(),
                                   static_cast<int>(slice.size()));
  }
  // Shares the slices; the reader needs a buffer that it may modify.
  grpc::ByteBuffer slices(buffer);
  grpc::ProtoBufferReader reader(&slices);
  return reader.status().ok() && message->ParseFromZeroCopyStream(&reader);
}

}  // namespace

google::protobuf::ArenaOptions MessageArenaOptions() {
  google::protobuf::ArenaOptions options;
  options.block_alloc = AllocateBlock;
  options.block_dealloc = FreeBlock;
  return options;
}

absl::Status ParseMessage(const grpc::ByteBuffer& buffer,
                          google::protobuf::MessageLite* message) {
  const std::int64_t most =
      MostParsedBytes(static_cast<std::int64_t>(buffer.Length()));
  std::int64_t left = most;
  parse_bytes_left = &left;
  const absl::Cleanup parsed = [] { parse_bytes_left = nullptr; };
  try {
    if (Parse(buffer, message)) return absl::OkStatus();
  } catch (const TakesTooMuch&) {
    return OverLimit(
        message->GetTypeName(),
        absl::StrCat(buffer.Length(), " bytes that take more than ", most,
                     " once they are read"),
        "fewer and larger elements");
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
                   " bytes, the maximum size of a message "
                   "(--max-message-bytes): ask for fewer items, a smaller read "
                   "mask, or no weights of heads or tokens"),
      kOverLimit);
}

absl::Status SerialiseMessage(const google::protobuf::MessageLite& message,
                              std::int64_t max_bytes,
                              grpc::ByteBuffer* buffer) {
  const std::size_t size = message.ByteSizeLong();
  if (size > static_cast<std::size_t>(max_bytes)) {
    return ReplyTooLarge(max_bytes);
  }
  // gRPC's own serialisation would compute the size again.
  grpc_slice bytes = grpc_slice_malloc(size);
  message.SerializeWithCachedSizesToArray(GRPC_SLICE_START_PTR(bytes));
  const grpc::Slice slice(bytes, grpc::Slice::STEAL_REF);
  grpc::ByteBuffer made(&slice, 1);
  buffer->Swap(&made);  // assignment would copy
  return absl::OkStatus();
}

}  // namespace attendant
