#include "core/storage/records/item_codec.h"

#include <cmath>
#include <limits>
#include <memory>
#include <string>

#include "tests/core/storage/test_store.h"
#include "tests/support/status_matchers.h"

namespace attendant {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// Decodes bytes in a heap block of their exact size, so that the address
// sanitizer sees a read past the end.
absl::StatusOr<Item> DecodeExactly(const std::string& bytes) {
  const std::unique_ptr<char[]> copy(new char[bytes.size()]);
  std::copy(bytes.begin(), bytes.end(), copy.get());
  return DecodeItem("item", absl::string_view(copy.get(), bytes.size()),
                    TestRecord().schema);
}

TEST(ItemCodecTest, DecodesWhatItEncoded) {
  const CatalogSchema schema = TestRecord().schema;
  for (int i = 0; i < 6; ++i) {
    const Item item = TestItem(i);
    ASSERT_OK_AND_ASSIGN(const Item decoded,
                         DecodeItem(item.id, EncodeItem(item), schema));
    EXPECT_EQ(decoded, item);
  }
}

TEST(ItemCodecTest, KeepsExtremes) {
  Item item = TestItem(1);
  item.keys[0] = {std::numeric_limits<float>::max(),
                  std::numeric_limits<float>::denorm_min(), -0.0f, 0.1f};
  item.value.clear();
  item.attributes = {
      {1, std::numeric_limits<std::int64_t>::min()},
      {2, -std::numeric_limits<double>::denorm_min()},
      {3, std::string("\0\xf0\x9f\x8c\x8d", 5)},
      {4, std::vector<std::string>{}},
      {5, absl::FromUnixSeconds(-62135596800) + absl::Nanoseconds(999999999)}};
  ASSERT_OK_AND_ASSIGN(const Item decoded, DecodeItem(item.id, EncodeItem(item),
                                                      TestRecord().schema));
  EXPECT_EQ(decoded, item);
  EXPECT_TRUE(std::signbit(decoded.keys[0][2]));
}

// The stored form of version 1, byte by byte: changing it requires a new
// version.
TEST(ItemCodecTest, BytesOfVersionOneAreFixed) {
  CatalogSchema schema;
  schema.key_fields.resize(2);
  schema.key_fields[0].dim = 1;
  schema.key_fields[1].dim = 3;
  schema.attributes = {{"a", AttributeType::kBool},
                       {"b", AttributeType::kString}};
  Item item;
  item.id = "x";
  item.keys = {{1.0f}, {}};
  item.attributes = {{0, true}, {1, std::string("hi")}};
  using std::string_literals::operator""s;
  EXPECT_EQ(EncodeItem(item),
            "\x01"                     // version
            "\1\0\0\0\0\0\x80\x3f"     // first key
            "\0\0\0\0"                 // second key
            "\0\0\0\0"                 // value
            "\2\0\0\0"                 // attributes
            "\0\0\0\0\1\1"             // a = true
            "\1\0\0\0\4\2\0\0\0hi"s);  // b = "hi"
}

// Version 2 ends with an opaque value, which version 1 does not have.
TEST(ItemCodecTest, BytesOfVersionTwoAreFixed) {
  CatalogSchema schema;
  schema.key_fields.resize(1);
  schema.key_fields[0].dim = 1;
  Item item;
  item.id = "x";
  item.keys = {{1.0f}};
  item.opaque_value = std::string("\0\xff", 2);
  using std::string_literals::operator""s;
  const std::string bytes =
      "\x02"                  // version
      "\1\0\0\0\0\0\x80\x3f"  // key
      "\0\0\0\0"              // value
      "\0\0\0\0"              // attributes
      "\2\0\0\0\0\xff"s;      // opaque value
  EXPECT_EQ(EncodeItem(item), bytes);
  ASSERT_OK_AND_ASSIGN(const Item decoded, DecodeItem("x", bytes, schema));
  EXPECT_EQ(decoded, item);
}

TEST(ItemCodecTest, ReadsWhatVersionOneWrote) {
  CatalogSchema schema;
  schema.key_fields.resize(1);
  schema.key_fields[0].dim = 1;
  using std::string_literals::operator""s;
  ASSERT_OK_AND_ASSIGN(
      const Item item,
      DecodeItem("x", "\1\1\0\0\0\0\0\x80\x3f\0\0\0\0\0\0\0\0"s, schema));
  EXPECT_EQ(item.keys[0], std::vector<float>{1});
  EXPECT_EQ(item.opaque_value, "");
}

TEST(ItemCodecTest, KeepsOpaqueBytesOfAnySize) {
  Item item = TestItem(1);
  for (const std::size_t size : {1, 255, 256, 65535, 65536}) {
    item.opaque_value.assign(size, '\0');
    item.opaque_value.back() = '\x80';
    ASSERT_OK_AND_ASSIGN(
        const Item decoded,
        DecodeItem(item.id, EncodeItem(item), TestRecord().schema));
    EXPECT_EQ(decoded, item);
  }
}

TEST(ItemCodecTest, EveryTruncationIsDataLoss) {
  const std::string bytes = EncodeItem(TestItem(6));
  ASSERT_OK(DecodeExactly(bytes));
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_THAT(DecodeExactly(bytes.substr(0, size)),
                StatusIs(absl::StatusCode::kDataLoss, HasSubstr("\"item\"")))
        << size;
  }
  EXPECT_THAT(DecodeExactly(bytes + '\0'),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("more bytes")));
}

// A changed byte is detected, or yields another valid item.
TEST(ItemCodecTest, NoChangedByteIsMisread) {
  int refused = 0;
  for (const int of : {1, 6}) {  // of both versions
    const std::string bytes = EncodeItem(TestItem(of));
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      for (int value = 0; value < 256; ++value) {
        std::string changed = bytes;
        changed[i] = static_cast<char>(value);
        if (changed == bytes) continue;
        const absl::StatusOr<Item> item = DecodeExactly(changed);
        if (item.ok()) {
          EXPECT_EQ(EncodeItem(*item), changed) << i << " " << value;
        } else {
          EXPECT_EQ(item.status().code(), absl::StatusCode::kDataLoss);
          ++refused;
        }
      }
    }
  }
  EXPECT_GT(refused, 0);
}

TEST(ItemCodecTest, AnotherVersionIsNamed) {
  std::string bytes = EncodeItem(TestItem(1));
  bytes[0] = 4;
  EXPECT_THAT(DecodeExactly(bytes), StatusIs(absl::StatusCode::kDataLoss,
                                             AllOf(HasSubstr("version 4"),
                                                   HasSubstr("want 1 to 3"))));
}

TEST(ItemCodecTest, AnotherSchemaIsRefused) {
  CatalogSchema schema = TestRecord().schema;
  schema.key_fields[0].dim = 5;
  EXPECT_THAT(DecodeItem("item", EncodeItem(TestItem(1)), schema),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("keys[events]")));
}

// A count of four thousand million strings in a few bytes must allocate
// nothing.
TEST(ItemCodecTest, LyingCountsAreRefusedBeforeTheyAreBelieved) {
  Item item = TestItem(1);
  item.attributes = {{4, std::vector<std::string>{}}};
  std::string bytes = EncodeItem(item);
  bytes.replace(bytes.size() - 4, 4, "\xff\xff\xff\xff");
  EXPECT_THAT(DecodeExactly(bytes),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("an attribute")));
}

TEST(ItemCodecTest, AStoredItemKeepsItsSequence) {
  const CatalogRecord record = TestRecord();
  for (const std::int64_t sequence : {1L, 1L << 40}) {
    ASSERT_OK_AND_ASSIGN(
        const StoredItem decoded,
        DecodeItem(TestId(2), EncodeStoredItem(TestItem(2), sequence),
                   record.schema));
    EXPECT_EQ(decoded, (StoredItem{TestItem(2), sequence}));
  }
  EXPECT_EQ(EncodeStoredItem(TestItem(2), 7),
            std::string("\3\7\0\0\0\0\0\0\0", 9) + EncodeItem(TestItem(2)));
  // An item stored before items had sequences.
  ASSERT_OK_AND_ASSIGN(
      const StoredItem old,
      DecodeItem(TestId(2), EncodeItem(TestItem(2)), record.schema));
  EXPECT_EQ(old, (StoredItem{TestItem(2), 0}));
}

TEST(ItemCodecTest, ADamagedSequenceIsDataLoss) {
  const CatalogRecord record = TestRecord();
  const std::string bytes = EncodeStoredItem(TestItem(2), 7);
  for (const std::string& damaged :
       {bytes.substr(0, 1), bytes.substr(0, 8), bytes.substr(0, 9),
        bytes.substr(0, 1) + bytes,  // twice
        EncodeStoredItem(TestItem(2), 0), EncodeStoredItem(TestItem(2), -1)}) {
    EXPECT_THAT(DecodeItem(TestId(2), damaged, record.schema),
                StatusIs(absl::StatusCode::kDataLoss, ::testing::_));
  }
}

TEST(ItemCodecTest, AttributesHaveTheSchemasPositionsAndTypes) {
  const CatalogSchema schema = TestRecord().schema;
  const auto can_read = [&](const Attributes& attributes) {
    std::string bytes;
    AppendAttributes(attributes, bytes);
    ByteReader reader(bytes);
    Attributes read;
    return ReadAttributes(schema, reader, read) && read == attributes;
  };
  EXPECT_TRUE(can_read({{0, true}, {1, std::int64_t{5}}}));
  EXPECT_FALSE(can_read({{0, std::int64_t{5}}}));
  EXPECT_FALSE(can_read({{4, std::string("no list")}}));
  EXPECT_FALSE(can_read({{1, std::int64_t{5}}, {0, true}}));
  EXPECT_FALSE(can_read({{1, std::int64_t{5}}, {1, std::int64_t{5}}}));
  EXPECT_FALSE(can_read({{6, true}}));
}

}  // namespace
}  // namespace attendant
