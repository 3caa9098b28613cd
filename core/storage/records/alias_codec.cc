// Little-endian: version u8, checksum u64 (XXH3 of the alias, a zero byte and
// the catalog), the catalog's name.
#include "core/storage/records/alias_codec.h"

#include <xxhash.h>

#include <cstdint>

#include "absl/strings/str_cat.h"
#include "core/base/byte_reader.h"
#include "core/storage/records/item.h"

namespace attendant {
namespace {

constexpr std::uint8_t kAliasVersion = 1;

std::uint64_t Checksum(absl::string_view alias, absl::string_view catalog) {
  const std::string both =
      absl::StrCat(alias, absl::string_view("\0", 1), catalog);
  return XXH3_64bits(both.data(), both.size());
}

}  // namespace

std::string EncodeAlias(absl::string_view alias, absl::string_view catalog) {
  std::string bytes;
  AppendNumber(kAliasVersion, bytes);
  AppendNumber(Checksum(alias, catalog), bytes);
  return absl::StrCat(bytes, catalog);
}

absl::StatusOr<std::string> DecodeAlias(absl::string_view alias,
                                        absl::string_view bytes) {
  ByteReader reader(bytes);
  std::uint8_t version = 0;
  std::uint64_t checksum = 0;
  std::string catalog;
  if (reader.Read(version) && version == kAliasVersion &&
      reader.Read(checksum) && reader.ReadText(reader.left(), catalog) &&
      checksum == Checksum(alias, catalog) && ValidateCatalogName(alias).ok() &&
      ValidateCatalogName(catalog).ok()) {
    return catalog;
  }
  return absl::DataLossError(
      absl::StrCat("the entry of alias \"", alias, "\" is damaged"));
}

}  // namespace attendant
