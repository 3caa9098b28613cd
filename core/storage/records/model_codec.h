// Encodes attention models with a version and a checksum: the model itself, for
// a file of its own, and its entry in the metadata database.
#ifndef ATTENDANT_CORE_STORAGE_RECORDS_MODEL_CODEC_H_
#define ATTENDANT_CORE_STORAGE_RECORDS_MODEL_CODEC_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/storage/records/store.h"

namespace attendant {

// Keys sort by name and version: the name, a zero byte, the version as 8 bytes,
// most significant first. DecodeModelKey takes any other bytes as the name,
// with version 0.
std::string EncodeModelKey(const ModelName& name);
ModelName DecodeModelKey(absl::string_view key);

// The record's name and model must be valid.
std::string EncodeModel(const ModelRecord& record);

// Decodes what EncodeModel returned. DataLoss, naming the model, if `bytes` is
// anything else: another format, a wrong checksum, the record of another model,
// or a model that is not valid.
absl::StatusOr<ModelRecord> DecodeModel(const ModelName& name,
                                        absl::string_view bytes);

// The entry that makes a version exist in the metadata database.
// CheckModelEntry returns DataLoss as DecodeModel does.
std::string EncodeModelEntry(const ModelName& name);
absl::Status CheckModelEntry(const ModelName& name, absl::string_view bytes);

// The last version assigned to a name. DataLoss as for DecodeModel.
std::string EncodeLastVersion(const ModelName& last);
absl::StatusOr<std::int64_t> DecodeLastVersion(absl::string_view name,
                                               absl::string_view bytes);

}  // namespace attendant

#endif  // ATTENDANT_CORE_STORAGE_RECORDS_MODEL_CODEC_H_
