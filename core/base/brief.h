// What an error says of an input that may be long.
#ifndef ATTENDANT_CORE_BASE_BRIEF_H_
#define ATTENDANT_CORE_BASE_BRIEF_H_

#include <cstddef>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace attendant {

inline constexpr std::size_t kBriefBytes = 240;

// The text; of one of more than kBriefBytes its first characters and its size,
// as in "abc… (3000000 bytes)". UTF-8 stays well-formed.
inline std::string Brief(absl::string_view text) {
  if (text.size() <= kBriefBytes) return std::string(text);
  std::size_t size = kBriefBytes / 2;
  // Not within a character: its bytes but the first are 10xxxxxx.
  while (size > 0 && (text[size] & 0xC0) == 0x80) --size;
  return absl::StrCat(text.substr(0, size), "… (", text.size(), " bytes)");
}

}  // namespace attendant

#endif  // ATTENDANT_CORE_BASE_BRIEF_H_
