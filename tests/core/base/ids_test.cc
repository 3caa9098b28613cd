#include "core/base/ids.h"

#include <string>

#include "core/base/status.h"
#include "tests/support/status_matchers.h"

namespace attendant {
namespace {

using ::testing::HasSubstr;
using ::testing::Optional;

// First and last code point of each row of Unicode 15, table 3-7.
TEST(IdsTest, WellFormedTextIsAccepted) {
  for (const std::string text :
       {"", "a", "\x7f", "\xc2\x80", "\xdf\xbf", "\xe0\xa0\x80", "\xed\x9f\xbf",
        "\xee\x80\x80", "\xef\xbf\xbd", "\xf0\x90\x80\x80", "\xf3\xbf\xbf\xbf",
        "\xf4\x8f\xbf\xbf", "a\xc3\xa4z\xf0\x9f\x98\x80"}) {
    EXPECT_TRUE(IsValidUtf8(text)) << text;
  }
}

TEST(IdsTest, MalformedTextIsRefused) {
  for (const std::string text :
       {"\x80",              // a continuation on its own
        "\xc3",              // cut off
        "\xe2\x82",          // cut off
        "\xf0\x9f\x98",      // cut off
        "\xc3(",             // no continuation
        "\xc0\x80",          // overlong NUL
        "\xc1\xbf",          // overlong
        "\xe0\x9f\xbf",      // overlong
        "\xf0\x8f\xbf\xbf",  // overlong
        "\xed\xa0\x80",      // a surrogate
        "\xf4\x90\x80\x80",  // past U+10FFFF
        "\xf5\x80\x80\x80", "\xfe", "\xff", "ok\xff"}) {
    EXPECT_FALSE(IsValidUtf8(text)) << text;
  }
}

TEST(IdsTest, ItemIdHasOneTo128Bytes) {
  EXPECT_OK(ValidateItemId("a", "id"));
  EXPECT_OK(ValidateItemId(std::string(128, 'a'), "id"));
  EXPECT_OK(ValidateItemId("\xc3\xa4 b/c", "id"));
  const absl::Status empty = ValidateItemId("", "ids[2]");
  EXPECT_THAT(empty, StatusIs(absl::StatusCode::kInvalidArgument,
                              "ids[2]: got 0 bytes, want 1 to 128 bytes"));
  EXPECT_THAT(FieldOf(empty), Optional(std::string("ids[2]")));
  EXPECT_THAT(
      ValidateItemId(std::string(129, 'a'), "id"),
      StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("129 bytes")));
}

TEST(IdsTest, LowerHexIsDigitsAndLettersUpToF) {
  EXPECT_TRUE(IsLowerHex("0123456789abcdef"));
  for (const char* const text : {"A", "g", "0x1", " ", "-1"}) {
    EXPECT_FALSE(IsLowerHex(text)) << text;
  }
}

TEST(IdsTest, ItemIdIsTextWithoutNul) {
  EXPECT_THAT(ValidateItemId("\xff", "id"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "id: got malformed text, want UTF-8 without NUL"));
  EXPECT_THAT(ValidateItemId(absl::string_view("a\0b", 3), "id"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "id: got malformed text, want UTF-8 without NUL"));
}

}  // namespace
}  // namespace attendant
