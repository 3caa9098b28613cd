#include "core/catalog/rows/attribute_columns.h"

#include <gmock/gmock.h>

#include <atomic>
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <thread>

#include "absl/strings/str_cat.h"

namespace attendant {
namespace {

using ::testing::ElementsAre;
using Texts = std::vector<std::string>;

// Returns a seeded random value of the type, including some edge cases.
AttributeValue RandomValue(AttributeType type, std::mt19937_64& random) {
  switch (type) {
    case AttributeType::kBool:
      return random() % 2 == 0;
    case AttributeType::kInt64:
      return static_cast<std::int64_t>(random());
    case AttributeType::kDouble:
      return static_cast<double>(random()) / 3;
    case AttributeType::kString:
      return absl::StrCat("text", random() % 300,
                          std::string(random() % 40, 'x'));
    case AttributeType::kTimestamp:
      return absl::FromUnixMicros(static_cast<std::int64_t>(random() >> 12) -
                                  (std::int64_t{1} << 51));
    case AttributeType::kStringList:
      break;
  }
  Texts texts;
  for (std::uint64_t i = random() % 4; i > 0; --i) {
    texts.push_back(absl::StrCat("tag", random() % 9));
  }
  return texts;
}

TEST(AttributeColumnsTest, GiveBackWhatRowsWereGiven) {
  constexpr int kRows = 3000;
  std::mt19937_64 random(5);
  AttributeColumns columns(kRows);
  std::vector<Attributes> expected;
  for (RowIndex row = 0; row < kRows; ++row) {
    Attributes attributes;
    for (int attribute = 0; attribute < 12; ++attribute) {
      // The last attributes appear late, or never.
      if (random() % 3 == 0 || row < 200 * attribute - 1000) continue;
      attributes.emplace_back(
          attribute,
          RandomValue(static_cast<AttributeType>(attribute % 6 + 1), random));
    }
    columns.Append(row, attributes);
    expected.push_back(attributes);
  }
  for (RowIndex row = 0; row < kRows; ++row) {
    ASSERT_EQ(columns.AttributesOf(row), expected[row]) << row;
  }
  EXPECT_EQ(columns.column(200), nullptr);
}

TEST(AttributeColumnsTest, GiveBackWhatIsWanted) {
  AttributeColumns columns(1);
  columns.Append(0, {{0, true}, {2, 0.5}, {3, std::string("text")}});
  const auto of = [&](const std::vector<bool>& wanted) {
    return columns.AttributesOf(0, &wanted);
  };
  const Attributes number = {{2, 0.5}};
  EXPECT_EQ(of({false, true, true, false, true}), number);
  EXPECT_EQ(of({false, false, true}), number);  // no more is asked for
  EXPECT_EQ(of({}), Attributes());
}

TEST(AttributeColumnsTest, KeepExtremes) {
  const absl::Time first = absl::FromUnixMicros(-62135596800000000);
  const absl::Time last =
      absl::FromUnixSeconds(253402300799) + absl::Nanoseconds(999999999);
  const Attributes low = {{0, std::numeric_limits<std::int64_t>::min()},
                          {1, -std::numeric_limits<double>::max()},
                          {2, first},
                          {3, std::string()},
                          {4, Texts()}};
  const Attributes high = {{0, std::numeric_limits<std::int64_t>::max()},
                           {1, std::numeric_limits<double>::denorm_min()},
                           {2, last},
                           {3, std::string("a\0b", 3)},
                           {4, Texts{"", "b", ""}}};
  AttributeColumns columns(2);
  columns.Append(0, low);
  columns.Append(1, high);
  EXPECT_EQ(columns.AttributesOf(0), low);
  EXPECT_EQ(columns.AttributesOf(1), high);
}

TEST(AttributeColumnsTest, ReadNumbersInAnyOrder) {
  AttributeColumns columns(4);
  columns.Append(0, {{0, std::int64_t{7}}, {1, 0.5}});
  columns.Append(1, {{1, -2.0}, {2, absl::FromUnixMillis(-1500)}});
  columns.Append(2, {});
  const RowIndex rows[] = {2, 1, 0, 1};
  std::vector<double> numbers(4);
  columns.ReadNumbers(0, rows, 4, 0, numbers.data());
  EXPECT_THAT(numbers, ElementsAre(0, 0, 7, 0));
  columns.ReadNumbers(1, rows, 4, -1, numbers.data());
  EXPECT_THAT(numbers, ElementsAre(-1, -2, 0.5, -2));
  columns.ReadNumbers(2, rows, 4, 9, numbers.data());
  EXPECT_THAT(numbers, ElementsAre(9, -1.5, 9, -1.5));
  // No row has this attribute.
  columns.ReadNumbers(3, rows, 4, 9, numbers.data());
  EXPECT_THAT(numbers, ElementsAre(9, 9, 9, 9));
}

TEST(AttributeColumnsTest, StoreADistinctTextOnce) {
  const std::string text(1000, 'x');
  AttributeColumns columns(10000);
  columns.Append(0, {{0, text}, {1, Texts{text}}});
  const std::int64_t before = columns.memory_bytes();
  for (RowIndex row = 1; row < 10000; ++row) {
    columns.Append(row, {{0, text}, {1, Texts{text}}});
  }
  // 4 bytes for the code; 12 for the list and 8 for its entry.
  EXPECT_EQ(columns.memory_bytes() - before, 9999 * 24);
}

TEST(AttributeColumnsTest, ReadersSeePublishedRowsWhileTheWriterAppends) {
  constexpr int kRows = 4000;
  AttributeColumns columns(kRows);
  const auto attributes_of = [](RowIndex row) {
    return Attributes{
        {0, row % 2 == 0},
        {1, std::int64_t{row}},
        {3, absl::StrCat("text", row)},
        {4, Texts{absl::StrCat("a", row), absl::StrCat(row % 3)}}};
  };
  std::atomic<RowIndex> published = 0;
  std::thread reader([&] {
    RowIndex end = 0;
    while (end < kRows) {
      end = published.load(std::memory_order_acquire);
      if (end == 0) continue;
      const RowIndex row = end - 1;
      ASSERT_EQ(columns.AttributesOf(row), attributes_of(row));
      ASSERT_EQ(columns.AttributesOf(row / 2), attributes_of(row / 2));
      const TextDictionary& texts = columns.column(3)->texts;
      ASSERT_EQ(texts.Find(absl::StrCat("text", row)), row);
      // Every entry below size() may be read.
      ASSERT_FALSE(texts.Text(texts.size() - 1).empty());
      ASSERT_LT(texts.Find("none"), 0);
    }
  });
  for (RowIndex row = 0; row < kRows; ++row) {
    columns.Append(row, attributes_of(row));
    published.store(row + 1, std::memory_order_release);
  }
  reader.join();
}

// A free slot that is filled while a reader looks at it holds another text.
TEST(TextDictionaryTest, ATextThatIsNotThereIsNeverFound) {
  // Small dictionaries, so that the same slot comes up soon.
  constexpr int kDictionaries = 5000;
  constexpr int kTexts = 14;
  std::vector<TextDictionary> dictionaries(kDictionaries);
  std::atomic<int> current = 0;
  std::thread reader([&] {
    for (int i = current.load(); i < kDictionaries; i = current.load()) {
      ASSERT_EQ(dictionaries[i].Find("none"), -1);
    }
  });
  for (TextDictionary& texts : dictionaries) {
    for (int i = 0; i < kTexts; ++i) texts.Intern(std::to_string(i));
    current.fetch_add(1);
  }
  reader.join();
}

TEST(TextDictionaryTest, NumbersTextsInTheOrderTheyCome) {
  TextDictionary texts;
  EXPECT_EQ(texts.Find(""), -1);
  EXPECT_EQ(texts.Intern("b"), 0);
  EXPECT_EQ(texts.Intern(""), 1);
  EXPECT_EQ(texts.Intern("b"), 0);
  for (int i = 0; i < 5000; ++i) {
    EXPECT_EQ(texts.Intern(std::to_string(i)), i + 2);
  }
  for (int i = 0; i < 5000; ++i) {
    EXPECT_EQ(texts.Find(std::to_string(i)), i + 2);
    EXPECT_EQ(texts.Text(i + 2), std::to_string(i));
  }
  EXPECT_EQ(texts.size(), 5002);
}

}  // namespace
}  // namespace attendant
