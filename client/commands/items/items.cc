// attendant items get|list
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/api/wire_vector.h"
#include "client/commands/items/commands.h"
#include "client/commands/shared/convert.h"
#include "client/commands/shared/flags.h"
#include "core/base/status.h"

namespace attendant {
namespace {

// More components of a vector are left out.
constexpr std::size_t kMaxShown = 4;

std::string DescribeVector(const v1::Vector& vector) {
  const auto components = FromVector(vector);
  if (!components.ok()) return std::string(components.status().message());
  const VectorText text = DescribeComponents(*components, kMaxShown);
  return absl::StrCat(text.first, "  ", text.size);
}

std::string DescribeItem(const v1::Item& item, const Style& style) {
  std::vector<std::pair<std::string, std::string>> parts;
  const std::map<std::string, v1::AttributeValue> attributes(
      item.attributes().begin(), item.attributes().end());
  for (const auto& [name, value] : attributes) {
    parts.emplace_back(Printable(name), AttributeText(value));
  }
  const std::map<std::string, v1::Vector> keys(item.keys().begin(),
                                               item.keys().end());
  for (const auto& [field, key] : keys) {
    parts.emplace_back(Printable(absl::StrCat("key ", field)),
                       DescribeVector(key));
  }
  if (item.has_value()) {
    parts.emplace_back("value", DescribeVector(item.value()));
  }
  if (!item.opaque_value().empty()) {
    parts.emplace_back(
        "opaque value",
        CountOf(static_cast<std::int64_t>(item.opaque_value().size()), "byte"));
  }
  parts.emplace_back("sequence", absl::StrCat(item.sequence()));
  int width = 0;
  for (const auto& [name, what] : parts) {
    width = std::max(width, DisplayWidth(name));
  }
  std::string text = style.Bold(Printable(item.id())) + "\n";
  for (const auto& [name, what] : parts) {
    const std::string padding(
        static_cast<std::size_t>(width - DisplayWidth(name)), ' ');
    absl::StrAppend(&text, "  ", style.Dim(name), padding, "  ",
                    Printable(what), "\n");
  }
  return text;
}

struct GetFlags {
  std::string catalog;
  std::vector<std::string> ids;
  std::string token;
};

absl::Status Get(const GetFlags& flags, const Context& context) {
  ATTENDANT_ASSIGN_OR_RETURN(const auto client, context.Connect());
  v1::BatchGetItemsRequest request;
  request.set_catalog(flags.catalog);
  request.set_state_token(flags.token);
  for (const std::string& id : flags.ids) request.add_ids(id);
  ATTENDANT_ASSIGN_OR_RETURN(auto response, client->BatchGetItems(request));
  if (context.json) {
    for (v1::Item& item : *response.mutable_items()) SpellOutVectors(item);
    Print(ToJson(response));
    return absl::OkStatus();
  }
  for (const v1::Item& item : response.items()) {
    Print(DescribeItem(item, context.style));
  }
  return absl::OkStatus();
}

struct ListFlags {
  std::string catalog;
  std::int32_t page_size = 100;
  std::string page_token;
  std::string token;
  std::string filter;
  bool all = false;
};

// Prints each page at once, so that a large catalog takes no memory here. JSON
// is printed as one document at the end.
class ItemPrinter {
 public:
  ItemPrinter(const Context& context, bool is_filtered)
      : context_(context), is_filtered_(is_filtered) {}

  void PrintPage(v1::ListItemsResponse& page) {
    if (context_.json) {
      for (v1::Item& item : *page.mutable_items()) SpellOutVectors(item);
      all_.mutable_items()->MergeFrom(page.items());
      all_.set_next_page_token(page.next_page_token());
      all_.set_state_token(page.state_token());
      all_.set_total_count(page.total_count());
      return;
    }
    for (const v1::Item& item : page.items()) {
      Print(DescribeItem(item, context_.style));
    }
    item_count_ += page.items_size();
    total_count_ = page.total_count();
  }

  void Finish(const std::string& next_page_token) {
    if (context_.json) {
      Print(ToJsonWithout(all_, {"keys", "opaqueValue"}));
    } else if (!next_page_token.empty()) {
      Note(absl::StrCat(CountOf(total_count_, "item"),
                        is_filtered_ ? " match" : "",
                        "; for the next page add --page-token ",
                        next_page_token, ", for all --all."));
    } else if (item_count_ == 0 && total_count_ == 0) {
      Print(is_filtered_ ? "No item matches.\n"
                         : "There are no items. `attendant items import "
                           "--help` says how to store some.\n");
    }
  }

 private:
  const Context& context_;
  const bool is_filtered_;
  v1::ListItemsResponse all_;
  std::int64_t item_count_ = 0;  // printed as text
  std::int64_t total_count_ = 0;
};

absl::Status ListItems(const ListFlags& flags, const Context& context) {
  ATTENDANT_ASSIGN_OR_RETURN(const auto client, context.Connect());
  v1::ListItemsRequest request;
  request.set_catalog(flags.catalog);
  request.set_page_size(flags.page_size);
  request.set_page_token(flags.page_token);
  request.set_state_token(flags.token);
  request.set_filter(flags.filter);
  // Leaves out vectors, which `items get` shows: they would hide the rest.
  request.mutable_read_mask()->add_paths("attributes");
  ItemPrinter printer(context, !flags.filter.empty());
  do {
    ATTENDANT_ASSIGN_OR_RETURN(auto page, client->ListItems(request));
    printer.PrintPage(page);
    request.set_page_token(page.next_page_token());
  } while (flags.all && !request.page_token().empty());
  printer.Finish(request.page_token());
  return absl::OkStatus();
}

void AddGet(CLI::App& items, Context& context) {
  auto flags = std::make_shared<GetFlags>();
  CLI::App* get = items.add_subcommand(
      "get",
      "Show items with their keys, attributes and the sequence of their last "
      "write");
  get->add_option("CATALOG", flags->catalog, "The catalog")->required();
  AddItemIds(*get, flags->ids)->required();
  AddTokenFlag(*get, flags->token);
  get->footer("Example:\n  attendant items get shop 85123A 71053");
  SetVerb(*get, context, flags, &Get);
}

void AddListItems(CLI::App& items, Context& context) {
  auto flags = std::make_shared<ListFlags>();
  CLI::App* list = items.add_subcommand(
      "list", "List items and their attributes, ordered by id");
  list->add_option("CATALOG", flags->catalog, "The catalog")->required();
  list->add_option("--page-size", flags->page_size, "Items per page")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  list->add_option("--page-token", flags->page_token,
                   "Where to continue, as the previous page printed")
      ->type_name("TOKEN");
  list->add_flag("--all", flags->all, "List all pages");
  AddFilterFlag(*list, flags->filter, "List only items that match this filter");
  AddTokenFlag(*list, flags->token);
  list->footer(
      "Examples:\n"
      "  attendant items list shop --page-size 20\n"
      "  attendant items list shop --filter 'price < 5 AND EXISTS color'\n"
      "  attendant items list shop --all --json | jq '.items[].id'");
  SetVerb(*list, context, flags, &ListItems);
}

}  // namespace

void AddItemsCommands(CLI::App& app, Context& context) {
  CLI::App* items = app.add_subcommand(
      "items", "Store, read, change, delete and export items");
  items->require_subcommand(1);
  items->footer(
      "Examples:\n"
      "  attendant items import photos --ids ids.txt --keys image=clip.npy\n"
      "  attendant items list photos");
  AddImportCommand(*items, context);
  AddGet(*items, context);
  AddListItems(*items, context);
  AddItemsUpdateCommand(*items, context);
  AddItemsDeleteCommand(*items, context);
  AddItemsExportCommand(*items, context);
}

}  // namespace attendant
