#include "core/base/byte_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

namespace attendant {
namespace {

using ::testing::ElementsAre;

// 1.5f and -2.0f.
const std::string& Floats() {
  static const auto& bytes =
      *new std::string("\x00\x00\xc0\x3f\x00\x00\x00\xc0", 8);
  return bytes;
}

TEST(ByteReaderTest, ReadsLittleEndianFromTheFront) {
  const std::string bytes = "\x01\x02\x03" + ("ab" + Floats());
  ByteReader reader(bytes);
  std::uint16_t number = 0;
  std::uint8_t byte = 0;
  std::string text;
  std::vector<float> floats;
  ASSERT_TRUE(reader.Read(number) && reader.Read(byte));
  EXPECT_EQ(number, 0x0201);
  EXPECT_EQ(byte, 3);
  ASSERT_TRUE(reader.ReadText(2, text));
  EXPECT_EQ(text, "ab");
  ASSERT_TRUE(reader.ReadFloats(2, floats));
  EXPECT_THAT(floats, ElementsAre(1.5f, -2.0f));
  EXPECT_EQ(reader.left(), 0u);
  EXPECT_TRUE(reader.ReadText(0, text) && reader.ReadFloats(0, floats));
}

TEST(ByteReaderTest, ReadsWhatAppendNumberWrote) {
  std::string bytes;
  AppendNumber(std::uint16_t{0x0201}, bytes);
  AppendNumber(-1.5, bytes);
  EXPECT_EQ(bytes.substr(0, 2), "\x01\x02");
  ByteReader reader(bytes);
  std::uint16_t first = 0;
  double second = 0;
  ASSERT_TRUE(reader.Read(first) && reader.Read(second));
  EXPECT_EQ(first, 0x0201);
  EXPECT_EQ(second, -1.5);
  EXPECT_EQ(reader.left(), 0u);
}

TEST(SortingBytesTest, SortAsTheirNumbersDo) {
  std::string last;
  for (const std::int64_t number :
       {std::int64_t{0}, std::int64_t{1}, std::int64_t{255}, std::int64_t{256},
        std::int64_t{1} << 40, std::numeric_limits<std::int64_t>::max()}) {
    std::string bytes;
    AppendSorting(number, bytes);
    EXPECT_EQ(bytes.size(), 8u);
    EXPECT_LT(last, bytes);
    EXPECT_EQ(ReadSorting(bytes), number);
    last = bytes;
  }
}

TEST(ByteReaderTest, ReadsNothingWhereTooLittleIsLeft) {
  ByteReader reader(absl::string_view(Floats()).substr(1));
  std::uint64_t number = 5;
  std::string text = "before";
  std::vector<float> floats = {7};
  EXPECT_FALSE(reader.Read(number));
  EXPECT_FALSE(reader.ReadText(8, text));
  EXPECT_FALSE(
      reader.ReadText(std::numeric_limits<std::uint64_t>::max(), text));
  // A count whose size in bytes overflows is too large as well.
  for (const std::uint64_t count :
       {std::uint64_t{2}, std::uint64_t{1} << 62,
        std::numeric_limits<std::uint64_t>::max()}) {
    EXPECT_FALSE(reader.ReadFloats(count, floats));
  }
  EXPECT_EQ(number, 5u);
  EXPECT_EQ(text, "before");
  EXPECT_THAT(floats, ElementsAre(7));
  EXPECT_EQ(reader.left(), 7u);
}

}  // namespace
}  // namespace attendant
