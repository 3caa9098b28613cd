// Decoders of on-disk formats. They refuse the input as damage or accept it;
// then it must encode and decode again to the same. The first byte selects the
// format. Checksums are bypassed to reach the code behind them. Also text
// encoders as sent in requests, which are refused or encode texts.
#include <xxhash.h>

#include <cmath>
#include <cstring>
#include <vector>

#include "core/base/byte_reader.h"
#include "core/base/fail_point.h"
#include "core/encode/text_encoder.h"
#include "core/storage/files/stream_hash.h"
#include "core/storage/records/alias_codec.h"
#include "core/storage/records/catalog_record_codec.h"
#include "core/storage/records/item_codec.h"
#include "core/storage/records/model_codec.h"
#include "core/storage/rocks/log_tail.h"
#include "core/storage/snapshots/snapshot_manifest.h"
#include "tests/core/storage/test_store.h"
#include "tests/fuzz/fuzz.h"

namespace attendant {
namespace {

using Bytes = absl::StatusOr<std::string>;

// Each of these returns the encoding of what it decoded.

Bytes ItemOf(absl::string_view bytes) {
  static const CatalogSchema schema = TestRecord().schema;
  const absl::StatusOr<StoredItem> item = DecodeItem("id", bytes, schema);
  if (!item.ok()) return item.status();
  return item->sequence > 0 ? EncodeStoredItem(*item, item->sequence)
                            : EncodeItem(*item);
}

Bytes Record(absl::string_view bytes) {
  const absl::StatusOr<CatalogRecord> record =
      DecodeCatalogRecord("shop", bytes);
  if (!record.ok()) return record.status();
  return EncodeCatalogRecord(*record);
}

Bytes Model(absl::string_view bytes) {
  static const absl::Status armed = ArmFailPoint("skip_model_checksum=bug");
  Require(armed.ok(), "fail points are compiled in");
  const absl::StatusOr<ModelRecord> record = DecodeModel({"model", 1}, bytes);
  if (!record.ok()) return record.status();
  return EncodeModel(*record);
}

Bytes Alias(absl::string_view bytes) {
  const absl::StatusOr<std::string> catalog = DecodeAlias("shop", bytes);
  if (!catalog.ok()) return catalog.status();
  return EncodeAlias("shop", *catalog);
}

Bytes LastVersion(absl::string_view bytes) {
  const absl::StatusOr<std::int64_t> version =
      DecodeLastVersion("model", bytes);
  if (!version.ok()) return version.status();
  return EncodeLastVersion({"model", *version});
}

Bytes ModelEntry(absl::string_view bytes) {
  const absl::Status status = CheckModelEntry({"model", 7}, bytes);
  if (!status.ok()) return status;
  return EncodeModelEntry({"model", 7});
}

Bytes Encoder(absl::string_view bytes) {
  const absl::StatusOr<TextEncoder> encoder = TextEncoder::Deserialize(bytes);
  if (!encoder.ok()) return encoder.status();
  return encoder->Serialize();
}

// Decodes an encoder without its checksum, the last 8 bytes.
Bytes EncoderBody(absl::string_view bytes) {
  const std::uint64_t checksum = XXH3_64bits(bytes.data(), bytes.size());
  char last[sizeof(checksum)];
  std::memcpy(last, &checksum, sizeof(checksum));
  Bytes encoded =
      Encoder(absl::StrCat(bytes, absl::string_view(last, sizeof(last))));
  if (encoded.ok()) encoded->resize(encoded->size() - sizeof(checksum));
  return encoded;
}

// The key under which a model is stored.
Bytes ModelKey(absl::string_view bytes) {
  const ModelName name = DecodeModelKey(bytes);
  if (name.version < 1) {
    const auto record = DecodeModel(name, "");
    Require(!record.ok(), "no model has such a key");
    return record.status();
  }
  return EncodeModelKey(name);
}

// A snapshot's manifest without its last line, which is the checksum.
Bytes Manifest(absl::string_view bytes) {
  const absl::StatusOr<SnapshotManifest> manifest =
      DecodeSnapshotManifest(absl::StrCat(bytes, HashText(bytes), "\n"));
  if (!manifest.ok()) return manifest.status();
  std::string text = EncodeSnapshotManifest(*manifest);
  text.resize(text.size() - kHashTextBytes - 1);
  return text;
}

void Check(Bytes (*decode)(absl::string_view), absl::string_view bytes) {
  const Bytes encoded = decode(bytes);
  if (!encoded.ok()) {
    RequireRefusal(encoded.status(), {absl::StatusCode::kDataLoss});
    return;
  }
  Accept();
  // What was decoded must survive another round trip unchanged.
  const Bytes again = decode(*encoded);
  Require(again.ok() && *again == *encoded, "the encoding is read the same");
}

// Checks a RocksDB log.
void CheckLog(absl::string_view log) {
  std::size_t after = 0;
  const std::size_t end =
      ForEachWrite(log, [&](std::size_t begin, absl::string_view payload) {
        Require(begin >= after && begin + payload.size() <= log.size(),
                "writes follow each other within the log");
        after = begin + payload.size();
        return true;
      });
  Require(after <= end && end <= log.size(),
          "whole writes end before the rest");
  const std::size_t first_end =
      ForEachWrite(log, [](std::size_t, absl::string_view) { return false; });
  Require(first_end <= end, "a visit can be the last");
  if (end == log.size() && !log.empty()) {
    const absl::string_view cut = log.substr(0, log.size() - 1);
    Require(EndsEarly(
                cut, ForEachWrite(cut, [](std::size_t,
                                          absl::string_view) { return true; })),
            "a log that is cut off ends early");
  }
  if (after > 0) Accept();
  const std::optional<std::size_t> torn = FindTornTail(log);
  if (!torn.has_value()) return;
  Require(*torn <= log.size(), "a torn tail is of the log");
  Require(!FindTornTail(log.substr(0, *torn)).has_value(),
          "nothing is torn of what is left");
}

// Reads the sizes of an encoder's parts, one byte each, so that they may be
// inconsistent.
bool ReadSizedParts(ByteReader& reader, TextEncoderParts& parts) {
  std::uint8_t term_count;
  std::uint8_t idf_count;
  std::int8_t dim;
  std::uint8_t number_count;
  if (!reader.Read(term_count) || !reader.Read(idf_count) ||
      !reader.Read(dim) || !reader.Read(number_count)) {
    return false;
  }
  parts.dim = dim;
  parts.terms.resize(term_count);
  for (std::string& term : parts.terms) {
    std::uint8_t size;
    if (!reader.Read(size) || !reader.ReadText(size, term)) return false;
  }
  return reader.ReadFloats(idf_count, parts.idf) &&
         reader.ReadFloats(number_count, parts.projection);
}

// The input has an encoder's parts and a text.
void CheckEncoding(absl::string_view bytes) {
  ByteReader reader(bytes);
  TextEncoderParts parts;
  if (!ReadSizedParts(reader, parts)) return;
  const absl::string_view text = bytes.substr(bytes.size() - reader.left());
  const auto encoder = TextEncoder::Create(parts);
  if (!encoder.ok()) {
    RequireRefusal(encoder.status(), {absl::StatusCode::kInvalidArgument});
    return;
  }
  const auto stored = TextEncoder::Deserialize(encoder->Serialize());
  Require(stored.ok() && stored->memory_bytes() == encoder->memory_bytes(),
          "an encoder can be stored");
  const auto query = encoder->Encode(text);
  if (!query.ok()) {
    RequireRefusal(query.status(), {absl::StatusCode::kInvalidArgument,
                                    absl::StatusCode::kResourceExhausted});
    return;
  }
  Accept();
  Require(static_cast<std::int64_t>(query->size()) == parts.dim,
          "a query has the encoder's dimension");
  for (const float component : *query) {
    Require(std::isfinite(component), "a query's numbers are finite");
  }
}

}  // namespace

void CheckInput(absl::string_view input) {
  if (input.empty()) return;
  const absl::string_view bytes = input.substr(1);
  switch (input[0]) {
    case 'i':
      return Check(&ItemOf, bytes);
    case 'r':
      return Check(&Record, bytes);
    case 'm':
      return Check(&Model, bytes);
    case 'a':
      return Check(&Alias, bytes);
    case 'v':
      return Check(&LastVersion, bytes);
    case 'e':
      return Check(&ModelEntry, bytes);
    case 't':
      return Check(&Encoder, bytes);
    case 'u':
      return Check(&EncoderBody, bytes);
    case 'w':
      return CheckEncoding(bytes);
    case 'k':
      return Check(&ModelKey, bytes);
    case 's':
      return Check(&Manifest, bytes);
    case 'l':
      return CheckLog(bytes);
    default:
      return;
  }
}

}  // namespace attendant
