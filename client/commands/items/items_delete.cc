// attendant items delete
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/commands/items/commands.h"
#include "client/commands/shared/flags.h"
#include "core/base/status.h"

namespace attendant {
namespace {

struct DeleteFlags {
  std::string catalog;
  std::vector<std::string> ids;
  std::string filter;
  bool dry_run = false;
  bool yes = false;
  std::optional<std::int64_t> if_sequence;
  std::string request_id;
};

absl::Status DeleteByIds(const DeleteFlags& flags, const Context& context) {
  ATTENDANT_ASSIGN_OR_RETURN(const auto client, context.Connect());
  v1::BatchDeleteItemsRequest request;
  request.set_catalog(flags.catalog);
  request.set_request_id(flags.request_id);
  for (const std::string& id : flags.ids) request.add_ids(id);
  if (flags.if_sequence) {
    request.add_conditions()->set_sequence(*flags.if_sequence);
  }
  const auto response = client->BatchDeleteItems(request);
  if (!response.ok()) return NameItem(response.status(), flags.ids);
  return Show(
      *response,
      absl::StrCat("Deleted ", CountOf(response->deleted_count(), "item"),
                   response->missing_count() == 0
                       ? ""
                       : absl::StrCat("; ", response->missing_count(),
                                      " not in the catalog"),
                   ".\n"),
      context, response->state_token());
}

absl::Status DeleteMatching(const DeleteFlags& flags, const Context& context) {
  ATTENDANT_RETURN_IF_ERROR(CheckMayDelete(flags.yes || flags.dry_run));
  ATTENDANT_ASSIGN_OR_RETURN(const auto client, context.Connect());
  v1::DeleteMatchingItemsRequest request;
  request.set_catalog(flags.catalog);
  request.set_filter(flags.filter);
  if (!flags.dry_run && !flags.yes) {
    request.set_dry_run(true);
    ATTENDANT_ASSIGN_OR_RETURN(const auto counted,
                               client->DeleteMatchingItems(request));
    ATTENDANT_RETURN_IF_ERROR(Confirm(
        absl::StrCat("Delete ", CountOf(counted.deleted_count(), "item"),
                     " of catalog ", flags.catalog, "?")));
  }
  request.set_dry_run(flags.dry_run);
  request.set_request_id(flags.request_id);
  ATTENDANT_ASSIGN_OR_RETURN(const auto response,
                             client->DeleteMatchingItems(request));
  return Show(response,
              absl::StrCat(flags.dry_run ? "Would delete " : "Deleted ",
                           CountOf(response.deleted_count(), "item"), ".\n"),
              context, flags.dry_run ? "" : response.state_token());
}

}  // namespace

void AddItemsDeleteCommand(CLI::App& items, Context& context) {
  auto flags = std::make_shared<DeleteFlags>();
  CLI::App* command = items.add_subcommand(
      "delete", "Delete items, by id or by a filter on their attributes");
  command->add_option("CATALOG", flags->catalog, "The catalog")->required();
  CLI::Option* ids = AddItemIds(*command, flags->ids);
  CLI::Option* filter =
      AddFilterFlag(*command, flags->filter,
                    "Delete every item that matches, all or none of them")
          ->excludes(ids);
  command
      ->add_flag("--dry-run", flags->dry_run,
                 "Only count what --filter would delete")
      ->needs(filter);
  command
      ->add_flag("--yes", flags->yes,
                 "Don't ask for confirmation; required without a terminal")
      ->needs(filter);
  command
      ->add_option("--if-sequence", flags->if_sequence,
                   "Delete only if the item's last write has this number, "
                   "which `items get` shows; needs exactly one ID")
      ->needs(ids);
  command
      ->add_option("--request-id", flags->request_id,
                   "Makes the delete safe to repeat: the same id again returns "
                   "the first outcome")
      ->type_name("ID");
  command->footer(
      "Examples:\n"
      "  attendant items delete shop 85123A 71053\n"
      "  attendant items delete shop 85123A --if-sequence 12\n"
      "  attendant items delete shop --filter 'price < 1' --dry-run\n"
      "  attendant items delete shop --filter 'price < 1'\n\n"
      "When the command returns, no query finds the deleted items any more.");
  command->final_callback([flags, filter, &context] {
    if (flags->ids.empty() && filter->empty()) {
      throw CLI::RequiredError("ID or --filter");
    }
    if (flags->if_sequence && flags->ids.size() != 1) {
      throw CLI::ValidationError("--if-sequence", "goes with one ID");
    }
    context.Run([&](const Context& c) {
      return flags->ids.empty() ? DeleteMatching(*flags, c)
                                : DeleteByIds(*flags, c);
    });
  });
}

}  // namespace attendant
