#include "core/base/ids.h"

#include <utf8proc.h>

#include "core/base/status.h"

namespace attendant {

bool IsValidUtf8(absl::string_view text) {
  const auto* at = reinterpret_cast<const utf8proc_uint8_t*>(text.data());
  auto left = static_cast<utf8proc_ssize_t>(text.size());
  while (left > 0) {
    utf8proc_int32_t codepoint;
    const utf8proc_ssize_t length = utf8proc_iterate(at, left, &codepoint);
    if (length <= 0) return false;
    at += length;
    left -= length;
  }
  return true;
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
