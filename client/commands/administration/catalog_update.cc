// attendant catalog update
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/api/error_json.h"
#include "client/commands/administration/catalog_text.h"
#include "client/commands/administration/commands.h"
#include "client/commands/fits/model_directory.h"
#include "client/commands/shared/convert.h"
#include "client/commands/shared/flags.h"
#include "client/files/input.h"
#include "core/base/status.h"

namespace attendant {
namespace {

struct UpdateCatalogFlags {
  std::string name;
  std::string field;
  double temperature = 0;
  std::string combine;
  std::string index;
  std::string model;
  std::string keys_on_disk;
  std::string from;
  std::vector<std::string> attributes;
};

// True if something is to change that belongs to a key field.
bool ChangesField(const UpdateCatalogFlags& flags) {
  return flags.temperature != 0 || !flags.combine.empty() ||
         !flags.index.empty() || !flags.model.empty() ||
         !flags.keys_on_disk.empty() || !flags.from.empty();
}

absl::StatusOr<v1::TextEncoder> EncoderFrom(const std::string& directory,
                                            const std::string& field) {
  ATTENDANT_ASSIGN_OR_RETURN(const Model model, ReadModel(directory));
  if (!model.has_encoder) {
    return FileError(PathIn(directory, kModelFile),
                     "got a fit of events, want one of text");
  }
  ATTENDANT_ASSIGN_OR_RETURN(v1::TextEncoder encoder,
                             ReadTextEncoder(directory, model));
  // The catalog's field may have another name than the fit's.
  encoder.set_key_field(field);
  return encoder;
}

// Returns the error of an update in words of the command line: with the names
// of the fields if there is no such field, and with both dimensions if a text
// encoder does not fit the field.
absl::Status ErrorOfField(const absl::Status& error,
                          const UpdateCatalogFlags& flags,
                          const v1::UpdateCatalogRequest& request,
                          Client& client) {
  const auto named = FieldOf(error);
  const bool no_field =
      named == "key_fields[0].name" || named == "text_encoders[0].key_field";
  if (!no_field && named != "text_encoders[0].projection_float32_le") {
    return error;
  }
  v1::GetCatalogRequest get;
  get.set_name(flags.name);
  const auto found = client.GetCatalog(get);
  if (!found.ok()) return error;
  const v1::CatalogSchema& schema = found->catalog().schema();
  if (no_field) {
    return absl::InvalidArgumentError(
        absl::StrCat("FIELD: ", NoSuchField(schema, flags.field)));
  }
  const v1::TextEncoder& encoder = request.text_encoders(0);
  for (const v1::KeyField& field : schema.key_fields()) {
    if (field.name() != flags.field) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(flags.from, ": the text encoder has ",
                     encoder.projection_float32_le().size() / sizeof(float) /
                         static_cast<std::size_t>(encoder.terms_size()),
                     " dimensions, want ", field.dimension(), " as the field ",
                     flags.field, " has"));
  }
  return error;
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
    field.set_combine_kind(FromFlag<v1::CombineKind>(flags.combine));
  }
  if (set(!flags.index.empty(), "index_kind")) {
    field.set_index_kind(FromFlag<v1::IndexKind>(flags.index));
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
  for (const std::string& flag : flags.attributes) {
    ATTENDANT_ASSIGN_OR_RETURN(*request.add_new_attributes(),
                               ParseAttributeField(flag));
  }
  ATTENDANT_ASSIGN_OR_RETURN(const auto client, context.Connect());
  const auto response = client->UpdateCatalog(request);
  if (!response.ok())
    return ErrorOfField(response.status(), flags, request, *client);
  return Show(*response, DescribeCatalog(response->catalog(), context.style),
              context);
}

}  // namespace

void AddCatalogUpdateCommand(CLI::App& catalog, Context& context) {
  auto flags = std::make_shared<UpdateCatalogFlags>();
  CLI::App* update = catalog.add_subcommand(
      "update", "Change the defaults of a key field, or add attributes");
  update->add_option("NAME", flags->name, "The catalog's name")->required();
  update->add_option("FIELD", flags->field,
                     "The key field; with --attribute alone there is none");
  update
      ->add_option("--temperature", flags->temperature,
                   "Default temperature of queries")
      ->check(Accepts(&ParsePositive));
  update->add_option("--combine", flags->combine, "How examples combine")
      ->check(CLI::IsMember({"sum", "sum_over_sqrt_count", "unit"}));
  update->add_option("--index", flags->index, "The index")
      ->check(CLI::IsMember({"auto", "flat", "ivf", "hnsw", "lsh", "pq"}));
  update
      ->add_option("--model", flags->model,
                   "The attention model, as NAME or NAME:VERSION, or none. "
                   "The previous model answers until the new one is ready")
      ->check(Accepts(&ParseModelReference));
  update
      ->add_option("--keys-on-disk", flags->keys_on_disk,
                   "Keep the floats of the index's keys in a file")
      ->check(CLI::IsMember({"yes", "no"}));
  update->add_option("--from", flags->from,
                     "A directory that `attendant fit text` wrote, to take its "
                     "text encoder from");
  AddRepeated(*update, "--attribute", flags->attributes,
              "A further attribute as NAME:TYPE, of type bool, int64, double, "
              "string, string_list or timestamp. Items have it once they are "
              "written with it")
      ->type_name("NAME:TYPE")
      ->check(Accepts(&ParseAttributeField));
  update->footer(
      "Examples:\n"
      "  attendant catalog update shop events --temperature 0.05\n"
      "  attendant catalog update shop events --model taste:2\n"
      "  attendant catalog update shop text --from fit/text\n"
      "  attendant catalog update shop --attribute price:double");
  update->final_callback([flags, &context] {
    const bool changes_field = ChangesField(*flags);
    if (!changes_field &&
        (flags->attributes.empty() || !flags->field.empty())) {
      throw CLI::RequiredError(
          flags->field.empty()
              ? "FIELD with what changes of it, or --attribute"
              : "--temperature, --combine, --index, --model, --keys-on-disk or "
                "--from (an --attribute alone goes without FIELD)");
    }
    if (changes_field && flags->field.empty()) {
      throw CLI::RequiredError("FIELD");
    }
    context.Run([&](const Context& c) { return UpdateCatalog(*flags, c); });
  });
}

}  // namespace attendant
