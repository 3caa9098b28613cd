// How --help shows flags.
#ifndef ATTENDANT_CLIENT_FLAGS_HELP_FORMAT_H_
#define ATTENDANT_CLIENT_FLAGS_HELP_FORMAT_H_

#include <CLI/CLI.hpp>
#include <string>

namespace attendant {

// As CLI11 does, in 80 columns: a flag's heading has its name and what it
// takes, and the flags that it needs or excludes stand with its description.
class HelpFormat : public CLI::Formatter {
 public:
  HelpFormat();

  std::string make_option_opts(const CLI::Option* option) const override;
  std::string make_option_desc(const CLI::Option* option) const override;
  std::string make_option_usage(const CLI::Option* positional) const override;
};

}  // namespace attendant

#endif  // ATTENDANT_CLIENT_FLAGS_HELP_FORMAT_H_
