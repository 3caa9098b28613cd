#include "core/base/aligned_buffer.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

#include "core/base/process_memory.h"

namespace attendant {
namespace {

TEST(AlignedBufferTest, BeginsAtACacheLine) {
  for (const std::size_t size : {1, 15, 16, 17, 1000}) {
    AlignedBuffer<float> buffer(size);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(buffer.data()) % 64, 0u);
    EXPECT_EQ(buffer.size(), size);
    EXPECT_EQ(buffer.span().size(), size);
    // The whole buffer is writable.
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

// Memory returns to the system even if other blocks lie between: malloc would
// keep what is not at the end of its heap.
TEST(AlignedBufferTest, LargeOnesGoBackToTheSystem) {
  constexpr std::size_t kSize = std::size_t{4} << 20;
  constexpr int kCount = 32;
  // From now on malloc serves blocks of this size from its own heap.
  std::free(std::malloc(4 * kSize));
  std::vector<AlignedBuffer<char>> buffers;
  std::vector<std::unique_ptr<char[]>> between;
  for (int i = 0; i < kCount; ++i) {
    buffers.emplace_back(kSize);
    std::ranges::fill(buffers.back().span(), 'x');
    between.push_back(std::make_unique<char[]>(100));
  }
  const std::int64_t full = ResidentBytes();
  buffers.clear();
  EXPECT_LT(ResidentBytes(), full - std::int64_t{kSize} * (kCount - 2));
}

}  // namespace
}  // namespace attendant
