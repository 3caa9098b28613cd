// While a whole index is rebuilt, its catalog takes at most 2.2 times the
// memory that it takes at rest, before or after. Counts the process's memory
// that is not file-backed, in excess of what it held without a catalog. Items
// have a key but neither values nor attributes, which a build does not copy.
//
// rebuild_memory_test --count=1000000     the long form, with PQ
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <malloc.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/base/clock.h"
#include "core/base/process_memory.h"
#include "core/catalog/live/catalog_set.h"
#include "tests/durability/flags.h"
#include "tests/support/sanitized.h"
#include "tests/support/scratch_directory.h"
#include "tests/support/split_mix.h"
#include "tests/support/status_matchers.h"

namespace attendant {
namespace {

constexpr double kBar = 2.2;
constexpr int kDim = 128;
constexpr std::int64_t kCount = 100000;
constexpr std::int64_t kBatch = 1000;
constexpr int kClusterCount = 500;
constexpr double kMiB = 1 << 20;
// Memory that a catalog may hold at rest in excess of what it reports.
constexpr std::int64_t kUncountedBytes = 32 << 20;

class RebuildMemoryTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (kSanitized) GTEST_SKIP() << "the sanitizer's own memory counts as ours";
    // As in attendantd: freed memory returns to the system.
    mallopt(M_MMAP_THRESHOLD, 4 << 20);
    mallopt(M_TRIM_THRESHOLD, 4 << 20);
    mallopt(M_TOP_PAD, 1 << 20);
    CatalogSet::Options options;
    options.catalog.settle_time = absl::ZeroDuration();
    ASSERT_OK_AND_ASSIGN(set_, CatalogSet::Open(directory_.path(), options));
    empty_bytes_ = ResidentBytes();
    schema_.key_fields.push_back(
        {.name = "key", .dim = kDim, .index_kind = IndexKind::kIvf});
    ASSERT_OK_AND_ASSIGN(const auto created, set_->Create("shop", schema_, {}));
    shop_ = created.catalog;
    Write(count_, 0);
  }

  // Writes the first `count` items, near the clusters of this version.
  void Write(std::int64_t count, int version) {
    for (std::int64_t begin = 0; begin < count; begin += kBatch) {
      std::vector<Item> items;
      for (std::int64_t i = begin; i < std::min(begin + kBatch, count); ++i) {
        Item& item = items.emplace_back();
        item.id = absl::StrCat("item", i);
        const auto number = static_cast<std::uint64_t>(i);
        item.keys = {SplitMix(number % kClusterCount +
                              1000 * static_cast<std::uint64_t>(version))
                         .Floats(kDim)};
        const std::vector<float> noise =
            SplitMix(1'000'000 + number).Floats(kDim, .5);
        for (std::size_t d = 0; d < noise.size(); ++d) {
          item.keys[0][d] += noise[d];
        }
      }
      ASSERT_OK(shop_->Import(items));
    }
  }

  std::int64_t Held() const { return ResidentBytes() - empty_bytes_; }

  // Returns the memory held once everything is built and the sources of the
  // build are gone.
  std::int64_t AtRest() {
    const SteadyTime give_up = SteadyAfter(absl::Seconds(60));
    while (true) {
      shop_->AwaitIndexes();
      malloc_trim(0);
      const std::int64_t held = Held();
      if (held <= shop_->memory_bytes() + kUncountedBytes) return held;
      if (SteadyNow() > give_up) {
        ADD_FAILURE() << "holds " << held << " bytes at rest, and says "
                      << shop_->memory_bytes();
        return held;
      }
      absl::SleepFor(absl::Milliseconds(50));
    }
  }

  // `begin` starts a complete rebuild.
  void ExpectWithinBar(const std::string& what,
                       const std::function<void()>& begin) {
    const std::int64_t before = AtRest();
    std::atomic<bool> stop = false;
    std::int64_t most = 0;
    std::thread watch([&] {
      while (!stop) {
        most = std::max(most, Held());
        absl::SleepFor(absl::Milliseconds(2));
      }
    });
    const SteadyTime start = SteadyNow();
    begin();
    shop_->AwaitIndexes();
    const absl::Duration time = TimeSince(start);
    stop = true;
    watch.join();
    EXPECT_OK(shop_->merge_status());
    const std::int64_t after = AtRest();
    const double ratio = static_cast<double>(most) /
                         static_cast<double>(std::max(before, after));
    std::printf(
        "%-22s before %6.1f MiB, at most %6.1f, after %6.1f: %.2f times; "
        "%.1f s\n",
        what.c_str(), static_cast<double>(before) / kMiB,
        static_cast<double>(most) / kMiB, static_cast<double>(after) / kMiB,
        ratio, absl::ToDoubleSeconds(time));
    EXPECT_LE(ratio, kBar) << what;
    // Checks that the samples caught a build.
    EXPECT_GE(most, before + after / 2) << what;
  }

  void ExpectBuildWithinBar(IndexKind kind, bool on_disk) {
    KeyFieldSchema& field = schema_.key_fields[0];
    field.index_kind = kind;
    field.keys_on_disk = on_disk;
    ExpectWithinBar(
        absl::StrCat("to ", Name(kind), on_disk ? ", keys in files" : ""),
        [&] { EXPECT_OK(set_->Update("shop", schema_, {})); });
    const IndexState state = shop_->index_states()[0];
    EXPECT_EQ(state.active_kind, kind);
    EXPECT_EQ(state.disk_bytes > 0, on_disk);
  }

  const std::int64_t count_ = Flag("count", kCount);
  const ScratchDirectory directory_;
  CatalogSchema schema_;
  std::unique_ptr<CatalogSet> set_;
  std::shared_ptr<LiveCatalog> shop_;
  std::int64_t empty_bytes_ = 0;
};

TEST_F(RebuildMemoryTest, IsAtMostTwiceThatAtRestAndAFifth) {
  ExpectBuildWithinBar(IndexKind::kIvf, true);
  ExpectBuildWithinBar(IndexKind::kIvf, false);
  ExpectBuildWithinBar(IndexKind::kFlat, false);
  ExpectBuildWithinBar(IndexKind::kIvf, false);
  if (count_ > kCount) {
    ExpectBuildWithinBar(IndexKind::kPq, false);
    ExpectBuildWithinBar(IndexKind::kIvf, false);
  }
}

}  // namespace
}  // namespace attendant
