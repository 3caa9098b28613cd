#include "core/storage/records/alias_codec.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/support/status_matchers.h"

namespace attendant {
namespace {

using ::testing::HasSubstr;

TEST(AliasCodecTest, ComesBackAsItWas) {
  ASSERT_OK_AND_ASSIGN(const std::string catalog,
                       DecodeAlias("shop", EncodeAlias("shop", "blue-1")));
  EXPECT_EQ(catalog, "blue-1");
}

TEST(AliasCodecTest, EveryOtherByteIsDamage) {
  const std::string bytes = EncodeAlias("shop", "blue");
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    std::string damaged = bytes;
    damaged[i] = static_cast<char>(damaged[i] ^ 1);
    EXPECT_THAT(
        DecodeAlias("shop", damaged),
        StatusIs(absl::StatusCode::kDataLoss, HasSubstr("alias \"shop\"")))
        << i;
    EXPECT_THAT(DecodeAlias("shop", bytes.substr(0, i)),
                StatusIs(absl::StatusCode::kDataLoss, HasSubstr("damaged")))
        << i;
  }
  EXPECT_THAT(DecodeAlias("shop", bytes + "x"),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("damaged")));
}

TEST(AliasCodecTest, AnEntryOfAnotherAliasIsDamage) {
  EXPECT_THAT(DecodeAlias("store", EncodeAlias("shop", "blue")),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("store")));
}

TEST(AliasCodecTest, NamesThatAreNoneAreDamage) {
  EXPECT_THAT(DecodeAlias("shop", EncodeAlias("shop", "../blue")),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("shop")));
}

}  // namespace
}  // namespace attendant
