// attendant alias set|list|delete
#include <memory>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "client/api/pages.h"
#include "client/commands/administration/commands.h"
#include "core/base/status.h"

namespace attendant {
namespace {

struct SetFlags {
  std::string alias;
  std::string catalog;
  std::optional<std::string> expected;
  bool is_new = false;
};

absl::Status SetAlias(const SetFlags& flags, const Context& context) {
  v1::SetAliasRequest request;
  request.set_alias(flags.alias);
  request.set_catalog(flags.catalog);
  if (flags.expected.has_value() || flags.is_new) {
    request.set_expected_catalog(flags.expected.value_or(""));
  }
  ATTENDANT_ASSIGN_OR_RETURN(const auto client, context.Connect());
  ATTENDANT_ASSIGN_OR_RETURN(const auto response, client->SetAlias(request));
  const std::string& previous = response.previous_catalog();
  return Show(
      response,
      absl::StrCat(
          response.alias().name(), " names ", response.alias().catalog(),
          previous.empty() ? "" : absl::StrCat(", and named ", previous),
          ".\n"),
      context);
}

absl::Status ListAliases(const Context& context) {
  ATTENDANT_ASSIGN_OR_RETURN(const auto client, context.Connect());
  ATTENDANT_ASSIGN_OR_RETURN(
      const auto all,
      AllPages(*client, &Client::ListAliases, v1::ListAliasesRequest()));
  Listing listing = {
      .table = Table({{.title = "alias"}, {.title = "catalog"}}),
      .none =
          "There are no aliases. `attendant alias set --help` tells how to "
          "make one.\n"};
  for (const v1::Alias& alias : all.aliases()) {
    listing.table.AddRow({alias.name(), alias.catalog()});
  }
  PrintList(all, listing, context);
  return absl::OkStatus();
}

absl::Status DeleteAlias(const std::string& alias, const Context& context) {
  v1::DeleteAliasRequest request;
  request.set_alias(alias);
  ATTENDANT_ASSIGN_OR_RETURN(const auto client, context.Connect());
  ATTENDANT_ASSIGN_OR_RETURN(const auto response, client->DeleteAlias(request));
  return Show(response,
              absl::StrCat("Deleted alias ", alias, "; its catalog stays.\n"),
              context);
}

void AddSet(CLI::App& alias, Context& context) {
  auto flags = std::make_shared<SetFlags>();
  CLI::App* set =
      alias.add_subcommand("set", "Make an alias, or move it to a catalog");
  set->add_option("ALIAS", flags->alias, "The alias")->required();
  set->add_option("CATALOG", flags->catalog, "The catalog to name")->required();
  CLI::Option* expected = set->add_option(
      "--if-names", flags->expected,
      "Only if the alias names this catalog now; fails otherwise");
  set->add_flag("--if-new", flags->is_new, "Only if there is no such alias yet")
      ->excludes(expected);
  set->footer(
      "Examples:\n"
      "  attendant alias set shop shop-1\n"
      "  attendant alias set shop shop-2 --if-names shop-1\n\n"
      "An alias works wherever a catalog's name does. It moves atomically: "
      "each\n"
      "request sees either the old catalog or the new one. Clients of `shop`\n"
      "thus switch without an error to a catalog that was built or restored "
      "in\n"
      "addition to the one in use, and back as quickly.");
  SetVerb(*set, context, flags, &SetAlias);
}

}  // namespace

void AddAliasCommands(CLI::App& app, Context& context) {
  CLI::App* alias =
      app.add_subcommand("alias", "Give catalogs further names, and move them");
  alias->require_subcommand(1);
  alias->footer(
      "Examples:\n"
      "  attendant alias set shop shop-1\n"
      "  attendant alias list");
  AddSet(*alias, context);
  CLI::App* list = alias->add_subcommand("list", "List the aliases");
  list->footer("Example:\n  attendant alias list");
  list->final_callback([&context] { context.Run(&ListAliases); });

  auto deleted = std::make_shared<std::string>();
  CLI::App* remove =
      alias->add_subcommand("delete", "Delete an alias; its catalog stays");
  remove->add_option("ALIAS", *deleted, "The alias")->required();
  remove->footer("Example:\n  attendant alias delete shop");
  SetVerb(*remove, context, deleted, &DeleteAlias);
}

}  // namespace attendant
