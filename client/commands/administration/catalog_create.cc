// attendant catalog create
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/api/error_json.h"
#include "client/commands/administration/catalog_text.h"
#include "client/commands/administration/commands.h"
#include "client/commands/fits/model_directory.h"
#include "client/commands/shared/convert.h"
#include "client/commands/shared/flags.h"
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

v1::KeyField* FindField(v1::CatalogSchema& schema, const std::string& name) {
  for (v1::KeyField& field : *schema.mutable_key_fields()) {
    if (field.name() == name) return &field;
  }
  return nullptr;
}

// Adds an attribute unless it is declared with the same type already.
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

// Applies flags "FIELD=REST" to key fields. `set` returns false for a malformed
// REST; `want` describes a correct one.
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
                  field.set_combine_kind(FromFlag<v1::CombineKind>(text));
                  return field.combine_kind() != v1::COMBINE_KIND_UNSPECIFIED;
                }));
  ATTENDANT_RETURN_IF_ERROR(
      SetFields(flags.indexes, "--index", "auto, flat, ivf, hnsw, lsh or pq",
                schema, [](v1::KeyField& field, const std::string& text) {
                  field.set_index_kind(FromFlag<v1::IndexKind>(text));
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

// Returns what the request asks for and a catalog that existed already does not
// have: "temperature 0.05 of text (it has 0.07)", ...
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
  // The reply has only the size of an encoder; one of the same size, in a
  // catalog with the same defaults, is assumed to be of the same fit.
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
                    " existed already and was not changed. ",
                    "Not applied: ", absl::StrJoin(differences, ", "),
                    ". `attendant catalog update ", request.name(),
                    "` applies them, one field at a time."));
}

// Returns the flags that make a catalog of this schema.
std::string SchemaFlags(const v1::CatalogSchema& schema) {
  std::vector<std::string> flags;
  for (const v1::KeyField& field : schema.key_fields()) {
    flags.push_back(absl::StrCat("--key-field ", field.name(), ":",
                                 field.dimension(), ":",
                                 FlagOf(field.score_kind())));
  }
  if (schema.value_dimension() > 0) {
    flags.push_back(absl::StrCat("--value-dim ", schema.value_dimension()));
  }
  for (const v1::AttributeField& attribute : schema.attributes()) {
    flags.push_back(absl::StrCat("--attribute ", attribute.name(), ":",
                                 FlagOf(attribute.type())));
  }
  return absl::StrJoin(flags, " ");
}

// Returns `status`, that of a creation, with what the catalog of this name was
// made with, if there is one.
absl::Status WithSchemaThere(const absl::Status& status,
                             const std::string& name, Client& client) {
  if (ReasonOf(status) != "CATALOG_EXISTS") return status;
  v1::GetCatalogRequest get;
  get.set_name(name);
  const auto found = client.GetCatalog(get);
  if (!found.ok()) return status;
  return WithHint(status, absl::StrCat("it is as made by ",
                                       SchemaFlags(found->catalog().schema())));
}

absl::Status CreateCatalog(const CreateFlags& flags, const Context& context) {
  ATTENDANT_ASSIGN_OR_RETURN(const auto request, CreateRequest(flags));
  ATTENDANT_ASSIGN_OR_RETURN(const auto client, context.Connect());
  const auto response = client->CreateCatalog(request);
  if (!response.ok()) {
    return WithSchemaThere(response.status(), flags.name, *client);
  }
  if (!response->created()) WarnOfNotApplied(request, response->catalog());
  return Show(
      *response,
      absl::StrCat(response->created()
                       ? "Created.\n\n"
                       : "It was there already, and keeps its attributes, "
                         "defaults and text encoders.\n\n",
                   DescribeCatalog(response->catalog(), context.style)),
      context);
}

}  // namespace

void AddCatalogCreateCommand(CLI::App& catalog, Context& context) {
  auto flags = std::make_shared<CreateFlags>();
  CLI::App* create = catalog.add_subcommand("create", "Make an empty catalog");
  create->add_option("NAME", flags->name, "The catalog's name")->required();
  CLI::Option* key_field =
      AddRepeated(*create, "--key-field", flags->key_fields,
                  "A key field as "
                  "NAME:DIM[:dot|scaled_dot|cosine|bilinear|additive]")
          ->type_name("NAME:DIM")
          ->check(Accepts(&ParseKeyField));
  CLI::Option* from =
      AddRepeated(
          *create, "--from", flags->from,
          "A directory that `attendant fit` wrote, to take its key field, "
          "defaults, attributes and text encoder from. Key fields are in the "
          "order of --from, then of --key-field; the first is the default of "
          "queries")
          ->type_name("DIR");
  create
      ->add_option("--value-dim", flags->value_dim,
                   "Components of a value. With 0 keys are pooled as values")
      ->check(CLI::Range(0, 8192))
      ->capture_default_str();
  AddRepeated(*create, "--attribute", flags->attributes,
              "An attribute as NAME:TYPE, of type bool, int64, double, string, "
              "string_list or timestamp")
      ->type_name("NAME:TYPE")
      ->check(Accepts(&ParseAttributeField));
  AddRepeated(*create, "--temperature", flags->temperatures,
              "Default temperature of a field as FIELD=T")
      ->type_name("FIELD=NUMBER")
      ->check(Accepts(&ParseAssignment));
  AddRepeated(*create, "--combine", flags->combines,
              "How a field combines examples, as "
              "FIELD=sum|sum_over_sqrt_count|unit")
      ->type_name("FIELD=KIND")
      ->check(Accepts(&ParseAssignment));
  AddRepeated(*create, "--index", flags->indexes,
              "The index of a field as FIELD=auto|flat|ivf|hnsw|lsh|pq")
      ->type_name("FIELD=KIND")
      ->check(Accepts(&ParseAssignment));
  AddRepeated(*create, "--model", flags->models,
              "The attention model of a field as FIELD=NAME or "
              "FIELD=NAME:VERSION")
      ->type_name("FIELD=NAME")
      ->check(Accepts(&ParseAssignment));
  AddRepeated(*create, "--keys-on-disk", flags->keys_on_disk,
              "A field whose index keeps the floats of its keys in a file, "
              "which takes about a third of the memory. For auto, ivf and pq")
      ->type_name("FIELD");
  create->footer(
      "Examples:\n"
      "  attendant catalog create shop --from fit/events --from fit/text\n"
      "  attendant catalog create photos --key-field image:512:cosine \\\n"
      "      --attribute title:string --temperature image=0.07\n\n"
      "Creating a catalog again with the same schema, or with some of its\n"
      "attributes, succeeds and changes nothing, defaults and text encoders\n"
      "included.");
  create->final_callback([flags, key_field, from, &context] {
    if (key_field->empty() && from->empty()) {
      throw CLI::RequiredError("--key-field or --from");
    }
    context.Run([&](const Context& c) { return CreateCatalog(*flags, c); });
  });
}

}  // namespace attendant
