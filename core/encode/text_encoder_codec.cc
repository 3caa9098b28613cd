// The stored form of a TextEncoder, little-endian:
//   magic "ATTE", version u32, dim u64, term count u64,
//   for each term: its size u32 and bytes,
//   idf: term count floats, projection: term count x dim floats,
//   checksum u64: XXH3 of all before it.
#include <xxhash.h>

#include <cstring>
#include <span>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "core/base/byte_reader.h"
#include "core/encode/text_encoder.h"

namespace attendant {
namespace {

constexpr std::uint32_t kMagic = 0x45545441;  // "ATTE"
constexpr std::uint32_t kVersion = 2;

template <typename T>
void Append(std::string& bytes, std::span<const T> values) {
  bytes.append(reinterpret_cast<const char*>(values.data()),
               values.size_bytes());
}
template <typename T>
void AppendOne(std::string& bytes, T value) {
  Append(bytes, std::span<const T>(&value, 1));
}

bool ReadParts(ByteReader& reader, TextEncoderParts& parts) {
  std::uint64_t dim = 0;
  std::uint64_t term_count = 0;
  if (!reader.Read(dim) || !reader.Read(term_count)) return false;
  // A term takes its size and dim + 1 floats. A greater count is damage and
  // must not cause an allocation.
  const std::uint64_t most_floats = reader.left() / sizeof(float);
  if (dim > most_floats || term_count > most_floats / (dim + 2)) return false;
  parts.dim = static_cast<std::int64_t>(dim);
  parts.terms.resize(term_count);
  for (std::string& term : parts.terms) {
    std::uint32_t size = 0;
    if (!reader.Read(size) || !reader.ReadText(size, term)) return false;
  }
  return reader.ReadFloats(term_count, parts.idf) &&
         reader.ReadFloats(term_count * dim, parts.projection) &&
         reader.left() == 0;
}

absl::Status Damaged(absl::string_view what) {
  return absl::DataLossError(
      absl::StrCat("a stored text encoder is damaged: ", what));
}

}  // namespace

std::string TextEncoder::Serialize() const {
  std::string bytes;
  AppendOne(bytes, kMagic);
  AppendOne(bytes, kVersion);
  AppendOne(bytes, static_cast<std::uint64_t>(parts_.dim));
  AppendOne(bytes, static_cast<std::uint64_t>(parts_.terms.size()));
  for (const std::string& term : parts_.terms) {
    AppendOne(bytes, static_cast<std::uint32_t>(term.size()));
    bytes.append(term);
  }
  Append(bytes, std::span<const float>(parts_.idf));
  Append(bytes, std::span<const float>(parts_.projection));
  AppendOne(bytes, std::uint64_t{XXH3_64bits(bytes.data(), bytes.size())});
  return bytes;
}

absl::StatusOr<TextEncoder> TextEncoder::Deserialize(absl::string_view bytes) {
  std::uint64_t checksum = 0;
  if (bytes.size() < sizeof(checksum)) return Damaged("it is too short");
  const absl::string_view body =
      bytes.substr(0, bytes.size() - sizeof(checksum));
  ByteReader reader(body);
  std::uint32_t magic = 0;
  std::uint32_t version = 0;
  if (!reader.Read(magic) || magic != kMagic || !reader.Read(version)) {
    return Damaged("it does not begin as one");
  }
  if (version != kVersion) {
    return Damaged(absl::StrCat("it has format ", version, ", not ", kVersion));
  }
  std::memcpy(&checksum, body.data() + body.size(), sizeof(checksum));
  if (checksum != XXH3_64bits(body.data(), body.size())) {
    return Damaged("its checksum does not match");
  }
  TextEncoderParts parts;
  if (!ReadParts(reader, parts)) return Damaged("its sizes do not add up");
  absl::StatusOr<TextEncoder> encoder = Create(std::move(parts));
  if (!encoder.ok()) return Damaged(encoder.status().message());
  return encoder;
}

}  // namespace attendant
