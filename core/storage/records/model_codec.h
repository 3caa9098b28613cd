// Attention models as bytes with a version and a checksum: the model itself for
// a file of its own, and what the metadata database says of it.
#ifndef ATTENDANT_CORE_STORAGE_RECORDS_MODEL_CODEC_H_
#define ATTENDANT_CORE_STORAGE_RECORDS_MODEL_CODEC_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/storage/records/store.h"

namespace attendant {

// Keys in the order of name and version: the name, a zero byte, the version as
// 8 bytes, most significant first. Of other bytes, DecodeModelKey takes all as
// the name, with version 0.
std::string EncodeModelKey(const ModelName& name);
ModelName DecodeModelKey(absl::string_view key);

// The record's name and model are valid.
std::string EncodeModel(const ModelRecord& record);

// The inverse. DataLoss, naming the model, if that is not what `bytes` holds:
// another format, a wrong checksum, the record of another model, or a model
// that is not valid.
absl::StatusOr<ModelRecord> DecodeModel(const ModelName& name,
                                        absl::string_view bytes);

// What makes a version exist in the metadata database. CheckModelEntry returns
// DataLoss as above.
std::string EncodeModelEntry(const ModelName& name);
absl::Status CheckModelEntry(const ModelName& name, absl::string_view bytes);

// The last version that was given out for a name. DataLoss as above.
std::string EncodeLastVersion(const ModelName& last);
absl::StatusOr<std::int64_t> DecodeLastVersion(absl::string_view name,
                                               absl::string_view bytes);

}  // namespace attendant

#endif  // ATTENDANT_CORE_STORAGE_RECORDS_MODEL_CODEC_H_
