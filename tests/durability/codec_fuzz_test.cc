// What the disk holds, mutated: decoders refuse it as damage or take it for
// something that they would write and read the same way. Checksums are out of
// the way, where there are any, so that what is behind them is reached.
//
//   codec_fuzz_test --count=10000000 --seed=1     the long form
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "core/base/fail_point.h"
#include "core/encode/text_encoder.h"
#include "core/storage/alias_codec.h"
#include "core/storage/catalog_record_codec.h"
#include "core/storage/item_codec.h"
#include "core/storage/model_codec.h"
#include "tests/core/storage/test_store.h"
#include "tests/durability/flags.h"
#include "tests/durability/mutate.h"
#include "tests/support/status_matchers.h"

namespace attendant {
namespace {

constexpr std::int64_t kCount = 50000;

// Calls `decode` with mutations of the seeds, which it must take unchanged. It
// returns the encoding of what it made of them, or why it made nothing of them.
template <typename Decode>
void Fuzz(const std::vector<std::string>& seeds, Decode decode) {
  for (const std::string& seed : seeds) {
    const absl::StatusOr<std::string> encoded = decode(seed);
    ASSERT_OK(encoded);
    ASSERT_EQ(*encoded, seed);
  }
  const std::int64_t first = Flag("seed", 1);
  const std::int64_t count = Flag("count", Short(kCount));
  std::mt19937_64 random(static_cast<std::uint64_t>(first));
  std::int64_t accepted = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::string bytes = Mutate(seeds, random);
    const absl::StatusOr<std::string> encoded = decode(bytes);
    if (!encoded.ok()) {
      ASSERT_EQ(encoded.status().code(), absl::StatusCode::kDataLoss)
          << encoded.status() << ", seed " << first << ", mutation " << i;
      continue;
    }
    ++accepted;
    // What was read is what is written from then on.
    const absl::StatusOr<std::string> again = decode(*encoded);
    ASSERT_TRUE(again.ok() && *again == *encoded)
        << again.status() << ", seed " << first << ", mutation " << i;
  }
  // Mutations are neither all nonsense nor all harmless.
  EXPECT_LT(accepted, count);
}

TEST(CodecFuzzTest, Items) {
  const CatalogSchema schema = TestRecord().schema;
  std::vector<std::string> seeds;
  for (int i = 0; i < 12; ++i) {
    seeds.push_back(EncodeItem(TestItem(i)));
    seeds.push_back(EncodeStoredItem(TestItem(i), i + 1));
  }
  Fuzz(seeds, [&](const std::string& bytes) -> absl::StatusOr<std::string> {
    const absl::StatusOr<StoredItem> item = DecodeItem("id", bytes, schema);
    if (!item.ok()) return item.status();
    return item->sequence > 0 ? EncodeStoredItem(*item, item->sequence)
                              : EncodeItem(*item);
  });
}

TEST(CodecFuzzTest, CatalogRecords) {
  CatalogRecord plain = TestRecord();
  plain.schema = {};
  plain.schema.key_fields = {{.name = "key", .dim = 8192}};
  CatalogRecord model = TestRecord();
  model.schema.key_fields[0].model = {"model", 3};
  Fuzz({EncodeCatalogRecord(TestRecord()), EncodeCatalogRecord(plain),
        EncodeCatalogRecord(model)},
       [](const std::string& bytes) -> absl::StatusOr<std::string> {
         const absl::StatusOr<CatalogRecord> record =
             DecodeCatalogRecord("shop", bytes);
         if (!record.ok()) return record.status();
         return EncodeCatalogRecord(*record);
       });
}

TEST(CodecFuzzTest, Models) {
  ASSERT_OK(ArmFailPoint("skip_model_checksum=bug"));
  const ModelName name = {"model", 1};
  const std::string seed = EncodeModel({name,
                                        absl::FromUnixNanos(1),
                                        0.5,
                                        {BilinearForm{{2, 2, {1, 2, 3, 4}}}}});
  Fuzz({seed}, [&](const std::string& bytes) -> absl::StatusOr<std::string> {
    const absl::StatusOr<ModelRecord> record = DecodeModel(name, bytes);
    if (!record.ok()) return record.status();
    return EncodeModel(*record);
  });
  ASSERT_OK(ArmFailPoint(""));
}

TEST(CodecFuzzTest, SmallRecords) {
  Fuzz({EncodeAlias("shop", "shop-2")},
       [](const std::string& bytes) -> absl::StatusOr<std::string> {
         const absl::StatusOr<std::string> catalog = DecodeAlias("shop", bytes);
         if (!catalog.ok()) return catalog.status();
         return EncodeAlias("shop", *catalog);
       });
  Fuzz({EncodeLastVersion({"model", 7})},
       [](const std::string& bytes) -> absl::StatusOr<std::string> {
         const absl::StatusOr<std::int64_t> version =
             DecodeLastVersion("model", bytes);
         if (!version.ok()) return version.status();
         return EncodeLastVersion({"model", *version});
       });
  Fuzz({EncodeModelEntry({"model", 7})},
       [](const std::string& bytes) -> absl::StatusOr<std::string> {
         const absl::Status status = CheckModelEntry({"model", 7}, bytes);
         if (!status.ok()) return status;
         return bytes;
       });
}

TEST(CodecFuzzTest, TextEncoders) {
  const auto encoder = TextEncoder::Create(
      {{"alarm", "#al", "clock"}, {1, 2, 0.5f}, 2, {1, 2, 3, 4, 5, 6}});
  ASSERT_OK(encoder);
  Fuzz({encoder->Serialize()},
       [](const std::string& bytes) -> absl::StatusOr<std::string> {
         const absl::StatusOr<TextEncoder> decoded =
             TextEncoder::Deserialize(bytes);
         if (!decoded.ok()) return decoded.status();
         return decoded->Serialize();
       });
}

}  // namespace
}  // namespace attendant
