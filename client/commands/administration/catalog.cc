// attendant catalog list|describe|delete, and the verb itself
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/api/pages.h"
#include "client/commands/administration/catalog_text.h"
#include "client/commands/administration/commands.h"
#include "client/commands/shared/flags.h"
#include "core/base/status.h"

namespace attendant {
namespace {

using NamesByCatalog = std::map<std::string, std::vector<std::string>>;

// Returns the aliases of each catalog that has some; none if the server does
// not tell.
NamesByCatalog AliasesByCatalog(Client& client) {
  NamesByCatalog names;
  const auto all =
      AllPages(client, &Client::ListAliases, v1::ListAliasesRequest());
  if (!all.ok()) return names;
  for (const v1::Alias& alias : all->aliases()) {
    names[alias.catalog()].push_back(alias.name());
  }
  return names;
}

absl::Status ListCatalogs(const Context& context) {
  ATTENDANT_ASSIGN_OR_RETURN(const auto client, context.Connect());
  ATTENDANT_ASSIGN_OR_RETURN(
      const auto all,
      AllPages(*client, &Client::ListCatalogs, v1::ListCatalogsRequest()));
  // JSON has the reply alone.
  const auto aliases_of =
      context.json ? NamesByCatalog() : AliasesByCatalog(*client);
  std::vector<Table::Column> columns = {
      {.title = "catalog"},
      {.title = "items", .align = Table::Align::kRight},
      {.title = "key fields"}};
  if (!aliases_of.empty()) columns.push_back({.title = "aliases"});
  Listing listing = {
      .table = Table(columns),
      .none =
          "There are no catalogs. `attendant catalog create --help` tells "
          "how to make one.\n"};
  for (const v1::Catalog& catalog : all.catalogs()) {
    std::vector<std::string> fields;
    for (const v1::KeyField& field : catalog.schema().key_fields()) {
      fields.push_back(absl::StrCat(field.name(), ":", field.dimension(), ":",
                                    FlagOf(field.score_kind())));
    }
    std::vector<std::string> row = {catalog.name(),
                                    FormatCount(catalog.item_count()),
                                    absl::StrJoin(fields, " ")};
    if (!aliases_of.empty()) {
      const auto names = aliases_of.find(catalog.name());
      row.push_back(
          names == aliases_of.end() ? "" : absl::StrJoin(names->second, " "));
    }
    listing.table.AddRow(row);
  }
  for (const v1::Catalog& damaged : all.damaged_catalogs()) {
    listing.damaged.push_back(absl::StrCat(
        damaged.name(), ": ", absl::StrJoin(damaged.warnings(), "; ")));
  }
  PrintList(all, listing, context);
  return absl::OkStatus();
}

absl::Status Describe(const std::string& name, const Context& context) {
  ATTENDANT_ASSIGN_OR_RETURN(const auto client, context.Connect());
  v1::GetCatalogRequest request;
  request.set_name(name);
  ATTENDANT_ASSIGN_OR_RETURN(const auto response, client->GetCatalog(request));
  return Show(response,
              absl::StrCat(DescribeCatalog(response.catalog(), context.style),
                           DescribeServer(response.server_memory())),
              context);
}

struct DeleteCatalogFlags {
  std::string name;
  bool yes = false;
};

// Asks whether a catalog is to be deleted. One that is damaged can't be
// counted.
absl::Status ConfirmDelete(const std::string& name, Client& client) {
  v1::GetCatalogRequest get;
  get.set_name(name);
  const auto found = client.GetCatalog(get);
  if (absl::IsNotFound(found.status())) return found.status();
  return Confirm(absl::StrCat(
      "Delete catalog ", name,
      found.ok() ? absl::StrCat(" with its ",
                                CountOf(found->catalog().item_count(), "item"))
                 : "",
      " for good?"));
}

absl::Status DeleteCatalog(const DeleteCatalogFlags& flags,
                           const Context& context) {
  const std::string& name = flags.name;
  ATTENDANT_RETURN_IF_ERROR(CheckMayDelete(flags.yes));
  ATTENDANT_ASSIGN_OR_RETURN(const auto client, context.Connect());
  if (!flags.yes) {
    ATTENDANT_RETURN_IF_ERROR(ConfirmDelete(name, *client));
  }
  v1::DeleteCatalogRequest request;
  request.set_name(name);
  ATTENDANT_ASSIGN_OR_RETURN(const auto response,
                             client->DeleteCatalog(request));
  return Show(response, absl::StrCat("Deleted ", name, " and its items.\n"),
              context);
}

void AddDescribe(CLI::App& catalog, Context& context) {
  auto name = std::make_shared<std::string>();
  CLI::App* describe = catalog.add_subcommand(
      "describe", "Show schema, counts, indexes and warnings");
  describe->add_option("NAME", *name, "The catalog's name")->required();
  describe->footer("Example:\n  attendant catalog describe shop");
  SetVerb(*describe, context, name, &Describe);
}

void AddDelete(CLI::App& catalog, Context& context) {
  auto flags = std::make_shared<DeleteCatalogFlags>();
  CLI::App* command = catalog.add_subcommand(
      "delete", "Delete a catalog with all its items, for good");
  command->add_option("NAME", flags->name, "The catalog's name")->required();
  command->add_flag("--yes", flags->yes,
                    "Don't ask for confirmation; required without a terminal");
  command->footer(
      "Examples:\n"
      "  attendant catalog delete shop\n"
      "  attendant catalog delete shop --yes");
  SetVerb(*command, context, flags, &DeleteCatalog);
}

}  // namespace

void AddCatalogCommands(CLI::App& app, Context& context) {
  CLI::App* catalog = app.add_subcommand(
      "catalog", "Make, list, change, describe and delete catalogs");
  catalog->require_subcommand(1);
  catalog->footer(
      "Examples:\n"
      "  attendant catalog create photos --key-field image:512:cosine\n"
      "  attendant catalog describe photos");
  AddCatalogCreateCommand(*catalog, context);
  CLI::App* list = catalog->add_subcommand("list", "List the catalogs");
  list->footer("Example:\n  attendant catalog list");
  list->final_callback([&context] { context.Run(&ListCatalogs); });
  AddCatalogUpdateCommand(*catalog, context);
  AddDescribe(*catalog, context);
  AddDelete(*catalog, context);
}

}  // namespace attendant
