#include "core/base/aligned_buffer.h"

#include <gmock/gmock.h>

#include <cstdint>
#include <numeric>
#include <utility>

namespace attendant {
namespace {

TEST(AlignedBufferTest, BeginsAtACacheLine) {
  for (const std::size_t size : {1, 15, 16, 17, 1000}) {
    AlignedBuffer<float> buffer(size);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(buffer.data()) % 64, 0u);
    EXPECT_EQ(buffer.size(), size);
    EXPECT_EQ(buffer.span().size(), size);
    // All of it may be written.
    std::iota(buffer.span().begin(), buffer.span().end(), 0.0f);
    EXPECT_EQ(buffer[size - 1], static_cast<float>(size - 1));
  }
}

TEST(AlignedBufferTest, EmptyOneHasNoMemory) {
  const AlignedBuffer<double> unset;
  const AlignedBuffer<double> none(0);
  EXPECT_EQ(unset.data(), nullptr);
  EXPECT_EQ(none.data(), nullptr);
  EXPECT_TRUE(none.span().empty());
}

TEST(AlignedBufferTest, MoveTakesTheMemoryAlong) {
  AlignedBuffer<int> buffer(3);
  buffer[2] = 7;
  const int* const data = buffer.data();
  const AlignedBuffer<int> moved = std::move(buffer);
  EXPECT_EQ(moved.data(), data);
  EXPECT_EQ(moved.size(), 3u);
  EXPECT_EQ(moved[2], 7);
}

}  // namespace
}  // namespace attendant
