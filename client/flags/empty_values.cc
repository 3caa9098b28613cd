#include "client/flags/empty_values.h"

namespace attendant {
namespace {

constexpr char kNothing[] =
    "got nothing, want a value (is a variable not set?)";

std::string CheckNotEmpty(const std::string& value) {
  return value.empty() ? kNothing : "";
}

}  // namespace

void RefuseEmptyValues(CLI::App& app, const std::set<std::string>& allowed) {
  for (CLI::Option* option : app.get_options()) {
    const bool takes_value = option->get_items_expected_max() > 0;
    if (takes_value && !allowed.contains(option->get_name())) {
      option->check(&CheckNotEmpty);
    }
  }
  for (CLI::App* command :
       app.get_subcommands([](const CLI::App*) { return true; })) {
    RefuseEmptyValues(*command, allowed);
  }
}

void RefuseEmptyAssignments(int argc, const char* const* argv) {
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--") return;  // no flags follow
    if (word.starts_with("--") && word.find('=') == word.size() - 1) {
      throw CLI::ValidationError(word.substr(0, word.size() - 1), kNothing);
    }
  }
}

}  // namespace attendant
