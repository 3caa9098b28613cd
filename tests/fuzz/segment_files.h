// The files of one small catalog's segments, in one input for the fuzzer.
#ifndef ATTENDANT_TESTS_FUZZ_SEGMENT_FILES_H_
#define ATTENDANT_TESTS_FUZZ_SEGMENT_FILES_H_

#include <map>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "core/base/byte_reader.h"
#include "core/storage/store.h"

namespace attendant {

inline CatalogRecord SegmentRecord() {
  CatalogRecord record;
  record.name = "shop";
  record.uid = "0123456789abcdef";
  KeyFieldSchema field;
  field.name = "vec";
  field.dim = 3;
  field.score_kind = ScoreKind::kCosine;
  field.index_kind = IndexKind::kIvf;
  record.schema.key_fields = {field, field};
  record.schema.key_fields[1].name = "title";
  record.schema.key_fields[1].dim = 2;
  record.schema.key_fields[1].score_kind = ScoreKind::kDot;
  record.schema.value_dim = 2;
  record.schema.attributes = {{"name", AttributeType::kString},
                              {"price", AttributeType::kDouble},
                              {"tags", AttributeType::kStringList}};
  return record;
}

// By name; that of the manifest, without its checksum, is empty.
using SegmentFileMap = std::map<std::string, std::string>;

// Of each file, in order: the size of its name in a byte, that of its bytes in
// four, the name, the bytes.
inline std::string Pack(const SegmentFileMap& files) {
  std::string packed;
  for (const auto& [name, bytes] : files) {
    const auto size = static_cast<std::uint32_t>(bytes.size());
    packed.push_back(static_cast<char>(name.size()));
    packed.append(reinterpret_cast<const char*>(&size), sizeof(size));
    absl::StrAppend(&packed, name, bytes);
  }
  return packed;
}

// Nothing if it is not that.
inline std::optional<SegmentFileMap> Unpack(absl::string_view packed) {
  SegmentFileMap files;
  ByteReader reader(packed);
  while (reader.left() > 0) {
    std::uint8_t name_size;
    std::uint32_t size;
    std::string name;
    std::string bytes;
    if (!reader.Read(name_size) || !reader.Read(size) ||
        !reader.ReadText(name_size, name) || !reader.ReadText(size, bytes)) {
      return std::nullopt;
    }
    files[name] = std::move(bytes);
  }
  return files;
}

}  // namespace attendant

#endif  // ATTENDANT_TESTS_FUZZ_SEGMENT_FILES_H_
