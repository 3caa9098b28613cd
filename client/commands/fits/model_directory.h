// The directories that `attendant fit` writes, for `catalog create` and `items
// import`.
#ifndef ATTENDANT_CLIENT_COMMANDS_FITS_MODEL_DIRECTORY_H_
#define ATTENDANT_CLIENT_COMMANDS_FITS_MODEL_DIRECTORY_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "attendant/v1/catalog_service.pb.h"
#include "client/files/output.h"
#include "core/encode/temperature.h"
#include "nlohmann/json.hpp"

namespace attendant {

// Names of the files. model.json is written last: a directory that has it is
// complete.
inline constexpr char kModelFile[] = "model.json";
inline constexpr char kIdsFile[] = "ids.txt";
inline constexpr char kKeysFile[] = "keys.npy";
inline constexpr char kSingularValuesFile[] = "singular_values.npy";
inline constexpr char kEncoderFile[] = "encoder.bin";
inline constexpr char kAttributesFile[] = "attributes.jsonl";

// The content of model.json: what a catalog needs to hold the items.
struct Model {
  v1::KeyField key_field;
  std::vector<v1::AttributeField> attributes;
  bool has_encoder = false;
  // How the model was fitted, with the results, for people and scripts.
  nlohmann::json fit;
};

// Sets the field's score kind, combine kind and temperature.
void SetDefaults(const AttentionDefaults& defaults, v1::KeyField& field);

// Returns the text of model.json.
std::string ModelJson(const Model& model);
// Reads model.json of a directory. NotFound, naming the directory, if it has
// none; InvalidArgument, naming the file and what is wrong, if it is malformed
// or of another version.
absl::StatusOr<Model> ReadModel(const std::string& directory);

// Reads the text encoder of a directory as a message. InvalidArgument, naming
// the file, if it is too large for any message or its dimension differs from
// the model's; DataLoss if it is damaged.
absl::StatusOr<v1::TextEncoder> ReadTextEncoder(const std::string& directory,
                                                const Model& model);

// Returns "DIRECTORY/NAME".
std::string PathIn(const std::string& directory, const std::string& name);

}  // namespace attendant

#endif  // ATTENDANT_CLIENT_COMMANDS_FITS_MODEL_DIRECTORY_H_
