#include "client/commands/attention/mask_flags.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/commands/shared/flags.h"
#include "client/files/ids.h"

namespace attendant {

std::vector<CLI::Option*> AddMaskFlags(CLI::App& verb, MaskFlags& flags) {
  return {
      AddRepeated(verb, "--deny", flags.deny, "Not these items, by id")
          ->type_name("ID"),
      verb.add_option("--deny-file", flags.deny_file, "Ids, one a line")
          ->type_name("FILE"),
      verb.add_option(
              "--filter", flags.filter,
              "Only items whose attributes fulfil this: price < 20 AND "
              "(color = \"red\" OR tags:\"sale\"). OR binds closer than "
              "AND")
          ->type_name("FILTER"),
  };
}

std::vector<std::string> MasksOf(const v1::AttendRequest& request) {
  std::vector<std::string> masks;
  if (!request.filter().empty()) masks.push_back("--filter");
  if (request.has_allow_list()) masks.push_back("--allow");
  if (request.has_deny_list()) masks.push_back("--deny");
  if (request.query().examples().exclude_examples()) {
    masks.push_back("the examples");
  }
  return masks;
}

std::string ListOf(std::vector<std::string> masks) {
  const std::string last = masks.back();
  masks.pop_back();
  return absl::StrCat(absl::StrJoin(masks, ", "), masks.empty() ? "" : " and ",
                      last);
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
