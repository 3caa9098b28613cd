#include "core/base/touched_pages.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdint>

namespace attendant {
namespace {

constexpr std::int64_t kHuge = std::int64_t{2} << 20;

// An address that is never dereferenced.
const void* At(std::int64_t address) {
  return reinterpret_cast<const void*>(address);
}

TEST(TouchedPagesTest, WhatIsWrittenWithoutGapsIsAllThatIsTaken) {
  TouchedPages pages(At(kHuge + 64));
  EXPECT_EQ(pages.Write(At(kHuge + 64), 100), 100);
  EXPECT_EQ(pages.Write(At(kHuge + 164), 1000000), 1000000);
}

TEST(TouchedPagesTest, OnlyWholePagesBetweenTakeNothing) {
  const std::int64_t page = sysconf(_SC_PAGESIZE);
  TouchedPages pages(At(kHuge));
  EXPECT_EQ(pages.Write(At(kHuge + 10), 10), 20);
  // To the end of the first page, and from the start of the fourth.
  EXPECT_EQ(pages.Write(At(kHuge + 3 * page + 5), 10), page - 20 + 15);
  // Less than a page lies between the writes.
  EXPECT_EQ(pages.Write(At(kHuge + 4 * page + 5), 10), page);
}

TEST(TouchedPagesTest, RowsBeforeTheFirstTakeNothing) {
  TouchedPages pages(At(kHuge));
  EXPECT_EQ(pages.Write(At(2 * kHuge), 10), 10);
}

TEST(TouchedPagesTest, HugePagesAreTakenWhole) {
  const std::int64_t page = sysconf(_SC_PAGESIZE);
  // The first whole huge page begins at 2 kHuge.
  TouchedPages pages(At(kHuge), At(kHuge + page));
  EXPECT_EQ(pages.Write(At(kHuge + 4 * page), 10), 10);
  EXPECT_EQ(pages.Write(At(2 * kHuge + 100), 10), page - 10 + 110);
  EXPECT_EQ(pages.Write(At(3 * kHuge - 10), 10), kHuge - 110);
  EXPECT_EQ(pages.Write(At(5 * kHuge + 7), 10), 17);
}

}  // namespace
}  // namespace attendant
