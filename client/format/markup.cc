#include "client/format/markup.h"

#include "absl/strings/str_replace.h"
#include "client/format/text.h"

namespace attendant {

std::string EscapeMarkup(absl::string_view text) {
  return absl::StrReplaceAll(
      Printable(text),
      {{"&", "&amp;"}, {"<", "&lt;"}, {">", "&gt;"}, {"\"", "&quot;"}});
}

}  // namespace attendant
