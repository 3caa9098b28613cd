#include "core/base/byte_stream.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/support/status_matchers.h"
#include "tests/support/string_stream.h"

namespace attendant {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(ByteStreamTest, ReadsWhatWasPut) {
  StringSink sink;
  sink.Put(std::int64_t{-5});
  sink.Put(true);
  sink.PutText("text");
  sink.PutArray(std::span<const float>(std::vector<float>{1, 2}));
  ASSERT_OK(sink.status());
  StringSource source(sink.bytes);
  EXPECT_EQ(source.Get<std::int64_t>(), -5);
  EXPECT_TRUE(source.Get<bool>());
  EXPECT_EQ(source.GetText(), "text");
  EXPECT_THAT(source.GetArray<std::vector<float>>(), ElementsAre(1, 2));
  EXPECT_OK(source.status());
  EXPECT_EQ(source.left(), 0u);
}

TEST(ByteStreamTest, ABoolIsZeroOrOne) {
  StringSource source(std::string("\x00\x01\x02\x01", 4));
  EXPECT_FALSE(source.Get<bool>());
  EXPECT_TRUE(source.Get<bool>());
  EXPECT_OK(source.status());
  EXPECT_FALSE(source.Get<bool>());
  EXPECT_TRUE(absl::IsDataLoss(source.status()));
  // The error stays.
  EXPECT_FALSE(source.Get<bool>());
}

TEST(ByteStreamTest, NothingIsLongerThanWhatIsLeft) {
  StringSink sink;
  sink.Put(~std::uint64_t{0});
  StringSource text(sink.bytes);
  EXPECT_THAT(text.GetText(), IsEmpty());
  EXPECT_TRUE(absl::IsDataLoss(text.status()));
  StringSource array(sink.bytes);
  EXPECT_THAT(array.GetArray<std::vector<double>>(), IsEmpty());
  EXPECT_TRUE(absl::IsDataLoss(array.status()));
  StringSource number("1234");
  EXPECT_EQ(number.Get<std::int64_t>(), 0);
  EXPECT_TRUE(absl::IsDataLoss(number.status()));
}

}  // namespace
}  // namespace attendant
