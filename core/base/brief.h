// Shortens long input that is quoted in an error.
#ifndef ATTENDANT_CORE_BASE_BRIEF_H_
#define ATTENDANT_CORE_BASE_BRIEF_H_

#include <cstddef>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace attendant {

inline constexpr std::size_t kBriefBytes = 240;

// Returns `text`. If it is longer than kBriefBytes, returns its first
// characters and its size instead, as in "abc… (3000000 bytes)". Well-formed
// UTF-8 stays well-formed.
inline std::string Brief(absl::string_view text) {
  if (text.size() <= kBriefBytes) return std::string(text);
  std::size_t size = kBriefBytes / 2;
  // Don't cut within a character: all bytes of one but the first are 10xxxxxx.
  while (size > 0 && (text[size] & 0xC0) == 0x80) --size;
  return absl::StrCat(text.substr(0, size), "… (", text.size(), " bytes)");
}

}  // namespace attendant

#endif  // ATTENDANT_CORE_BASE_BRIEF_H_
