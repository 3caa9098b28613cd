// Formats --help.
#ifndef ATTENDANT_CLIENT_FLAGS_HELP_FORMAT_H_
#define ATTENDANT_CLIENT_FLAGS_HELP_FORMAT_H_

#include <CLI/CLI.hpp>
#include <string>

namespace attendant {

// Formats help as CLI11 does, but in 80 columns. A flag's heading has its name
// and the type of its value; its description names the flags that it needs or
// excludes.
class HelpFormat : public CLI::Formatter {
 public:
  HelpFormat();

  std::string make_option_opts(const CLI::Option* option) const override;
  std::string make_option_desc(const CLI::Option* option) const override;
  std::string make_option_usage(const CLI::Option* positional) const override;
};

}  // namespace attendant

#endif  // ATTENDANT_CLIENT_FLAGS_HELP_FORMAT_H_
