#include "core/base/ids.h"

#include <utf8proc.h>

#include <cstring>

#include "core/base/status.h"

namespace attendant {

bool IsValidUtf8(absl::string_view text) {
  const auto* at = reinterpret_cast<const utf8proc_uint8_t*>(text.data());
  auto left = static_cast<utf8proc_ssize_t>(text.size());
  while (left > 0) {
    // Most text is ASCII, so check eight bytes at a time.
    std::uint64_t eight = 0;
    if (left >= 8) {
      std::memcpy(&eight, at, 8);
      if ((eight & 0x8080808080808080) == 0) {
        at += 8;
        left -= 8;
        continue;
      }
    }
    if (*at < 0x80) {
      ++at;
      --left;
      continue;
    }
    utf8proc_int32_t codepoint;
    const utf8proc_ssize_t length = utf8proc_iterate(at, left, &codepoint);
    if (length <= 0) return false;
    at += length;
    left -= length;
  }
  return true;
}

bool IsLowerHex(absl::string_view text) {
  return text.find_first_not_of("0123456789abcdef") == absl::string_view::npos;
}

absl::Status ValidateItemId(absl::string_view id, absl::string_view field) {
  ATTENDANT_RETURN_IF_ERROR(CheckCount(static_cast<std::int64_t>(id.size()), 1,
                                       kMaxItemIdBytes, field, " bytes"));
  if (!IsValidUtf8(id) || id.find('\0') != absl::string_view::npos) {
    return InvalidField(field, "malformed text", "UTF-8 without NUL");
  }
  return absl::OkStatus();
}

}  // namespace attendant
