// The stored form of a TextEncoder, little-endian:
//   magic "ATTE", version u32, dim u64, term count u64,
//   for each term: its size u32 and bytes,
//   idf: term count floats, projection: term count x dim floats,
//   checksum u64: FNV-1a of all before it.
#include <bit>
#include <cstring>
#include <span>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "core/encode/text_encoder.h"

namespace attendant {
namespace {

static_assert(std::endian::native == std::endian::little);

constexpr std::uint32_t kMagic = 0x45545441;  // "ATTE"
constexpr std::uint32_t kVersion = 1;

// Fowler, Noll, Vo 1991. Every step is a bijection of the state, so no change
// of a single byte goes unseen.
std::uint64_t Checksum(absl::string_view bytes) {
  std::uint64_t hash = 14695981039346656037u;
  for (const char byte : bytes) {
    hash = (hash ^ static_cast<unsigned char>(byte)) * 1099511628211u;
  }
  return hash;
}

template <typename T>
void Append(std::string& bytes, std::span<const T> values) {
  bytes.append(reinterpret_cast<const char*>(values.data()),
               values.size_bytes());
}
template <typename T>
void AppendOne(std::string& bytes, T value) {
  Append(bytes, std::span<const T>(&value, 1));
}

// Reads from the front of bytes; false, and nothing read, where they end first.
class Reader {
 public:
  explicit Reader(absl::string_view bytes) : bytes_(bytes) {}

  template <typename T>
  bool Read(T& value) {
    if (bytes_.size() < sizeof(T)) return false;
    std::memcpy(&value, bytes_.data(), sizeof(T));
    bytes_.remove_prefix(sizeof(T));
    return true;
  }
  bool Read(std::uint64_t count, std::string& value) {
    if (bytes_.size() < count) return false;
    value.assign(bytes_.data(), count);
    bytes_.remove_prefix(count);
    return true;
  }
  bool Read(std::uint64_t count, std::vector<float>& values) {
    if (bytes_.size() / sizeof(float) < count) return false;
    values.resize(count);
    if (count == 0) return true;
    std::memcpy(values.data(), bytes_.data(), count * sizeof(float));
    bytes_.remove_prefix(count * sizeof(float));
    return true;
  }
  std::size_t left() const { return bytes_.size(); }

 private:
  absl::string_view bytes_;
};

bool ReadParts(Reader& reader, TextEncoderParts& parts) {
  std::uint64_t dim = 0;
  std::uint64_t term_count = 0;
  if (!reader.Read(dim) || !reader.Read(term_count)) return false;
  // A term takes its size and dim + 1 floats: a count beyond that is a lie, and
  // must not become an allocation.
  const std::uint64_t most_floats = reader.left() / sizeof(float);
  if (dim > most_floats || term_count > most_floats / (dim + 2)) return false;
  parts.dim = static_cast<std::int64_t>(dim);
  parts.terms.resize(term_count);
  for (std::string& term : parts.terms) {
    std::uint32_t size = 0;
    if (!reader.Read(size) || !reader.Read(size, term)) return false;
  }
  return reader.Read(term_count, parts.idf) &&
         reader.Read(term_count * dim, parts.projection) && reader.left() == 0;
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
  AppendOne(bytes, Checksum(bytes));
  return bytes;
}

absl::StatusOr<TextEncoder> TextEncoder::Deserialize(absl::string_view bytes) {
  std::uint64_t checksum = 0;
  if (bytes.size() < sizeof(checksum)) return Damaged("it is too short");
  const absl::string_view body =
      bytes.substr(0, bytes.size() - sizeof(checksum));
  std::memcpy(&checksum, body.data() + body.size(), sizeof(checksum));
  if (checksum != Checksum(body)) return Damaged("its checksum does not match");

  Reader reader(body);
  std::uint32_t magic = 0;
  std::uint32_t version = 0;
  if (!reader.Read(magic) || magic != kMagic || !reader.Read(version)) {
    return Damaged("it does not begin as one");
  }
  if (version != kVersion) {
    return Damaged(absl::StrCat("it has format ", version, ", not ", kVersion));
  }
  TextEncoderParts parts;
  if (!ReadParts(reader, parts)) return Damaged("its sizes do not add up");
  absl::StatusOr<TextEncoder> encoder = Create(std::move(parts));
  if (!encoder.ok()) return Damaged(encoder.status().message());
  return encoder;
}

}  // namespace attendant
