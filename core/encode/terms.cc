#include <utf8proc.h>

#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/status.h"
#include "core/encode/text_encoder.h"

namespace attendant {
namespace {

struct Free {
  void operator()(utf8proc_uint8_t* bytes) const { std::free(bytes); }
};

// True for letters, digits and marks: in many scripts a vowel is a mark.
bool IsWordCharacter(utf8proc_int32_t codepoint) {
  switch (utf8proc_category(codepoint)) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_NO:
      return true;
    default:
      return false;
  }
}

// Appends a word and its 3-grams to `terms`, and clears `characters`.
void Flush(std::vector<absl::string_view>& characters,
           std::vector<std::string>& terms) {
  if (characters.empty()) return;
  std::string word;
  for (const absl::string_view character : characters) {
    absl::StrAppend(&word, character);
  }
  terms.push_back(std::move(word));
  const std::size_t count = characters.size();
  for (std::size_t i = 0; i < count; ++i) {
    terms.push_back(absl::StrCat("#", i == 0 ? "_" : characters[i - 1],
                                 characters[i],
                                 i + 1 == count ? "_" : characters[i + 1]));
  }
  characters.clear();
}

}  // namespace

absl::StatusOr<std::vector<std::string>> TermsOf(absl::string_view text) {
  utf8proc_uint8_t* mapped = nullptr;
  const utf8proc_ssize_t size = utf8proc_map(
      reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
      static_cast<utf8proc_ssize_t>(text.size()), &mapped,
      static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE |
                                     UTF8PROC_COMPAT | UTF8PROC_CASEFOLD |
                                     UTF8PROC_IGNORE));
  const std::unique_ptr<utf8proc_uint8_t, Free> owned(mapped);
  if (size == UTF8PROC_ERROR_NOMEM) {
    return absl::ResourceExhaustedError("no memory to normalise a text");
  }
  if (size < 0) return InvalidField("text", "malformed text", "UTF-8");

  std::vector<std::string> terms;
  std::vector<absl::string_view> characters;  // of the word being read
  for (utf8proc_ssize_t at = 0; at < size;) {
    utf8proc_int32_t codepoint;
    const utf8proc_ssize_t length =
        utf8proc_iterate(mapped + at, size - at, &codepoint);
    if (length <= 0) return InvalidField("text", "malformed text", "UTF-8");
    if (IsWordCharacter(codepoint)) {
      characters.emplace_back(reinterpret_cast<const char*>(mapped + at),
                              static_cast<std::size_t>(length));
    } else {
      Flush(characters, terms);
    }
    at += length;
  }
  Flush(characters, terms);
  return terms;
}

}  // namespace attendant
