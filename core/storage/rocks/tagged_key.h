// Keys of our databases. The first byte, the tag, tells the kind of what is
// stored.
#ifndef ATTENDANT_CORE_STORAGE_ROCKS_TAGGED_KEY_H_
#define ATTENDANT_CORE_STORAGE_ROCKS_TAGGED_KEY_H_

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace attendant {

// With an empty name: the only key of its tag, or the place before those that
// have names.
inline std::string TaggedKey(char tag, absl::string_view name = "") {
  return absl::StrCat(absl::string_view(&tag, 1), name);
}

// Returns the first key after those of `tag`.
inline std::string EndOfTag(char tag) { return std::string(1, tag + 1); }

}  // namespace attendant

#endif  // ATTENDANT_CORE_STORAGE_ROCKS_TAGGED_KEY_H_
