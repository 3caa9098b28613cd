// The two kinds of id. An ItemId is the caller's: 1 to 128 bytes of UTF-8. A
// RowIndex is internal: a position in a segment. Only the segment's id table
// converts between them.
#ifndef ATTENDANT_CORE_BASE_IDS_H_
#define ATTENDANT_CORE_BASE_IDS_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace attendant {

using ItemId = std::string;
using RowIndex = std::int32_t;

inline constexpr int kMaxItemIdBytes = 128;

// OK if `id` is 1 to kMaxItemIdBytes bytes of well-formed UTF-8 without NUL.
// ResourceExhausted if it is longer, InvalidArgument for any other defect; both
// name `field`.
absl::Status ValidateItemId(absl::string_view id, absl::string_view field);

// True if `text` contains only the characters 0 to 9 and a to f.
bool IsLowerHex(absl::string_view text);

// True if `text` is well-formed UTF-8 (Unicode 15, table 3-7).
bool IsValidUtf8(absl::string_view text);

}  // namespace attendant

#endif  // ATTENDANT_CORE_BASE_IDS_H_
