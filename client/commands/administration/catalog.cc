// attendant catalog create|list|describe|update|delete
#include <algorithm>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/api/error_json.h"
#include "client/api/pages.h"
#include "client/commands/administration/commands.h"
#include "client/commands/fits/model_directory.h"
#include "client/commands/shared/convert.h"
#include "client/commands/shared/flags.h"
#include "client/files/input.h"
#include "core/base/status.h"

namespace attendant {
namespace {

struct CreateFlags {
  std::string name;
  std::vector<std::string> from;
  std::vector<std::string> key_fields;
  std::vector<std::string> attributes;
  std::vector<std::string> temperatures;
  std::vector<std::string> combines;
  std::vector<std::string> indexes;
  std::vector<std::string> models;
  std::vector<std::string> keys_on_disk;
  std::int32_t value_dim = 0;
};

// What a query looks at.
std::string DescribeProbes(const v1::IndexStatus& index) {
  const std::string count = FormatCount(index.probe_count());
  switch (index.active_kind()) {
    case v1::INDEX_KIND_IVF:
      return absl::StrCat(FormatCount(index.list_count()), " lists, ", count,
                          " visited");
    case v1::INDEX_KIND_LSH:
      return absl::StrCat(count, " buckets");
    default:
      return absl::StrCat(count, " candidates");
  }
}

// The kind that was asked for and, where it is another, that which answers:
// "auto (flat)".
std::string DescribeKind(const v1::KeyField& field,
                         const v1::IndexStatus* index) {
  std::string text = FlagOf(field.index_kind());
  if (index != nullptr && index->active_kind() != field.index_kind()) {
    absl::StrAppend(&text, " (", FlagOf(index->active_kind()), ")");
  }
  return text;
}

// "Index of events: ivf (1,265 lists, 24 visited, recall@100 0.981), making
// another"; nothing of one that its kind tells all about.
std::string DescribeIndex(const v1::IndexStatus& index) {
  std::string text;
  if (index.probe_count() > 0) {
    absl::StrAppend(&text, " (", DescribeProbes(index));
    if (index.has_measured_recall()) {
      absl::StrAppend(&text, ", recall@100 ",
                      FormatNumber(index.measured_recall()));
    }
    absl::StrAppend(&text, ")");
  }
  if (index.has_active_model()) {
    absl::StrAppend(&text, ", model ", Printable(index.active_model().name()),
                    ":", index.active_model().version());
  }
  if (index.training()) absl::StrAppend(&text, ", making another");
  if (text.empty()) return "";
  return absl::StrCat("Index of ", Printable(index.key_field()), ": ",
                      FlagOf(index.active_kind()), text, "\n");
}

const v1::IndexStatus* FindIndex(const v1::KeyField& field,
                                 const v1::Catalog& catalog) {
  for (const v1::IndexStatus& index : catalog.indexes()) {
    if (index.key_field() == field.name()) return &index;
  }
  return nullptr;
}

// What takes memory, the most first; nothing where all is empty.
std::string DescribeMemory(const v1::MemoryUse& memory, const Style& style) {
  std::vector<std::pair<std::int64_t, std::string>> parts = {
      {memory.key_bytes(), "keys"},
      {memory.code_bytes(), "codes"},
      {memory.index_bytes(), "index"},
      {memory.attribute_bytes(), "attributes"},
      {memory.value_bytes(), "values"},
      {memory.id_bytes(), "ids"},
      {memory.tombstone_bytes(), "tombstones"},
      {memory.encoder_bytes(), "text encoders"},
      {memory.database_bytes(), "database"}};
  std::erase_if(parts, [](const auto& part) { return part.first == 0; });
  if (parts.empty()) return "";
  std::stable_sort(
      parts.begin(), parts.end(),
      [](const auto& a, const auto& b) { return a.first > b.first; });
  std::int64_t sum = 0;
  for (const auto& [bytes, name] : parts) sum += bytes;
  using Align = Table::Align;
  Table table({{.title = "memory"},
               {.title = "size", .align = Align::kRight},
               {.title = "share", .align = Align::kRight}});
  for (const auto& [bytes, name] : parts) {
    table.AddRow(
        {name, FormatBytes(bytes),
         FormatShare(static_cast<double>(bytes) / static_cast<double>(sum))});
  }
  return absl::StrCat("\n", table.Format(style));
}

std::string DescribeServer(const v1::ServerMemory& memory) {
  return absl::StrCat(
      "The server uses ", FormatBytes(memory.used_bytes()),
      memory.limit_bytes() > 0
          ? absl::StrCat(" of ", FormatBytes(memory.limit_bytes()))
          : "",
      " of memory, with ", FormatBytes(memory.cache_bytes()),
      " of blocks read and ", FormatBytes(memory.write_buffer_bytes()),
      " of write buffers.\n");
}

std::string DescribeCatalog(const v1::Catalog& catalog, const Style& style) {
  std::int64_t disk_bytes = 0;
  for (const v1::IndexStatus& index : catalog.indexes()) {
    disk_bytes += index.disk_bytes();
  }
  std::string text = absl::StrCat(
      style.Bold(Printable(catalog.name())), "  ",
      CountOf(catalog.item_count(), "item"), ", ",
      FormatBytes(catalog.memory_bytes()), " in memory",
      disk_bytes > 0
          ? absl::StrCat(", ", FormatBytes(disk_bytes), " of keys on disk")
          : "",
      "\n",
      style.Dim(absl::StrCat("created ", FormatTimestamp(catalog.create_time()),
                             ", sequence ", FormatCount(catalog.sequence()),
                             ", uid ", Printable(catalog.uid()))),
      "\n\n");
  using Align = Table::Align;
  Table fields({{.title = "key field"},
                {.title = "dim", .align = Align::kRight},
                {.title = "keys", .align = Align::kRight},
                {.title = "score"},
                {.title = "temperature", .align = Align::kRight},
                {.title = "combine"},
                {.title = "index"},
                {.title = "text"}});
  for (const v1::KeyField& field : catalog.schema().key_fields()) {
    const v1::IndexStatus* index = FindIndex(field, catalog);
    const int terms = index == nullptr ? 0 : index->text_encoder_term_count();
    fields.AddRow({field.name(), FormatCount(field.dimension()),
                   index == nullptr ? "" : FormatCount(index->key_count()),
                   FlagOf(field.score_kind()),
                   FormatNumber(field.temperature()),
                   FlagOf(field.combine_kind()), DescribeKind(field, index),
                   terms == 0 ? "-" : CountOf(terms, "term")});
  }
  absl::StrAppend(&text, fields.Format(style));
  for (const v1::IndexStatus& index : catalog.indexes()) {
    absl::StrAppend(&text, DescribeIndex(index));
  }
  if (!catalog.schema().attributes().empty()) {
    Table attributes({{.title = "attribute"}, {.title = "type"}});
    for (const v1::AttributeField& field : catalog.schema().attributes()) {
      attributes.AddRow({field.name(), FlagOf(field.type())});
    }
    absl::StrAppend(&text, "\n", attributes.Format(style));
  }
  absl::StrAppend(&text, DescribeMemory(catalog.memory(), style));
  absl::StrAppend(
      &text, "\n",
      catalog.schema().value_dimension() > 0
          ? absl::StrCat("Values of ", catalog.schema().value_dimension(),
                         " components are pooled.\n")
          : "Keys are pooled as values.\n");
  for (const std::string& warning : catalog.warnings()) {
    absl::StrAppend(&text, "Warning: ", Printable(warning), "\n");
  }
  return text;
}

v1::KeyField* FindField(v1::CatalogSchema& schema, const std::string& name) {
  for (v1::KeyField& field : *schema.mutable_key_fields()) {
    if (field.name() == name) return &field;
  }
  return nullptr;
}

// Adds an attribute that may be declared already, with the same type.
absl::Status AddAttribute(const v1::AttributeField& attribute,
                          v1::CatalogSchema& schema) {
  for (const v1::AttributeField& declared : schema.attributes()) {
    if (declared.name() != attribute.name()) continue;
    if (declared.type() == attribute.type()) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat(
        "attribute ", attribute.name(), " is declared as ",
        FlagOf(declared.type()), " and as ", FlagOf(attribute.type())));
  }
  *schema.add_attributes() = attribute;
  return absl::OkStatus();
}

// Applies flags "FIELD=REST" to key fields. `set` returns false for a REST that
// is not as `want` says.
absl::Status SetFields(
    const std::vector<std::string>& flags, absl::string_view flag_name,
    absl::string_view want, v1::CatalogSchema& schema,
    const std::function<bool(v1::KeyField&, const std::string&)>& set) {
  for (const std::string& flag : flags) {
    ATTENDANT_ASSIGN_OR_RETURN(const auto assignment, ParseAssignment(flag));
    v1::KeyField* field = FindField(schema, assignment.first);
    if (field == nullptr) {
      return UsageError(absl::StrCat(flag_name, " ", flag, ": ",
                                     NoSuchField(schema, assignment.first)));
    }
    if (!set(*field, assignment.second)) {
      return UsageError(absl::StrCat(flag_name, " ", flag, ": got '",
                                     assignment.second, "', want ", want));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<v1::CreateCatalogRequest> CreateRequest(
    const CreateFlags& flags) {
  v1::CreateCatalogRequest request;
  request.set_name(flags.name);
  v1::CatalogSchema& schema = *request.mutable_schema();
  schema.set_value_dimension(flags.value_dim);
  for (const std::string& directory : flags.from) {
    ATTENDANT_ASSIGN_OR_RETURN(const Model model, ReadModel(directory));
    *schema.add_key_fields() = model.key_field;
    for (const v1::AttributeField& attribute : model.attributes) {
      ATTENDANT_RETURN_IF_ERROR(AddAttribute(attribute, schema));
    }
    if (!model.has_encoder) continue;
    ATTENDANT_ASSIGN_OR_RETURN(*request.add_text_encoders(),
                               ReadTextEncoder(directory, model));
  }
  for (const std::string& flag : flags.key_fields) {
    ATTENDANT_ASSIGN_OR_RETURN(*schema.add_key_fields(), ParseKeyField(flag));
  }
  for (const std::string& flag : flags.attributes) {
    ATTENDANT_ASSIGN_OR_RETURN(const auto attribute, ParseAttributeField(flag));
    ATTENDANT_RETURN_IF_ERROR(AddAttribute(attribute, schema));
  }
  ATTENDANT_RETURN_IF_ERROR(
      SetFields(flags.temperatures, "--temperature", "a number above 0", schema,
                [](v1::KeyField& field, const std::string& text) {
                  const auto temperature = ParsePositive(text);
                  if (temperature.ok()) field.set_temperature(*temperature);
                  return temperature.ok();
                }));
  ATTENDANT_RETURN_IF_ERROR(
      SetFields(flags.combines, "--combine", "sum, sum_over_sqrt_count or unit",
                schema, [](v1::KeyField& field, const std::string& text) {
                  field.set_combine_kind(CombineKindFromFlag(text));
                  return field.combine_kind() != v1::COMBINE_KIND_UNSPECIFIED;
                }));
  ATTENDANT_RETURN_IF_ERROR(
      SetFields(flags.indexes, "--index", "auto, flat, ivf, hnsw, lsh or pq",
                schema, [](v1::KeyField& field, const std::string& text) {
                  field.set_index_kind(IndexKindFromFlag(text));
                  return field.index_kind() != v1::INDEX_KIND_UNSPECIFIED;
                }));
  ATTENDANT_RETURN_IF_ERROR(
      SetFields(flags.models, "--model", "NAME or NAME:VERSION", schema,
                [](v1::KeyField& field, const std::string& text) {
                  const auto model = ParseModelReference(text);
                  if (model.ok()) *field.mutable_model() = *model;
                  return model.ok();
                }));
  for (const std::string& name : flags.keys_on_disk) {
    v1::KeyField* field = FindField(schema, name);
    if (field == nullptr) {
      return UsageError(absl::StrCat("--keys-on-disk ", name, ": ",
                                     NoSuchField(schema, name)));
    }
    field->set_keys_on_disk(true);
  }
  return request;
}

// What was asked of a catalog that was there already, and differs from what it
// has: "temperature 0.05 of text (it has 0.07)", ...
std::vector<std::string> NotApplied(const v1::CreateCatalogRequest& request,
                                    const v1::Catalog& catalog) {
  std::vector<std::string> differences;
  const auto differ = [&](absl::string_view what, const std::string& asked,
                          const v1::KeyField& field, const std::string& has) {
    differences.push_back(absl::StrCat(what, " ", asked, " of ", field.name(),
                                       " (it has ", has, ")"));
  };
  const auto text_of = [](const v1::ModelReference& model) {
    if (model.name().empty()) return std::string("none");
    return model.version() == 0
               ? model.name()
               : absl::StrCat(model.name(), ":", model.version());
  };
  for (const v1::KeyField& has : catalog.schema().key_fields()) {
    for (const v1::KeyField& asked : request.schema().key_fields()) {
      if (asked.name() != has.name()) continue;
      if (asked.has_temperature() && asked.temperature() != has.temperature()) {
        differ("temperature", absl::StrCat(asked.temperature()), has,
               absl::StrCat(has.temperature()));
      }
      if (asked.combine_kind() != v1::COMBINE_KIND_UNSPECIFIED &&
          asked.combine_kind() != has.combine_kind()) {
        differ("combine", FlagOf(asked.combine_kind()), has,
               FlagOf(has.combine_kind()));
      }
      if (asked.index_kind() != v1::INDEX_KIND_UNSPECIFIED &&
          asked.index_kind() != has.index_kind()) {
        differ("index", FlagOf(asked.index_kind()), has,
               FlagOf(has.index_kind()));
      }
      // Version 0 asks for the newest.
      if (asked.has_model() &&
          (asked.model().name() != has.model().name() ||
           (asked.model().version() != 0 &&
            asked.model().version() != has.model().version()))) {
        differ("model", text_of(asked.model()), has, text_of(has.model()));
      }
      if (asked.keys_on_disk() && !has.keys_on_disk()) {
        differ("keys", "on disk", has, "them in memory");
      }
    }
  }
  // The reply tells of an encoder only its size; with the same size and the
  // same defaults it is taken to be that of the same fit.
  for (const v1::TextEncoder& encoder : request.text_encoders()) {
    for (const v1::IndexStatus& index : catalog.indexes()) {
      if (index.key_field() == encoder.key_field() &&
          (!differences.empty() ||
           index.text_encoder_term_count() != encoder.terms_size())) {
        differences.push_back(
            absl::StrCat("the text encoder of ", encoder.key_field()));
        break;
      }
    }
  }
  return differences;
}

void WarnOfNotApplied(const v1::CreateCatalogRequest& request,
                      const v1::Catalog& catalog) {
  const std::vector<std::string> differences = NotApplied(request, catalog);
  if (differences.empty()) return;
  Note(absl::StrCat("Warning: ", request.name(),
                    " was there already, and stays as it was. ",
                    "Not applied: ", absl::StrJoin(differences, ", "),
                    ". `attendant catalog update ", request.name(),
                    "` applies them, a field at a time."));
}

absl::Status CreateCatalog(const CreateFlags& flags, const Context& context) {
  ATTENDANT_ASSIGN_OR_RETURN(const auto request, CreateRequest(flags));
  ATTENDANT_ASSIGN_OR_RETURN(const auto client, context.Connect());
  ATTENDANT_ASSIGN_OR_RETURN(const auto response,
                             client->CreateCatalog(request));
  if (!response.created()) WarnOfNotApplied(request, response.catalog());
  if (context.json) {
    Print(ToJson(response));
    return absl::OkStatus();
  }
  Print(response.created() ? "Created.\n\n"
                           : "It was there already, with the same schema, and "
                             "keeps its defaults and text encoders.\n\n");
  Print(DescribeCatalog(response.catalog(), context.style));
  return absl::OkStatus();
}

absl::Status ListCatalogs(const Context& context) {
  ATTENDANT_ASSIGN_OR_RETURN(const auto client, context.Connect());
  ATTENDANT_ASSIGN_OR_RETURN(
      const auto all,
      AllPages(*client, &Client::ListCatalogs, v1::ListCatalogsRequest()));
  Listing listing = {
      .table = Table({{.title = "catalog"},
                      {.title = "items", .align = Table::Align::kRight},
                      {.title = "key fields"}}),
      .none =
          "There are no catalogs. `attendant catalog create --help` tells "
          "how to make one.\n"};
  for (const v1::Catalog& catalog : all.catalogs()) {
    std::vector<std::string> fields;
    for (const v1::KeyField& field : catalog.schema().key_fields()) {
      fields.push_back(absl::StrCat(field.name(), ":", field.dimension(), ":",
                                    FlagOf(field.score_kind())));
    }
    listing.table.AddRow({catalog.name(), FormatCount(catalog.item_count()),
                          absl::StrJoin(fields, " ")});
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
  Print(context.json
            ? ToJson(response)
            : absl::StrCat(DescribeCatalog(response.catalog(), context.style),
                           DescribeServer(response.server_memory())));
  return absl::OkStatus();
}

struct UpdateCatalogFlags {
  std::string name;
  std::string field;
  double temperature = 0;
  std::string combine;
  std::string index;
  std::string model;
  std::string keys_on_disk;
  std::string from;
};

absl::StatusOr<v1::TextEncoder> EncoderFrom(const std::string& directory,
                                            const std::string& field) {
  ATTENDANT_ASSIGN_OR_RETURN(const Model model, ReadModel(directory));
  if (!model.has_encoder) {
    return FileError(PathIn(directory, kModelFile),
                     "got a fit of events, want one of text");
  }
  ATTENDANT_ASSIGN_OR_RETURN(v1::TextEncoder encoder,
                             ReadTextEncoder(directory, model));
  // The catalog may call it otherwise.
  encoder.set_key_field(field);
  return encoder;
}

// The error of an update: of a field that is not there with those there are.
absl::Status ErrorOfField(const absl::Status& error,
                          const UpdateCatalogFlags& flags, Client& client) {
  const auto named = FieldOf(error);
  if (named != "key_fields[0].name" && named != "text_encoders[0].key_field") {
    return error;
  }
  v1::GetCatalogRequest get;
  get.set_name(flags.name);
  const auto found = client.GetCatalog(get);
  if (!found.ok()) return error;
  return absl::InvalidArgumentError(absl::StrCat(
      "FIELD: ", NoSuchField(found->catalog().schema(), flags.field)));
}

absl::Status UpdateCatalog(const UpdateCatalogFlags& flags,
                           const Context& context) {
  v1::UpdateCatalogRequest request;
  request.set_name(flags.name);
  v1::KeyField field;
  field.set_name(flags.field);
  const auto set = [&](bool given, const char* path) {
    if (given) request.mutable_update_mask()->add_paths(path);
    return given;
  };
  if (set(flags.temperature != 0, "temperature")) {
    field.set_temperature(flags.temperature);
  }
  if (set(!flags.combine.empty(), "combine_kind")) {
    field.set_combine_kind(CombineKindFromFlag(flags.combine));
  }
  if (set(!flags.index.empty(), "index_kind")) {
    field.set_index_kind(IndexKindFromFlag(flags.index));
  }
  if (set(!flags.model.empty(), "model") && flags.model != "none") {
    ATTENDANT_ASSIGN_OR_RETURN(*field.mutable_model(),
                               ParseModelReference(flags.model));
  }
  if (set(!flags.keys_on_disk.empty(), "keys_on_disk")) {
    field.set_keys_on_disk(flags.keys_on_disk == "yes");
  }
  if (request.has_update_mask()) *request.add_key_fields() = field;
  if (!flags.from.empty()) {
    ATTENDANT_ASSIGN_OR_RETURN(*request.add_text_encoders(),
                               EncoderFrom(flags.from, flags.field));
  }
  ATTENDANT_ASSIGN_OR_RETURN(const auto client, context.Connect());
  const auto response = client->UpdateCatalog(request);
  if (!response.ok()) return ErrorOfField(response.status(), flags, *client);
  Print(context.json ? ToJson(*response)
                     : DescribeCatalog(response->catalog(), context.style));
  return absl::OkStatus();
}

absl::Status DeleteCatalog(const std::string& name, const Context& context) {
  ATTENDANT_ASSIGN_OR_RETURN(const auto client, context.Connect());
  v1::DeleteCatalogRequest request;
  request.set_name(name);
  ATTENDANT_ASSIGN_OR_RETURN(const auto response,
                             client->DeleteCatalog(request));
  Print(context.json ? ToJson(response)
                     : absl::StrCat("Deleted ", name, " and its items.\n"));
  return absl::OkStatus();
}

void AddCreateCatalog(CLI::App& catalog, Context& context) {
  auto flags = std::make_shared<CreateFlags>();
  CLI::App* create = catalog.add_subcommand("create", "Make an empty catalog");
  create->add_option("NAME", flags->name, "The catalog's name")->required();
  CLI::Option* key_field =
      AddRepeated(*create, "--key-field", flags->key_fields,
                  "A key field as "
                  "NAME:DIM[:dot|scaled_dot|cosine|bilinear|additive]")
          ->type_name("NAME:DIM")
          ->check(CLI::Validator(Accepts(&ParseKeyField), ""));
  CLI::Option* from =
      AddRepeated(
          *create, "--from", flags->from,
          "A directory that `attendant fit` wrote: takes its key field, "
          "defaults, attributes and text encoder. Fields stand in the "
          "order of --from, then of --key-field; the first is the "
          "default of queries")
          ->type_name("DIR");
  create
      ->add_option("--value-dim", flags->value_dim,
                   "Components of a value; 0: keys are pooled as values")
      ->check(CLI::Range(0, 8192))
      ->capture_default_str();
  AddRepeated(*create, "--attribute", flags->attributes,
              "An attribute as NAME:TYPE, of type bool, int64, double, string, "
              "string_list or timestamp")
      ->type_name("NAME:TYPE")
      ->check(CLI::Validator(Accepts(&ParseAttributeField), ""));
  AddRepeated(*create, "--temperature", flags->temperatures,
              "Default temperature of a field as FIELD=T")
      ->type_name("FIELD=NUMBER")
      ->check(CLI::Validator(Accepts(&ParseAssignment), ""));
  AddRepeated(*create, "--combine", flags->combines,
              "How a field combines examples, as "
              "FIELD=sum|sum_over_sqrt_count|unit")
      ->type_name("FIELD=KIND")
      ->check(CLI::Validator(Accepts(&ParseAssignment), ""));
  AddRepeated(*create, "--index", flags->indexes,
              "The index of a field as FIELD=auto|flat|ivf|hnsw|lsh|pq")
      ->type_name("FIELD=KIND")
      ->check(CLI::Validator(Accepts(&ParseAssignment), ""));
  AddRepeated(*create, "--model", flags->models,
              "The attention model of a field as FIELD=NAME or "
              "FIELD=NAME:VERSION")
      ->type_name("FIELD=NAME")
      ->check(CLI::Validator(Accepts(&ParseAssignment), ""));
  AddRepeated(*create, "--keys-on-disk", flags->keys_on_disk,
              "A field whose index keeps the floats of its keys in a file, "
              "and about a third of the memory. For auto, ivf and pq")
      ->type_name("FIELD");
  create->footer(
      "Examples:\n"
      "  attendant catalog create shop --from fit/events --from fit/text\n"
      "  attendant catalog create photos --key-field image:512:cosine \\\n"
      "      --attribute title:string --temperature image=0.07\n\n"
      "Creating a catalog again with the same schema is fine, and changes\n"
      "nothing: not its defaults or text encoders either.");
  create->final_callback([flags, key_field, from, &context] {
    if (key_field->empty() && from->empty()) {
      throw CLI::RequiredError("--key-field or --from");
    }
    context.Run([&](const Context& c) { return CreateCatalog(*flags, c); });
  });
}

void AddUpdate(CLI::App& catalog, Context& context) {
  auto flags = std::make_shared<UpdateCatalogFlags>();
  CLI::App* update =
      catalog.add_subcommand("update", "Change the defaults of a key field");
  update->add_option("NAME", flags->name, "The catalog's name")->required();
  update->add_option("FIELD", flags->field, "The key field")->required();
  update
      ->add_option("--temperature", flags->temperature,
                   "Default temperature of queries")
      ->check(CLI::Validator(Accepts(&ParsePositive), ""));
  update->add_option("--combine", flags->combine, "How examples combine")
      ->check(CLI::IsMember({"sum", "sum_over_sqrt_count", "unit"}));
  update->add_option("--index", flags->index, "The index")
      ->check(CLI::IsMember({"auto", "flat", "ivf", "hnsw", "lsh", "pq"}));
  update
      ->add_option("--model", flags->model,
                   "The attention model, as NAME or NAME:VERSION, or none. "
                   "The one before it answers until the new one is ready")
      ->check(CLI::Validator(Accepts(&ParseModelReference), ""));
  update
      ->add_option("--keys-on-disk", flags->keys_on_disk,
                   "Whether the index keeps the floats of its keys in a file")
      ->check(CLI::IsMember({"yes", "no"}));
  update->add_option("--from", flags->from,
                     "A directory that `attendant fit text` wrote: takes its "
                     "text encoder, and nothing else");
  update->footer(
      "Examples:\n"
      "  attendant catalog update shop events --temperature 0.05\n"
      "  attendant catalog update shop events --model taste:2\n"
      "  attendant catalog update shop text --from fit/text");
  update->final_callback([flags, &context] {
    if (flags->temperature == 0 && flags->combine.empty() &&
        flags->index.empty() && flags->model.empty() &&
        flags->keys_on_disk.empty() && flags->from.empty()) {
      throw CLI::RequiredError(
          "--temperature, --combine, --index, --model, --keys-on-disk or "
          "--from");
    }
    context.Run([&](const Context& c) { return UpdateCatalog(*flags, c); });
  });
}

// A verb that takes a catalog's name and nothing else.
void AddByName(CLI::App& catalog, Context& context, const std::string& verb,
               const std::string& description,
               absl::Status (*action)(const std::string& name,
                                      const Context& context)) {
  auto name = std::make_shared<std::string>();
  CLI::App* command = catalog.add_subcommand(verb, description);
  command->add_option("NAME", *name, "The catalog's name")->required();
  command->footer(
      absl::StrCat("Example:\n  attendant catalog ", verb, " shop"));
  command->final_callback([name, action, &context] {
    context.Run([&](const Context& c) { return action(*name, c); });
  });
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
  AddCreateCatalog(*catalog, context);
  CLI::App* list = catalog->add_subcommand("list", "List the catalogs");
  list->footer("Example:\n  attendant catalog list");
  list->final_callback([&context] { context.Run(&ListCatalogs); });
  AddUpdate(*catalog, context);
  AddByName(*catalog, context, "describe",
            "Show schema, counts, indexes and warnings", &Describe);
  AddByName(*catalog, context, "delete",
            "Delete a catalog with all its items, for good", &DeleteCatalog);
}

}  // namespace attendant
