// What the commands read from files and flags: events, items, attributes,
// fitted models, attention models. The input is refused as InvalidArgument, or
// the result is valid. The first byte selects the kind; several files are
// packed.
#include <algorithm>
#include <cmath>
#include <filesystem>

#include "absl/strings/ascii.h"
#include "client/commands/fits/model_directory.h"
#include "client/commands/items/import_rows.h"
#include "client/commands/items/item_lines.h"
#include "client/commands/models/model_layout.h"
#include "client/commands/shared/event_file.h"
#include "client/commands/shared/event_time.h"
#include "client/commands/shared/flags.h"
#include "client/files/npy.h"
#include "core/base/ids.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/packed_files.h"
#include "tests/fuzz/scratch.h"

namespace attendant {
namespace {

void RequireBadInput(const absl::Status& status) {
  RequireRefusal(status, {absl::StatusCode::kInvalidArgument,
                          absl::StatusCode::kResourceExhausted});
}

void CheckEvents(absl::string_view bytes, bool in_order) {
  EventColumns columns;
  columns.rating = "rating";
  if (in_order) columns.time = "";
  const auto log = ReadEvents(WriteScratch("events.csv", bytes), columns);
  if (!log.ok()) return RequireBadInput(log.status());
  Accept();
  for (const Event& event : log->events) {
    Require(event.customer >= 0 &&
                static_cast<std::size_t>(event.customer) <
                    log->customer_ids.size() &&
                event.item >= 0 &&
                static_cast<std::size_t>(event.item) < log->item_ids.size() &&
                std::isfinite(event.rating),
            "events name what there is");
  }
  for (const std::string& id : log->item_ids) {
    Require(ValidateItemId(id, "id").ok(), "ids are valid");
  }
}

v1::CatalogSchema Schema() {
  v1::CatalogSchema schema;
  v1::KeyField* key = schema.add_key_fields();
  key->set_name("k");
  key->set_dimension(2);
  for (int type = v1::AttributeType_MIN + 1; type <= v1::AttributeType_MAX;
       ++type) {
    v1::AttributeField* attribute = schema.add_attributes();
    attribute->set_type(static_cast<v1::AttributeType>(type));
    attribute->set_name(FlagOf(attribute->type()));
  }
  return schema;
}

void CheckAttributes(absl::string_view bytes) {
  static const v1::CatalogSchema schema = Schema();
  static const std::vector<float> keys = {1, 2, 3, 4};
  ImportInputs inputs;
  inputs.ids = WriteScratch("ids.txt", "a\nb\n");
  inputs.keys = {"k=" + WriteScratch("keys.npy", NpyBytes(keys, 2))};
  inputs.attributes = WriteScratch("attributes.jsonl", bytes);
  const auto rows = ImportRows::Open(inputs, schema);
  if (!rows.ok()) return RequireBadInput(rows.status());
  Accept();
  for (std::int64_t row = 0; row < (*rows)->row_count(); ++row) {
    const auto item = (*rows)->ReadItem(row);
    if (!item.ok()) {
      RequireBadInput(item.status());
      continue;
    }
    Require(item->id() == (*rows)->id(row) && item->keys_size() == 1,
            "items have their id and key");
    // All strings must be UTF-8.
    v1::Item again;
    Require(again.ParseFromString(item->SerializeAsString()),
            "items can be sent");
  }
}

// Writes a packed file to the scratch directory and returns its path. If there
// is none, removes the file and returns "".
std::string PathOf(const FileMap& files, const std::string& name) {
  const auto found = files.find(name);
  if (found != files.end()) return WriteScratch(name, found->second);
  std::filesystem::remove(Scratch() / name);
  return "";
}

// A file missing from a fit's directory is NotFound, as the system reports it;
// a damaged encoder is DataLoss.
void RequireBadDirectory(const absl::Status& status) {
  RequireRefusal(
      status, {absl::StatusCode::kInvalidArgument, absl::StatusCode::kDataLoss,
               absl::StatusCode::kNotFound});
}

void CheckEncoder(const std::string& directory) {
  const auto model = ReadModel(directory);
  if (!model.ok()) return RequireBadDirectory(model.status());
  const auto encoder = ReadTextEncoder(directory, *model);
  if (!encoder.ok()) return RequireBadDirectory(encoder.status());
  Accept();
  Require(encoder->terms_size() > 0 &&
              encoder->idf_size() == encoder->terms_size() &&
              encoder->projection_float32_le().size() ==
                  sizeof(float) *
                      static_cast<std::size_t>(encoder->terms_size()) *
                      static_cast<std::size_t>(model->key_field.dimension()),
          "an encoder has its model's dimension");
}

// Everything that an import may name: a fit's directory, and files outside it.
void CheckImport(absl::string_view bytes) {
  static const bool made =
      std::filesystem::create_directories(Scratch() / "fitted");
  Require(made, "a directory");
  const auto files = Unpack(bytes);
  if (!files.has_value()) return;
  const std::string directory = Scratch() / "fitted";
  ImportInputs inputs;
  for (const char* name :
       {kModelFile, kIdsFile, kKeysFile, kEncoderFile, kAttributesFile}) {
    if (PathOf(*files, absl::StrCat("fitted/", name)).empty()) continue;
    inputs.directories = {directory};
  }
  if (files->contains("twice")) inputs.directories.push_back(directory);
  if (!inputs.directories.empty()) CheckEncoder(directory);
  inputs.ids = PathOf(*files, "rows");
  for (const char* name : {"rows.npy", "rows.fvecs", "rows.txt"}) {
    const std::string path = PathOf(*files, name);
    const auto field = files->find("field");
    if (path.empty()) continue;
    inputs.keys.push_back(
        absl::StrCat(field == files->end() ? "k" : field->second, "=", path));
  }
  inputs.values = PathOf(*files, "values.npy");
  inputs.attributes = PathOf(*files, "attributes");
  inputs.partial = files->contains("partial");
  for (const std::int32_t value_dim : {0, 1}) {
    v1::CatalogSchema schema = Schema();
    schema.set_value_dimension(value_dim);
    const auto rows = ImportRows::Open(inputs, schema);
    if (!rows.ok()) {
      RequireBadDirectory(rows.status());
      continue;
    }
    std::int64_t count = 0;
    while (true) {
      const auto row = (*rows)->Next();
      Require(row.ok(), "an item that is bad is not the last");
      if (!row->has_value()) break;
      Require((*row)->number == ++count, "rows count up");
      if (!(*row)->item.ok()) {
        RequireBadInput((*row)->item.status());
        continue;
      }
      Accept();
      Require(ValidateItemId((*row)->id, "id").ok() &&
                  (*row)->item->id() == (*row)->id &&
                  (inputs.partial || (*row)->item->keys_size() == 1),
              "an item has an id and a key");
    }
    Require(count == (*rows)->row_count(), "as many as there are");
  }
}

void CheckItemLines(absl::string_view bytes) {
  static const v1::CatalogSchema schema = Schema();
  const auto lines =
      ItemLines::Open(WriteScratch("items.jsonl", bytes), schema);
  if (!lines.ok()) return RequireBadInput(lines.status());
  while (true) {
    const auto row = (*lines)->Next();
    if (!row.ok()) return RequireBadInput(row.status());
    if (!row->has_value()) return;
    const auto& item = (*row)->item;
    if (!item.ok()) {
      RequireBadInput(item.status());
      continue;
    }
    Accept();
    Require((*row)->id == item->id(), "a row has its item's id");
    const auto line = ItemToLine(*item);
    Require(line.ok(), "what is read can be written");
    const auto again =
        ItemLines::Open(WriteScratch("again.jsonl", *line), schema);
    const auto same = (*again)->Next();
    Require(same.ok() && same->has_value() && (*same)->item.ok() &&
                *ItemToLine(*(*same)->item) == *line,
            "what is written is read");
  }
}

void CheckFittedModel(absl::string_view bytes) {
  WriteScratch(kModelFile, bytes);
  const auto model = ReadModel(Scratch().path());
  if (!model.ok()) return RequireBadInput(model.status());
  Accept();
  WriteScratch(kModelFile, ModelJson(*model));
  const auto again = ReadModel(Scratch().path());
  Require(again.ok() && ModelJson(*again) == ModelJson(*model),
          "what is written is read");
}

void CheckLayout(absl::string_view bytes) {
  const auto tensors =
      TensorFiles::Open({WriteScratch("model.safetensors", bytes)});
  if (!tensors.ok()) return RequireBadInput(tensors.status());
  for (const std::int64_t head_count : {0, 2}) {
    LayoutOptions options;
    if (head_count > 0) options.head_count = head_count;
    const auto model = ModelFromTensors(*tensors, options);
    if (model.ok()) {
      Accept();
    } else {
      RequireBadInput(model.status());
    }
  }
}

bool IsTensorFile(const std::string& name) {
  return !name.empty() && name.size() < 32 && name[0] != '.' &&
         std::ranges::all_of(name, [](char c) {
           return absl::ascii_isalnum(static_cast<unsigned char>(c)) ||
                  c == '_' || c == '.';
         });
}

void CheckModel(const std::vector<std::string>& paths,
                const LayoutOptions& options, const ModelConfig& config) {
  const auto tensors = TensorFiles::Open(paths);
  if (!tensors.ok()) return RequireBadInput(tensors.status());
  const auto imported = ModelFromTensors(*tensors, options);
  if (!imported.ok()) return RequireBadInput(imported.status());
  Accept();
  const absl::Status fits = CheckConfig(config, imported->model);
  if (!fits.ok()) RequireBadInput(fits);
}

// Packed files of tensors, by their names; a config and a prefix, if there are
// such.
void CheckTensors(absl::string_view bytes) {
  const auto files = Unpack(bytes);
  if (!files.has_value()) return;
  const std::string directory = Scratch() / "tensors";
  std::filesystem::remove_all(directory);
  std::filesystem::create_directories(directory);
  LayoutOptions options;
  ModelConfig config;
  std::vector<std::string> paths;
  for (const auto& [name, content] : *files) {
    if (name == "config") {
      const auto parsed = ParseModelConfig(content);
      if (!parsed.ok()) return RequireBadInput(parsed.status());
      config = *parsed;
    } else if (name == "prefix") {
      options.prefix = content;
    } else if (IsTensorFile(name)) {
      paths.push_back(WriteScratch("tensors/" + name, content));
    }
  }
  options.head_count = config.head_count;
  CheckModel(paths, options, config);
  CheckModel({directory}, options, config);
}

template <typename Parsed>
void CheckParsed(const absl::StatusOr<Parsed>& parsed) {
  if (parsed.ok()) {
    Accept();
  } else {
    RequireBadInput(parsed.status());
  }
}

void CheckFlags(const std::string& flag) {
  CheckParsed(ParseKeyField(flag));
  CheckParsed(ParseAttributeField(flag));
  CheckParsed(ParseAssignment(flag));
  CheckParsed(ParseExample(flag));
  CheckParsed(ParseVector(flag));
  CheckParsed(ParseInteger(flag));
  CheckParsed(ParseWeightedName(flag));
  const auto positive = ParsePositive(flag);
  CheckParsed(positive);
  Require(!positive.ok() || (std::isfinite(*positive) && *positive > 0),
          "a finite number above 0");
  if (const auto time = ParseEventTime(flag)) ToTimestamp(*time);
}

}  // namespace

void CheckInput(absl::string_view input) {
  if (input.empty()) return;
  const absl::string_view bytes = input.substr(1);
  switch (input[0]) {
    case 'e':
      return CheckEvents(bytes, false);
    case 'o':
      return CheckEvents(bytes, true);
    case 'a':
      return CheckAttributes(bytes);
    case 'i':
      return CheckItemLines(bytes);
    case 'm':
      return CheckFittedModel(bytes);
    case 'd':
      return CheckImport(bytes);
    case 's':
      return CheckLayout(bytes);
    case 't':
      return CheckTensors(bytes);
    case 'c':
      return CheckParsed(ParseModelConfig(std::string(bytes)));
    case 'p':
      return CheckParsed(ParseProbe(std::string(bytes)));
    case 'f':
      return CheckFlags(std::string(bytes));
    default:
      return;
  }
}

}  // namespace attendant
