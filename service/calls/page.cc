#include "service/calls/page.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "core/base/status.h"

namespace attendant {
namespace {

// Bytes reserved for the next page token, and for the framing of an entry.
constexpr std::int64_t kTokenBytes = 4096;
constexpr std::int64_t kFrameBytes = 8;

}  // namespace

absl::StatusOr<int> PageSize(int requested) {
  constexpr int kDefault = 100;
  constexpr int kMost = 1000;
  if (requested < 0) {
    return InvalidField("page_size", absl::StrCat(requested), "0 or more");
  }
  return requested == 0 ? kDefault : std::min(requested, kMost);
}

PageRoom::PageRoom(int page_size, std::int64_t max_message_bytes,
                   const google::protobuf::MessageLite& reply)
    : entries_left_(page_size),
      bytes_left_(max_message_bytes - kTokenBytes -
                  static_cast<std::int64_t>(reply.ByteSizeLong())) {}

bool PageRoom::Takes(const google::protobuf::MessageLite& entry) {
  bytes_left_ -= static_cast<std::int64_t>(entry.ByteSizeLong()) + kFrameBytes;
  const bool takes = entries_left_ > 0 && (bytes_left_ >= 0 || is_empty_);
  --entries_left_;
  is_empty_ = false;
  return takes;
}

}  // namespace attendant
