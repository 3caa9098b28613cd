// What the disk holds: decoders refuse it as damage, or take it for something
// that they would write and read the same way. The first byte says what it is.
// Checksums are out of the way, where there are any, so that what is behind
// them is reached.
#include "core/base/fail_point.h"
#include "core/encode/text_encoder.h"
#include "core/storage/alias_codec.h"
#include "core/storage/catalog_record_codec.h"
#include "core/storage/item_codec.h"
#include "core/storage/log_tail.h"
#include "core/storage/model_codec.h"
#include "core/storage/snapshot_manifest.h"
#include "core/storage/stream_hash.h"
#include "tests/core/storage/test_store.h"
#include "tests/fuzz/fuzz.h"

namespace attendant {
namespace {

using Bytes = absl::StatusOr<std::string>;

// These return the encoding of what they made of the bytes.

Bytes Item(absl::string_view bytes) {
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

// A snapshot's manifest without its last line, the checksum.
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
  // What was read is what is written from then on.
  const Bytes again = decode(*encoded);
  Require(again.ok() && *again == *encoded, "the encoding is read the same");
}

// A log of RocksDB.
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
  if (after > 0) Accept();
  const std::optional<std::size_t> torn = FindTornTail(log);
  if (!torn.has_value()) return;
  Require(*torn <= log.size(), "a torn tail is of the log");
  Require(!FindTornTail(log.substr(0, *torn)).has_value(),
          "nothing is torn of what is left");
}

void CheckInput(absl::string_view input) {
  if (input.empty()) return;
  const absl::string_view bytes = input.substr(1);
  switch (input[0]) {
    case 'i':
      return Check(&Item, bytes);
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
    case 's':
      return Check(&Manifest, bytes);
    case 'l':
      return CheckLog(bytes);
    default:
      return;
  }
}

}  // namespace
}  // namespace attendant

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data,
                                      std::size_t size) {
  attendant::CheckInput(attendant::TextOf(data, size));
  return 0;
}
