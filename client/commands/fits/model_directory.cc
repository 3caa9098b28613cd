#include "client/commands/fits/model_directory.h"

#include <cmath>
#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/api/client.h"
#include "client/commands/shared/flags.h"
#include "client/files/input.h"
#include "client/files/json.h"
#include "core/base/status.h"
#include "core/encode/text_encoder.h"

namespace attendant {
namespace {

constexpr std::int64_t kMaxModelBytes = 1 << 20;
constexpr int kVersion = 1;

}  // namespace

void SetDefaults(const AttentionDefaults& defaults, v1::KeyField& field) {
  // The wire's kinds have the same names as core's.
  field.set_score_kind(FromFlag<v1::ScoreKind>(Name(defaults.score_kind)));
  field.set_combine_kind(
      FromFlag<v1::CombineKind>(Name(defaults.combine_kind)));
  field.set_temperature(defaults.temperature);
}

std::string ModelJson(const Model& model) {
  nlohmann::ordered_json json;
  json["version"] = kVersion;
  json["key_field"]["name"] = model.key_field.name();
  json["key_field"]["dimension"] = model.key_field.dimension();
  json["key_field"]["score_kind"] = FlagOf(model.key_field.score_kind());
  json["key_field"]["combine_kind"] = FlagOf(model.key_field.combine_kind());
  json["key_field"]["temperature"] = model.key_field.temperature();
  json["attributes"] = nlohmann::ordered_json::array();
  for (const v1::AttributeField& attribute : model.attributes) {
    nlohmann::ordered_json entry;
    entry["name"] = attribute.name();
    entry["type"] = FlagOf(attribute.type());
    json["attributes"].push_back(std::move(entry));
  }
  json["text_encoder"] = model.has_encoder;
  json["fit"] = model.fit;
  // Names of columns may have any bytes.
  return json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) +
         "\n";
}

absl::StatusOr<Model> ReadModel(const std::string& directory) {
  const std::string path = PathIn(directory, kModelFile);
  const absl::StatusOr<std::string> text = ReadFile(path, kMaxModelBytes);
  if (absl::IsNotFound(text.status())) {
    return absl::NotFoundError(absl::StrCat(
        directory, ": not a directory that `attendant fit` wrote: it has no ",
        kModelFile));
  }
  if (!text.ok()) return text.status();
  const auto malformed = [&](absl::string_view what) {
    return FileError(path, absl::StrCat("not a model of this version: ", what));
  };
  const absl::StatusOr<nlohmann::json> parsed = ParseJsonObject(*text);
  if (!parsed.ok()) return malformed(parsed.status().message());
  const nlohmann::json& json = *parsed;
  if (json.value("version", nlohmann::json()) != kVersion) {
    return malformed(absl::StrCat("version is not ", kVersion));
  }
  const nlohmann::json field = json.value("key_field", nlohmann::json());
  if (!field.is_object()) return malformed("key_field is not an object");
  Model model;
  model.key_field.set_name(TextOf(field, "name"));
  if (model.key_field.name().empty()) return malformed("key_field.name");
  const nlohmann::json dim = field.value("dimension", nlohmann::json());
  if (!dim.is_number_unsigned() || dim.get<std::uint64_t>() < 1 ||
      dim.get<std::uint64_t>() > 1000000) {
    return malformed("key_field.dimension");
  }
  model.key_field.set_dimension(dim.get<std::int32_t>());
  model.key_field.set_score_kind(
      FromFlag<v1::ScoreKind>(TextOf(field, "score_kind")));
  if (model.key_field.score_kind() == v1::SCORE_KIND_UNSPECIFIED) {
    return malformed("key_field.score_kind");
  }
  model.key_field.set_combine_kind(
      FromFlag<v1::CombineKind>(TextOf(field, "combine_kind")));
  if (model.key_field.combine_kind() == v1::COMBINE_KIND_UNSPECIFIED) {
    return malformed("key_field.combine_kind");
  }
  const nlohmann::json temperature =
      field.value("temperature", nlohmann::json());
  if (!temperature.is_number() || !std::isfinite(temperature.get<double>()) ||
      !(temperature.get<double>() > 0)) {
    return malformed("key_field.temperature");
  }
  model.key_field.set_temperature(temperature.get<double>());
  const nlohmann::json attributes =
      json.value("attributes", nlohmann::json::array());
  if (!attributes.is_array()) return malformed("attributes");
  for (const nlohmann::json& entry : attributes) {
    if (!entry.is_object()) return malformed("attributes");
    v1::AttributeField attribute;
    attribute.set_name(TextOf(entry, "name"));
    attribute.set_type(FromFlag<v1::AttributeType>(TextOf(entry, "type")));
    if (attribute.name().empty() ||
        attribute.type() == v1::ATTRIBUTE_TYPE_UNSPECIFIED) {
      return malformed("attributes");
    }
    model.attributes.push_back(std::move(attribute));
  }
  model.has_encoder = json.value("text_encoder", nlohmann::json()) == true;
  model.fit = json.value("fit", nlohmann::json());
  return model;
}

absl::StatusOr<v1::TextEncoder> ReadTextEncoder(const std::string& directory,
                                                const Model& model) {
  const std::string path = PathIn(directory, kEncoderFile);
  ATTENDANT_ASSIGN_OR_RETURN(const std::string bytes,
                             ReadFile(path, Client::kLargestMessageBytes));
  const auto encoder = TextEncoder::Deserialize(bytes);
  if (!encoder.ok()) return PrefixField(encoder.status(), path + ": ");
  const TextEncoderParts& parts = encoder->parts();
  if (parts.dim != model.key_field.dimension()) {
    return FileError(
        path, absl::StrCat("got dimension ", parts.dim, ", want ",
                           model.key_field.dimension(), " as in ", kModelFile));
  }
  v1::TextEncoder wire;
  wire.set_key_field(model.key_field.name());
  for (const std::string& term : parts.terms) wire.add_terms(term);
  wire.mutable_idf()->Assign(parts.idf.begin(), parts.idf.end());
  wire.set_projection_float32_le(parts.projection.data(),
                                 parts.projection.size() * sizeof(float));
  return wire;
}

std::string PathIn(const std::string& directory, const std::string& name) {
  return absl::StrCat(directory, "/", name);
}

}  // namespace attendant
