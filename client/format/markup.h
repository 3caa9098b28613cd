// Escapes text for HTML and SVG.
#ifndef ATTENDANT_CLIENT_FORMAT_MARKUP_H_
#define ATTENDANT_CLIENT_FORMAT_MARKUP_H_

#include <string>

#include "absl/strings/string_view.h"

namespace attendant {

// Returns Printable(text) with the characters that are markup in HTML and SVG
// replaced by entities.
std::string EscapeMarkup(absl::string_view text);

}  // namespace attendant

#endif  // ATTENDANT_CLIENT_FORMAT_MARKUP_H_
