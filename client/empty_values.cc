#include "client/empty_values.h"

namespace attendant {
namespace {

std::string CheckNotEmpty(const std::string& value) {
  return value.empty() ? "got nothing, want a value (is a variable not set?)"
                       : "";
}

}  // namespace

void RefuseEmptyValues(CLI::App& app, const std::set<std::string>& allowed) {
  for (CLI::Option* option : app.get_options()) {
    const bool takes_value = option->get_items_expected_max() > 0;
    if (takes_value && !allowed.contains(option->get_name())) {
      option->check(CLI::Validator(&CheckNotEmpty, ""));
    }
  }
  for (CLI::App* command :
       app.get_subcommands([](const CLI::App*) { return true; })) {
    RefuseEmptyValues(*command, allowed);
  }
}

}  // namespace attendant
