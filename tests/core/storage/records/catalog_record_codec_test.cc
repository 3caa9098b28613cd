#include "core/storage/records/catalog_record_codec.h"

#include <string>

#include "tests/core/storage/test_store.h"
#include "tests/support/status_matchers.h"

namespace attendant {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(CatalogRecordCodecTest, DecodesWhatItEncoded) {
  CatalogRecord record = TestRecord();
  // Has no short decimal representation.
  record.schema.key_fields[1].temperature = 1.0 / 3;
  ASSERT_OK_AND_ASSIGN(
      const CatalogRecord decoded,
      DecodeCatalogRecord(record.name, EncodeCatalogRecord(record)));
  EXPECT_EQ(decoded, record);
}

// Records from before the choice existed, and records that did not make it.
TEST(CatalogRecordCodecTest, KeysAreInMemoryUnlessTheRecordSaysOtherwise) {
  CatalogRecord record = TestRecord();
  const std::string before = EncodeCatalogRecord(record);
  EXPECT_EQ(before.find("keys_on_disk"), std::string::npos);
  record.schema.key_fields[0].index_kind = IndexKind::kPq;
  record.schema.key_fields[0].keys_on_disk = true;
  std::string text = EncodeCatalogRecord(record);
  ASSERT_OK_AND_ASSIGN(const CatalogRecord decoded,
                       DecodeCatalogRecord(record.name, text));
  EXPECT_EQ(decoded, record);
  EXPECT_FALSE(decoded.schema.key_fields[1].keys_on_disk);
  const std::size_t at = text.find("\"keys_on_disk\":true");
  ASSERT_NE(at, std::string::npos);
  text.replace(at + 15, 4, "1");
  EXPECT_THAT(DecodeCatalogRecord(record.name, text),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("shop")));
}

// Truncated text, or text with a member of another type, is refused; nothing
// throws.
TEST(CatalogRecordCodecTest, DamagedTextIsDataLoss) {
  const std::string text = EncodeCatalogRecord(TestRecord());
  for (std::size_t size = 0; size < text.size(); ++size) {
    EXPECT_THAT(DecodeCatalogRecord("shop", text.substr(0, size)),
                StatusIs(absl::StatusCode::kDataLoss, HasSubstr("\"shop\"")));
  }
  for (const std::string other : {"null", "7", "{}", "[]", "\"text\""}) {
    EXPECT_THAT(DecodeCatalogRecord("shop", other),
                StatusIs(absl::StatusCode::kDataLoss, HasSubstr("\"shop\"")));
  }
  int refused = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    std::string changed = text;
    changed[i] = static_cast<char>(changed[i] ^ 0x40);
    const auto record = DecodeCatalogRecord("shop", changed);
    if (record.ok()) continue;
    EXPECT_EQ(record.status().code(), absl::StatusCode::kDataLoss);
    ++refused;
  }
  EXPECT_GT(refused, static_cast<int>(text.size() / 2));
}

TEST(CatalogRecordCodecTest, AnotherVersionIsNamed) {
  EXPECT_THAT(DecodeCatalogRecord("shop", R"({"version": 2})"),
              StatusIs(absl::StatusCode::kDataLoss,
                       AllOf(HasSubstr("version 2"), HasSubstr("want 1"))));
}

TEST(CatalogRecordCodecTest, UidIsSixteenHexDigits) {
  EXPECT_TRUE(IsCatalogUid("0123456789abcdef"));
  EXPECT_FALSE(IsCatalogUid("0123456789abcde"));
  EXPECT_FALSE(IsCatalogUid("0123456789abcdeF"));
  EXPECT_FALSE(IsCatalogUid("0123456789abcd/."));
}

}  // namespace
}  // namespace attendant
