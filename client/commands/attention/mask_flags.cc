#include "client/commands/attention/mask_flags.h"

#include "client/commands/shared/flags.h"
#include "client/files/ids.h"

namespace attendant {

std::vector<CLI::Option*> AddMaskFlags(CLI::App& verb, MaskFlags& flags) {
  return {
      AddRepeated(verb, "--deny", flags.deny, "Not these items, by id")
          ->type_name("ID"),
      verb.add_option("--deny-file", flags.deny_file, "Ids, one a line")
          ->type_name("FILE"),
      verb.add_option("--filter", flags.filter,
                      "Only items with attributes like these: price < 20 AND "
                      "(color = \"red\" OR tags:\"sale\"). Mind the "
                      "parentheses: OR binds closer than AND")
          ->type_name("FILTER"),
  };
}

absl::Status AddIds(const std::vector<std::string>& ids,
                    const std::string& path, v1::IdList& list) {
  list.mutable_ids()->Add(ids.begin(), ids.end());
  if (path.empty()) return absl::OkStatus();
  ATTENDANT_ASSIGN_OR_RETURN(const auto from_file, ReadIds(path));
  list.mutable_ids()->Add(from_file.begin(), from_file.end());
  return absl::OkStatus();
}

}  // namespace attendant
