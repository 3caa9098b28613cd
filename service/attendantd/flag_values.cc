#include "service/attendantd/flag_values.h"

#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"

namespace attendant {
namespace {

// Returns false and leaves `text` unchanged if it is not a percentage.
bool ReplaceShare(std::int64_t whole, std::string& text) {
  absl::string_view number = text;
  double percent = 0;
  if (!absl::ConsumeSuffix(&number, "%") ||
      !absl::SimpleAtod(number, &percent) || !(percent > 0 && percent <= 100)) {
    return false;
  }
  text = absl::StrCat(
      static_cast<std::int64_t>(percent / 100 * static_cast<double>(whole)));
  return true;
}

bool ReplaceSize(std::string& text) {
  try {
    std::int64_t bytes = 0;  // larger values would be clamped to the maximum
    return CLI::AsSizeValue(/*kb_is_1000=*/true)(text).empty() &&
           absl::SimpleAtoi(text, &bytes);
  } catch (const CLI::ValidationError&) {
    return false;
  }
}

}  // namespace

CLI::Validator AsBytes(std::int64_t whole) {
  return {[whole](std::string& text) -> std::string {
            const std::string got = text;
            if (whole > 0 && ReplaceShare(whole, text)) return "";
            if (ReplaceSize(text)) return "";
            return absl::StrCat(
                "got \"", got, "\", want bytes such as 12GiB",
                whole > 0 ? " or a percentage such as 80%" : "");
          },
          ""};
}

}  // namespace attendant
