#include "client/flags/help_format.h"

#include <cstddef>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"

namespace attendant {
namespace {

constexpr std::size_t kLineColumns = 80;

std::string JoinedNames(const std::set<CLI::Option*>& options) {
  std::set<std::string> names;
  for (const CLI::Option* option : options) names.insert(option->get_name());
  return absl::StrJoin(names, ", ");
}

// Breaks the text into lines of at most `columns`, except for longer words.
std::string InLines(absl::string_view text, std::size_t columns) {
  std::string lines;
  std::size_t used = 0;
  for (const absl::string_view word : absl::StrSplit(text, ' ')) {
    if (used == 0) {
      absl::StrAppend(&lines, word);
    } else if (used + 1 + word.size() <= columns) {
      absl::StrAppend(&lines, " ", word);
      ++used;
    } else {
      absl::StrAppend(&lines, "\n", word);
      used = 0;
    }
    used += word.size();
  }
  return lines;
}

}  // namespace

HelpFormat::HelpFormat() { label("FLOAT", "NUMBER"); }

std::string HelpFormat::make_option_opts(const CLI::Option* option) const {
  std::string text;
  if (option->get_type_size() != 0 && !option->get_positional()) {
    const std::string full = option->get_type_name();
    absl::string_view type = full;
    // The values that a check allows say more than the type: "TEXT:{sum,unit}".
    for (const absl::string_view plain : {"TEXT:", "FLOAT:", "INT:", "UINT:"}) {
      if (absl::ConsumePrefix(&type, plain)) break;
    }
    absl::StrAppend(&text, " ", get_label(std::string(type)));
    if (!option->get_default_str().empty()) {
      absl::StrAppend(&text, "=", option->get_default_str());
    }
  }
  if (option->get_required()) absl::StrAppend(&text, " REQUIRED");
  if (!option->get_envname().empty()) {
    absl::StrAppend(&text, " (Env:", option->get_envname(), ")");
  }
  return text;
}

std::string HelpFormat::make_option_desc(const CLI::Option* option) const {
  std::string text = option->get_description();
  if (!option->get_needs().empty()) {
    absl::StrAppend(&text, "; needs ", JoinedNames(option->get_needs()));
  }
  if (!option->get_excludes().empty()) {
    absl::StrAppend(&text, "; not with ", JoinedNames(option->get_excludes()));
  }
  return InLines(text, kLineColumns - get_column_width());
}

std::string HelpFormat::make_option_usage(const CLI::Option* positional) const {
  const std::string name =
      absl::StrCat(positional->get_name(/*positional=*/true),
                   positional->get_expected_max() > 1 ? "..." : "");
  return positional->get_required() ? name : absl::StrCat("[", name, "]");
}

}  // namespace attendant
