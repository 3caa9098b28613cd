// The two kinds of id. An ItemId is the caller's: 1 to 128 bytes of UTF-8. A
// RowIndex is ours: a position in a segment. They never mix; the segment's id
// table is the one place that converts.
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

// OK if `id` is 1 to kMaxItemIdBytes bytes of well-formed UTF-8 without NUL;
// else ResourceExhausted if it is longer, InvalidArgument otherwise, naming
// `field`.
absl::Status ValidateItemId(absl::string_view id, absl::string_view field);

// True if it has no other characters than 0 to 9 and a to f.
bool IsLowerHex(absl::string_view text);

// True if `text` is well-formed UTF-8 (Unicode 15, table 3-7).
bool IsValidUtf8(absl::string_view text);

}  // namespace attendant

#endif  // ATTENDANT_CORE_BASE_IDS_H_
