// attendant items export
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "client/api/pages.h"
#include "client/commands/items/commands.h"
#include "client/commands/items/item_lines.h"
#include "client/files/file_stream.h"
#include "client/format/progress.h"
#include "core/base/status.h"
#include "nlohmann/json.hpp"

namespace attendant {
namespace {

// The FILE that stands for standard output.
constexpr absl::string_view kStandardOutput = "-";

struct ExportFlags {
  std::string catalog;
  std::string path;
  std::string filter;
};

using AppendLine = std::function<absl::Status(const std::string&)>;

// Calls `append` with the line of each item. Returns their count.
absl::StatusOr<std::int64_t> ExportItems(const ExportFlags& flags,
                                         Client& client,
                                         const AppendLine& append) {
  v1::ListItemsRequest request;
  request.set_catalog(flags.catalog);
  request.set_page_size(1000);
  request.set_filter(flags.filter);
  std::optional<Progress> progress;
  std::int64_t item_count = 0;
  const auto take = [&](const v1::ListItemsResponse& page) -> absl::Status {
    if (!progress) progress.emplace(stderr, "Exporting", page.total_count());
    for (const v1::Item& item : page.items()) {
      ATTENDANT_ASSIGN_OR_RETURN(const std::string line, ItemToLine(item));
      ATTENDANT_RETURN_IF_ERROR(append(line));
    }
    item_count += page.items_size();
    progress->Update(item_count);
    return absl::OkStatus();
  };
  ATTENDANT_RETURN_IF_ERROR(
      ForEachPage(client, &Client::ListItems, request, take));
  return item_count;
}

std::string WroteText(std::int64_t item_count, absl::string_view where) {
  return absl::StrCat("Wrote ", CountOf(item_count, "item"), " to ", where,
                      ".");
}

// The items are all that standard output holds, with --json too.
absl::Status ExportToOutput(const ExportFlags& flags, Client& client) {
  ATTENDANT_ASSIGN_OR_RETURN(
      const std::int64_t item_count,
      ExportItems(flags, client, [](const std::string& line) {
        Print(line);
        return absl::OkStatus();
      }));
  ATTENDANT_RETURN_IF_ERROR(FlushOutput());
  Note(WroteText(item_count, "standard output"));
  return absl::OkStatus();
}

absl::Status Export(const ExportFlags& flags, const Context& context) {
  ATTENDANT_ASSIGN_OR_RETURN(const auto client, context.Connect());
  if (flags.path == kStandardOutput) return ExportToOutput(flags, *client);
  ATTENDANT_ASSIGN_OR_RETURN(const auto file, FileStream::Create(flags.path));
  ATTENDANT_ASSIGN_OR_RETURN(
      const std::int64_t item_count,
      ExportItems(flags, *client,
                  [&](const std::string& line) { return file->Append(line); }));
  ATTENDANT_RETURN_IF_ERROR(file->Commit());
  if (context.json) {
    nlohmann::ordered_json json;
    json["catalog"] = flags.catalog;
    json["path"] = flags.path;
    json["itemCount"] = item_count;
    Print(json.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) +
          "\n");
  } else {
    Print(WroteText(item_count, flags.path) + "\n");
  }
  return absl::OkStatus();
}

}  // namespace

void AddItemsExportCommand(CLI::App& items, Context& context) {
  auto flags = std::make_shared<ExportFlags>();
  CLI::App* command = items.add_subcommand(
      "export", "Write items to a file, for `items import --items`");
  command->add_option("CATALOG", flags->catalog, "The catalog")->required();
  command
      ->add_option(
          "FILE", flags->path,
          "The file to write, which must not exist; - is standard output")
      ->required();
  AddFilterFlag(*command, flags->filter, "Write only items that match");
  command->footer(
      "Examples:\n"
      "  attendant items export shop shop.jsonl\n"
      "  attendant items import shop2 --items shop.jsonl\n"
      "  attendant items export shop - | gzip > shop.jsonl.gz\n"
      "  attendant items export shop red.jsonl --filter 'color = \"red\"'\n\n"
      "One line per item, ordered by id:\n"
      "  {\"id\": \"...\", \"keys\": {\"FIELD\": [0.5, ...]}, \"value\": [1, "
      "...],\n"
      "   \"attributes\": {\"NAME\": ...}, \"opaque_value\": \"base64\"}\n"
      "An import restores every number to the bit. Writes during the export "
      "may "
      "be in the file\n"
      "or not. A snapshot (`attendant snapshot export`) holds one moment, with "
      "models and\n"
      "settings.");
  SetVerb(*command, context, flags, &Export);
}

}  // namespace attendant
