#include "client/format/markup.h"

#include "absl/strings/str_replace.h"
#include "client/format/text.h"

namespace attendant {

std::string EscapeMarkup(absl::string_view text) {
  return absl::StrReplaceAll(Printable(text),
                             {{"&", "&amp;"},
                              {"<", "&lt;"},
                              {">", "&gt;"},
                              {"\"", "&quot;"},
                              // XML does not allow U+FFFE and U+FFFF.
                              {"\xef\xbf\xbe", "\xef\xbf\xbd"},
                              {"\xef\xbf\xbf", "\xef\xbf\xbd"}});
}

}  // namespace attendant
