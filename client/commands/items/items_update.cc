// attendant items update
#include <cstdint>
#include <cstdio>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "client/api/batches.h"
#include "client/api/error_json.h"
#include "client/api/importer.h"
#include "client/api/wire_vector.h"
#include "client/commands/items/commands.h"
#include "client/commands/items/import_rows.h"
#include "client/commands/shared/convert.h"
#include "client/commands/shared/flags.h"
#include "client/format/progress.h"
#include "core/base/status.h"

namespace attendant {
namespace {

struct UpdateItemsFlags {
  std::string catalog;
  std::vector<std::string> ids;
  std::vector<std::string> set;
  std::vector<std::string> unset;
  std::vector<std::string> keys;
  std::string value;
  ImportInputs inputs;
  std::optional<std::int64_t> if_sequence;
  std::string request_id;

  bool empty() const {
    return set.empty() && unset.empty() && keys.empty() && value.empty();
  }
};

// Returns a text as the type that the schema declares for the attribute.
// InvalidArgument if it declares none, UsageError if the text is of another
// type.
absl::StatusOr<v1::AttributeValue> ParseAttribute(
    const v1::CatalogSchema& schema, const std::string& name,
    const std::string& text) {
  const v1::AttributeField* const attribute = FindAttribute(schema, name);
  if (attribute == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat("--set: the catalog has no attribute '", name, "'"));
  }
  absl::StatusOr<v1::AttributeValue> parsed =
      ToAttribute(ValueOfText(text, attribute->type()), attribute->type());
  if (parsed.ok()) return parsed;
  return UsageError(absl::StrCat(
      "--set ", name, ": ", parsed.status().message(),
      "; the catalog declares ", name, " as ", FlagOf(attribute->type())));
}

// Splits NAME=VALUE. The value may be empty, which is a text.
absl::StatusOr<std::pair<std::string, std::string>> ParseSetting(
    const std::string& flag) {
  const std::size_t split = flag.find('=');
  if (split == std::string::npos || split == 0) {
    return Malformed(flag, "NAME=VALUE");
  }
  return std::make_pair(flag.substr(0, split), flag.substr(split + 1));
}

// What was updated.
struct Updated {
  std::int64_t item_count = 0;
  std::string state_token;  // empty if nothing was written
  // Rows of files that were left out; nothing if no file was read.
  std::optional<std::int64_t> empty_row_count = {};
};

// Leaves the token out if nothing was written: no read accepts an empty one.
std::string UpdateJson(const Updated& updated) {
  nlohmann::ordered_json json = {{"updatedCount", updated.item_count}};
  if (!updated.state_token.empty()) json["stateToken"] = updated.state_token;
  if (updated.empty_row_count) json["emptyRowCount"] = *updated.empty_row_count;
  return json.dump(1) + "\n";
}

void Report(const Updated& updated, const Context& context) {
  if (context.json) {
    Print(UpdateJson(updated));
    return;
  }
  Print(absl::StrCat("Updated ", CountOf(updated.item_count, "item"), ".\n"));
  if (const std::int64_t count = updated.empty_row_count.value_or(0);
      count > 0) {
    Print(absl::StrCat("Left out ", CountOf(count, "row"),
                       count == 1 ? " that changes" : " that change",
                       " nothing.\n"));
  }
  NoteToken(updated.state_token);
}

// Returns the request's item for each of the ids, without its id, and puts what
// it changes into `mask`.
absl::StatusOr<v1::Item> ReadChange(const UpdateItemsFlags& flags,
                                    const v1::CatalogSchema& schema,
                                    google::protobuf::FieldMask& mask) {
  v1::Item item;
  std::set<std::string> changed;
  const auto once = [&changed](absl::string_view what,
                               const std::string& name) {
    const std::string part = absl::StrCat(what, " '", name, "'");
    return changed.insert(part).second
               ? absl::OkStatus()
               : UsageError(absl::StrCat(part, ": got two changes, want one"));
  };
  for (const std::string& flag : flags.set) {
    ATTENDANT_ASSIGN_OR_RETURN(const auto assignment, ParseSetting(flag));
    ATTENDANT_RETURN_IF_ERROR(once("attribute", assignment.first));
    ATTENDANT_ASSIGN_OR_RETURN(
        (*item.mutable_attributes())[assignment.first],
        ParseAttribute(schema, assignment.first, assignment.second));
    mask.add_paths(absl::StrCat("attributes.", assignment.first));
  }
  for (const std::string& name : flags.unset) {
    ATTENDANT_RETURN_IF_ERROR(once("attribute", name));
    mask.add_paths(absl::StrCat("attributes.", name));
  }
  for (const std::string& flag : flags.keys) {
    ATTENDANT_ASSIGN_OR_RETURN(const auto assignment, ParseAssignment(flag));
    ATTENDANT_RETURN_IF_ERROR(once("key", assignment.first));
    ATTENDANT_ASSIGN_OR_RETURN(const auto key, ParseVector(assignment.second));
    (*item.mutable_keys())[assignment.first] = ToVector(key);
    mask.add_paths(absl::StrCat("keys.", assignment.first));
  }
  if (!flags.value.empty()) {
    ATTENDANT_ASSIGN_OR_RETURN(const auto value, ParseVector(flags.value));
    *item.mutable_value() = ToVector(value);
    mask.add_paths("value");
  }
  return item;
}

// Returns the position of the item that an error is about, if it is about one.
std::optional<std::size_t> ItemIndexOf(const absl::Status& status) {
  const std::string field = FieldOf(status).value_or("");
  absl::string_view digits = field;
  std::size_t index = 0;
  if (!absl::ConsumePrefix(&digits, "items[") ||
      !absl::SimpleAtoi(digits.substr(0, digits.find(']')), &index)) {
    return std::nullopt;
  }
  return index;
}

// Returns the error of a request for the items `ids`, with the item's id in
// place of its position.
absl::Status NameUpdated(const absl::Status& status, const std::string& catalog,
                         const std::vector<std::string>& ids) {
  const std::optional<std::size_t> index = ItemIndexOf(status);
  if (ReasonOf(status) != "ITEM_NOT_FOUND" || !index || *index >= ids.size()) {
    return NameItem(status, ids);
  }
  return WithMessage(status,
                     absl::StrCat("no item '", ids[*index], "' in ", catalog,
                                  "; `attendant items import` adds items"));
}

// True if the item is nothing but its id, as with a CSV row of empty fields.
bool ChangesNothing(const v1::Item& item) {
  return item.attributes().empty() && item.keys().empty() &&
         !item.has_value() && item.opaque_value().empty();
}

// Changes the parts of items that the files give. Leaves out rows that change
// nothing: the server would refuse the whole batch.
absl::Status UpdateFromFiles(const UpdateItemsFlags& flags,
                             const Context& context) {
  ATTENDANT_ASSIGN_OR_RETURN(const auto client, context.Connect());
  v1::GetCatalogRequest get;
  get.set_name(flags.catalog);
  ATTENDANT_ASSIGN_OR_RETURN(const auto found, client->GetCatalog(get));
  ImportInputs inputs = flags.inputs;
  inputs.partial = true;
  ATTENDANT_ASSIGN_OR_RETURN(
      const auto rows, ImportRows::Open(inputs, found.catalog().schema()));
  Progress progress(stderr, "Updating", rows->row_count());
  Updated updated;
  std::int64_t empty_row_count = 0;
  // The rows of the batch, from 1, and their ids.
  std::vector<std::int64_t> numbers;
  std::vector<std::string> ids;
  const absl::Status status = SendInBatches(
      rows->row_count(),
      [&](std::int64_t begin, std::int64_t& end) -> absl::Status {
        numbers.clear();
        ids.clear();
        v1::BatchUpdateItemsRequest request;
        request.set_catalog(flags.catalog);
        std::int64_t bytes = 0;
        for (std::int64_t row = begin; row < end; ++row) {
          ATTENDANT_ASSIGN_OR_RETURN(v1::Item item, rows->ReadItem(row));
          if (ChangesNothing(item)) continue;
          bytes += static_cast<std::int64_t>(item.ByteSizeLong());
          if (row > begin && bytes > ImportOptions().batch_bytes) {
            end = row;
            break;
          }
          numbers.push_back(row + 1);
          ids.push_back(item.id());
          *request.add_items() = std::move(item);
        }
        if (!ids.empty()) {
          ATTENDANT_ASSIGN_OR_RETURN(const auto response,
                                     client->BatchUpdateItems(request));
          updated.item_count += response.updated_count();
          updated.state_token = response.state_token();
        }
        // Counted last, since a batch may be sent again in parts.
        empty_row_count += end - begin - static_cast<std::int64_t>(ids.size());
        progress.Update(end);
        return absl::OkStatus();
      });
  if (!status.ok()) {
    const std::optional<std::size_t> index = ItemIndexOf(status);
    const bool of_row = index && *index < numbers.size();
    return PrefixField(
        NameUpdated(status, flags.catalog, ids),
        absl::StrCat(
            "updated ", CountOf(updated.item_count, "item"), ", then: ",
            of_row ? absl::StrCat("row ", numbers[*index], ": ") : ""));
  }
  progress.Clear();
  updated.empty_row_count = empty_row_count;
  Report(updated, context);
  return absl::OkStatus();
}

absl::Status UpdateItems(const UpdateItemsFlags& flags,
                         const Context& context) {
  ATTENDANT_ASSIGN_OR_RETURN(const auto client, context.Connect());
  v1::GetCatalogRequest get;
  get.set_name(flags.catalog);
  ATTENDANT_ASSIGN_OR_RETURN(const auto found, client->GetCatalog(get));
  v1::BatchUpdateItemsRequest request;
  request.set_catalog(flags.catalog);
  request.set_request_id(flags.request_id);
  ATTENDANT_ASSIGN_OR_RETURN(v1::Item change,
                             ReadChange(flags, found.catalog().schema(),
                                        *request.mutable_update_mask()));
  for (const std::string& id : flags.ids) {
    change.set_id(id);
    *request.add_items() = change;
  }
  if (flags.if_sequence) {
    request.add_conditions()->set_sequence(*flags.if_sequence);
  }
  const auto response = client->BatchUpdateItems(request);
  if (!response.ok()) {
    return NameUpdated(response.status(), flags.catalog, flags.ids);
  }
  Report({.item_count = response->updated_count(),
          .state_token = response->state_token()},
         context);
  return absl::OkStatus();
}

}  // namespace

void AddItemsUpdateCommand(CLI::App& items, Context& context) {
  auto flags = std::make_shared<UpdateItemsFlags>();
  CLI::App* command = items.add_subcommand(
      "update", "Change parts of items; the rest stays as it is");
  command->add_option("CATALOG", flags->catalog, "The catalog")->required();
  CLI::Option* ids = AddItemIds(*command, flags->ids);
  AddRepeated(*command, "--set", flags->set,
              "An attribute as NAME=VALUE: texts, times, numbers, true and "
              "false as they are, a list as [\"a\", \"b\"]")
      ->type_name("NAME=VALUE")
      ->check(Accepts(&ParseSetting))
      ->needs(ids);
  AddRepeated(*command, "--unset", flags->unset, "An attribute to remove")
      ->type_name("NAME")
      ->needs(ids);
  AddRepeated(*command, "--key", flags->keys, "A key, as FIELD=0.1,0.2,...")
      ->type_name("FIELD=VECTOR")
      ->check(Accepts(&ParseAssignment))
      ->needs(ids);
  command->add_option("--value", flags->value, "The value, as 0.1,0.2,...")
      ->type_name("VECTOR")
      ->needs(ids);
  command
      ->add_option("--if-sequence", flags->if_sequence,
                   "Update only if the item's last write has this number, "
                   "which `items get` shows; needs exactly one ID")
      ->needs(ids);
  command
      ->add_option("--request-id", flags->request_id,
                   "Makes the update safe to repeat: the same id again returns "
                   "the first outcome")
      ->type_name("ID")
      ->needs(ids);
  const InputOptions inputs = AddInputFlags(*command, flags->inputs);
  for (CLI::Option* files : {inputs.from, inputs.ids, inputs.attributes}) {
    files->excludes(ids);
  }
  command->footer(
      "Examples:\n"
      "  attendant items update shop 85123A --set price=2.5 --set name=Heart\n"
      "  attendant items update shop 85123A 71053 --unset retired\n"
      "  attendant items update shop 85123A --set price=3 --if-sequence 12\n"
      "  attendant items update shop --attributes prices.jsonl\n"
      "  attendant items update shop --ids ids.txt --keys image=clip.npy\n"
      "  attendant items update shop --from fit/events\n\n"
      "Files change only the parts that they give: with --keys alone, "
      "attributes and values stay.\n"
      "Rows that give nothing but an id are left out, and counted at the "
      "end.\n"
      "An update of IDs changes all of them or none; files are sent in batches "
      "of up to 256 items,\n"
      "each all or nothing. An item that does not exist is an error (`items "
      "import --if-absent`\n"
      "stores only the new ones). Keys of two fits can't be compared: until "
      "all keys are changed,\n"
      "answers mix both. To avoid that, store the new keys in a second catalog "
      "and move an alias\n"
      "to it.");
  command->final_callback([flags, ids, inputs, &context] {
    if (!inputs.ids->empty() && inputs.keys->empty() &&
        flags->inputs.values.empty()) {
      throw CLI::RequiredError("--keys or --values, with --ids,");
    }
    if (!inputs.from->empty() || !inputs.ids->empty() ||
        !inputs.attributes->empty()) {
      context.Run([&](const Context& c) { return UpdateFromFiles(*flags, c); });
      return;
    }
    if (ids->empty()) {
      throw CLI::RequiredError(
          "ID..., or --from, --ids with --keys, or --attributes,");
    }
    if (flags->empty()) {
      throw CLI::RequiredError("--set, --unset, --key or --value");
    }
    if (flags->if_sequence && flags->ids.size() != 1) {
      throw CLI::ValidationError("--if-sequence", "goes with one ID");
    }
    context.Run([&](const Context& c) { return UpdateItems(*flags, c); });
  });
}

}  // namespace attendant
