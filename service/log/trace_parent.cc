#include "service/log/trace_parent.h"

#include <cstddef>

#include "core/base/ids.h"

namespace attendant {
namespace {

// VERSION-TRACE_ID-PARENT_ID-FLAGS
constexpr std::size_t kVersionSize = 2;
constexpr std::size_t kTraceIdBegin = 3;
constexpr std::size_t kTraceIdSize = 32;
constexpr std::size_t kParentIdBegin = 36;
constexpr std::size_t kParentIdSize = 16;
constexpr std::size_t kFlagsBegin = 53;
constexpr std::size_t kFlagsSize = 2;
constexpr std::size_t kSize = 55;

bool IsZero(absl::string_view text) {
  return text.find_first_not_of('0') == absl::string_view::npos;
}

}  // namespace

std::optional<TraceParent> ParseTraceParent(absl::string_view header) {
  if (header.size() < kSize) return std::nullopt;
  const absl::string_view version = header.substr(0, kVersionSize);
  const TraceParent parsed = {header.substr(kTraceIdBegin, kTraceIdSize),
                              header.substr(kParentIdBegin, kParentIdSize)};
  const absl::string_view flags = header.substr(kFlagsBegin, kFlagsSize);
  if (!IsLowerHex(version) || version == "ff" || !IsLowerHex(parsed.trace_id) ||
      !IsLowerHex(parsed.parent_id) || !IsLowerHex(flags)) {
    return std::nullopt;
  }
  if (header[kTraceIdBegin - 1] != '-' || header[kParentIdBegin - 1] != '-' ||
      header[kFlagsBegin - 1] != '-') {
    return std::nullopt;
  }
  if (IsZero(parsed.trace_id) || IsZero(parsed.parent_id)) return std::nullopt;
  // Later versions may append fields.
  if (header.size() > kSize && (version == "00" || header[kSize] != '-')) {
    return std::nullopt;
  }
  return parsed;
}

}  // namespace attendant
