// Text inside of markup.
#ifndef ATTENDANT_CLIENT_FORMAT_MARKUP_H_
#define ATTENDANT_CLIENT_FORMAT_MARKUP_H_

#include <string>

#include "absl/strings/string_view.h"

namespace attendant {

// The text made printable, with what HTML and SVG would take for markup
// replaced.
std::string EscapeMarkup(absl::string_view text);

}  // namespace attendant

#endif  // ATTENDANT_CLIENT_FORMAT_MARKUP_H_
