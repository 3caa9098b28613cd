#include "core/catalog/rows/row_table.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "absl/strings/str_cat.h"

namespace attendant {
namespace {

TEST(RowTableTest, FindsTheNewestRowBelowTheReadersEnd) {
  RowTable rows(0, 8);
  EXPECT_EQ(rows.Append("a", {}, {}), 0);
  EXPECT_EQ(rows.Append("b", {}, {}), 1);
  EXPECT_EQ(rows.Append("a", {}, {}), 2);
  EXPECT_EQ(rows.Find("a", 3, nullptr), 2);
  EXPECT_EQ(rows.Find("a", 2, nullptr), 0);
  EXPECT_EQ(rows.Find("b", 1, nullptr), -1);
  EXPECT_EQ(rows.Find("c", 3, nullptr), -1);
}

TEST(RowTableTest, DoesNotFindDeadRows) {
  RowTable rows(0, 8);
  rows.Append("a", {}, {});
  Bitmap dead(8);
  dead.Set(0);
  EXPECT_EQ(rows.Find("a", 1, &dead), -1);
  rows.Append("a", {}, {});
  EXPECT_EQ(rows.Find("a", 2, &dead), 1);
}

TEST(RowTableTest, FindsManyAsItFindsOne) {
  RowTable rows(0, 1000);
  for (int i = 0; i < 500; ++i) {
    rows.Append(absl::StrCat("an id that is not short ", i % 300), {}, {});
  }
  Bitmap dead(1000);
  dead.Set(7);
  dead.Set(350);
  std::vector<ItemId> ids;
  for (int i = 0; i < 333; ++i) {
    ids.push_back(absl::StrCat("an id that is not short ", i * 37 % 333));
  }
  for (const RowIndex row_end : {0, 100, 320, 500}) {
    for (const Bitmap* skipped : {static_cast<const Bitmap*>(nullptr),
                                  static_cast<const Bitmap*>(&dead)}) {
      std::vector<RowIndex> found(ids.size(), -7);
      rows.FindAll(ids, row_end, skipped, found.data());
      for (std::size_t i = 0; i < ids.size(); ++i) {
        EXPECT_EQ(found[i], rows.Find(ids[i], row_end, skipped)) << ids[i];
      }
    }
  }
}

TEST(RowTableTest, HoldsAFullCapacityOfIds) {
  RowTable rows(0, 1000);
  for (int i = 0; i < 1000; ++i) rows.Append(std::to_string(i), {}, {});
  for (int i = 0; i < 1000; ++i) {
    EXPECT_EQ(rows.Find(std::to_string(i), 1000, nullptr), i);
  }
}

// Short and long ids, over more than one chunk.
TEST(RowTableTest, KeepsIdsOfEverySize) {
  constexpr int kRows = 20000;
  RowTable rows(0, kRows);
  const auto id_of = [](int i) {
    const std::string digits = std::to_string(i);
    return digits + std::string(i % (129 - digits.size()), 'x');
  };
  for (int i = 0; i < kRows; ++i) rows.Append(id_of(i), {}, {});
  for (int i = 0; i < kRows; ++i) {
    ASSERT_EQ(rows.Id(i), id_of(i));
    ASSERT_EQ(rows.Find(id_of(i), kRows, nullptr), i);
  }
  EXPECT_EQ(rows.Find("x", kRows, nullptr), -1);
}

// Cost of an item apart from its keys and values: two bytes for the place of
// its id, 4/3 of a slot, and a 64th of three pointers.
TEST(RowTableTest, RowsTakeLittleMoreThanTheirIds) {
  constexpr int kRows = 64000;
  RowTable rows(0, kRows);
  for (int i = 0; i < kRows; ++i)
    rows.Append(std::to_string(100000 + i), {}, {});
  EXPECT_LE(rows.memory_bytes(), kRows * (6 + 2 + 11 + 1));
}

TEST(RowTableTest, KeepsValuesAndAttributes) {
  RowTable rows(2, 2);
  const std::vector<float> value = {3, 4};
  rows.Append("a", value, {{1, std::string("red")}});
  rows.Append("b", {}, {});
  ASSERT_NE(rows.ValueOf(0), nullptr);
  EXPECT_EQ(rows.ValueOf(0)[1], 4);
  EXPECT_EQ(rows.ValueOf(1), nullptr);
  EXPECT_EQ(std::get<std::string>(rows.AttributesOf(0)[0].second), "red");
  EXPECT_TRUE(rows.AttributesOf(1).empty());
}

TEST(RowTableTest, RowsWithoutAValueTakeNoMemoryForOne) {
  constexpr std::int64_t kDim = 8192;
  RowTable rows(kDim, 1000);
  const std::int64_t empty = rows.memory().values;
  rows.Append("a", {}, {});
  EXPECT_EQ(rows.memory().values, empty);
  const std::vector<float> value(kDim, 1);
  rows.Append("b", value, {});
  const std::int64_t one = rows.memory().values;
  EXPECT_NEAR(one - empty, kDim * 4, 5000) << "a page and what rows have one";
  for (int i = 0; i < 500; ++i) rows.Append(std::to_string(i), {}, {});
  rows.Append("c", value, {});
  EXPECT_NEAR(rows.memory().values - one, kDim * 4, 10000);
}

TEST(RowTableTest, HashOfAnIdIsTheSameInEveryProcess) {
  RowTable rows(0, 4);
  rows.Append("a", {}, {});
  rows.Append("item-000001", {}, {});
  rows.Append("a", {}, {});
  // XXH3 of 64 bits without a seed, as xxhsum -H3 prints it.
  EXPECT_EQ(rows.IdHash(0), 0xe6c632b61e964e1fu);
  EXPECT_EQ(rows.IdHash(2), rows.IdHash(0));
  EXPECT_NE(rows.IdHash(1), rows.IdHash(0));
}

TEST(RowTableTest, KeepsOpaqueValues) {
  RowTable rows(0, 2);
  const std::int64_t before = rows.memory_bytes();
  const auto bytes =
      std::make_shared<const std::string>(std::string(1000, '\0'));
  rows.Append("a", {}, {}, bytes);
  EXPECT_GE(rows.memory_bytes() - before, 1000);
  rows.Append("b", {}, {});
  EXPECT_EQ(rows.OpaqueValueOf(0), bytes);
  EXPECT_EQ(rows.OpaqueValueOf(1), nullptr);
}

TEST(RowTableTest, ReadersFindPublishedRowsWhileTheWriterAppends) {
  constexpr int kRows = 4000;
  RowTable rows(1, kRows);
  std::atomic<RowIndex> published = 0;
  std::thread reader([&] {
    RowIndex end = 0;
    while (end < kRows) {
      end = published.load(std::memory_order_acquire);
      if (end == 0) continue;
      const RowIndex row = end - 1;
      ASSERT_EQ(rows.Find(std::to_string(row), end, nullptr), row);
      ASSERT_EQ(*rows.ValueOf(row), static_cast<float>(row));
    }
  });
  for (RowIndex row = 0; row < kRows; ++row) {
    const float value = static_cast<float>(row);
    rows.Append(std::to_string(row), std::span(&value, 1), {});
    published.store(row + 1, std::memory_order_release);
  }
  reader.join();
}

TEST(RowTableTest, EachReaderFindsTheLatestRowThatItSees) {
  RowTable rows(0, 8);
  for (int i = 0; i < 4; ++i) rows.Append("a", {}, {}, nullptr);
  for (RowIndex end = 1; end <= 4; ++end)
    EXPECT_EQ(rows.Find("a", end, nullptr), end - 1);
  EXPECT_LT(rows.Find("a", 0, nullptr), 0);
}
}  // namespace
}  // namespace attendant
