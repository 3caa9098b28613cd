// Several small files packed into one fuzzer input.
#ifndef ATTENDANT_TESTS_FUZZ_PACKED_FILES_H_
#define ATTENDANT_TESTS_FUZZ_PACKED_FILES_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "core/base/byte_reader.h"

namespace attendant {

// File contents by name.
using FileMap = std::map<std::string, std::string>;

// Writes for each file, in order: the size of its name (1 byte), the size of
// its contents (4 bytes), the name, the contents.
inline std::string Pack(const FileMap& files) {
  std::string packed;
  for (const auto& [name, bytes] : files) {
    const auto size = static_cast<std::uint32_t>(bytes.size());
    packed.push_back(static_cast<char>(name.size()));
    packed.append(reinterpret_cast<const char*>(&size), sizeof(size));
    absl::StrAppend(&packed, name, bytes);
  }
  return packed;
}

// Returns nullopt if `packed` does not have that format.
inline std::optional<FileMap> Unpack(absl::string_view packed) {
  FileMap files;
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

#endif  // ATTENDANT_TESTS_FUZZ_PACKED_FILES_H_
