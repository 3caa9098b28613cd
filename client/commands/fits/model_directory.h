// What `attendant fit` leaves behind for `catalog create` and `items import`.
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

// Names of the files. model.json comes last and stands for the whole.
inline constexpr char kModelFile[] = "model.json";
inline constexpr char kIdsFile[] = "ids.txt";
inline constexpr char kKeysFile[] = "keys.npy";
inline constexpr char kSingularValuesFile[] = "singular_values.npy";
inline constexpr char kEncoderFile[] = "encoder.bin";
inline constexpr char kAttributesFile[] = "attributes.jsonl";

// model.json: what a catalog for the items needs.
struct Model {
  v1::KeyField key_field;
  std::vector<v1::AttributeField> attributes;
  bool has_encoder = false;
  // How it was fitted and what came of it, for people and scripts.
  nlohmann::json fit;
};

// Sets score kind, combine kind and temperature.
void SetDefaults(const AttentionDefaults& defaults, v1::KeyField& field);

std::string ModelJson(const Model& model);
// InvalidArgument, naming the file and what is wrong with it; NotFound, naming
// the directory, where there is none.
absl::StatusOr<Model> ReadModel(const std::string& directory);

// The encoder of a directory, as the wire has it. InvalidArgument, naming the
// file, if no message could hold it or it is of another dimension than the
// model; DataLoss if it is damaged.
absl::StatusOr<v1::TextEncoder> ReadTextEncoder(const std::string& directory,
                                                const Model& model);

// "DIRECTORY/NAME".
std::string PathIn(const std::string& directory, const std::string& name);

}  // namespace attendant

#endif  // ATTENDANT_CLIENT_COMMANDS_FITS_MODEL_DIRECTORY_H_
