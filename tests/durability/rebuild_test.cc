// Rebuilds indexes while queries and writes go on. No query fails, no answer
// mixes two states, and recall is never below what the index reports.
//
// rebuild_test --count=1000000     the long form
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/catalog/live/catalog_set.h"
#include "core/catalog/query/attend.h"
#include "tests/durability/flags.h"
#include "tests/support/scratch_directory.h"
#include "tests/support/split_mix.h"
#include "tests/support/status_matchers.h"

namespace attendant {
namespace {

constexpr int kDim = 32;
constexpr int kClusterCount = 500;
constexpr int kQueryCount = 200;   // as many as measure an index
constexpr int kResultCount = 100;  // and the best of them

// Leaves CPU time to the builds: queries and writes would take whole cores.
void LeaveTime() { absl::SleepFor(absl::Milliseconds(1)); }

std::vector<float> VectorNear(int cluster, std::uint64_t seed) {
  std::vector<float> vector = SplitMix(cluster).Floats(kDim);
  const std::vector<float> noise = SplitMix(1'000'000 + seed).Floats(kDim, .5);
  for (int i = 0; i < kDim; ++i) vector[i] += noise[i];
  return vector;
}

class RebuildTest : public ::testing::Test {
 protected:
  void SetUp() override {
    CatalogSet::Options options;
    options.catalog.settle_time = absl::ZeroDuration();
    ASSERT_OK_AND_ASSIGN(set_, CatalogSet::Open(directory_.path(), options));
    schema_.key_fields.push_back(
        {.name = "key", .dim = kDim, .index_kind = IndexKind::kIvf});
    schema_.attributes.push_back({"version", AttributeType::kInt64});
    ASSERT_OK_AND_ASSIGN(const auto created, set_->Create("shop", schema_, {}));
    shop_ = created.catalog;
    constexpr std::int64_t kBatch = 2000;
    for (std::int64_t begin = 0; begin < item_count_; begin += kBatch) {
      std::vector<Item> items;
      for (std::int64_t i = begin; i < std::min(begin + kBatch, item_count_);
           ++i) {
        items.push_back(ItemOf(i, 0));
      }
      ASSERT_OK(shop_->Import(items));
    }
    shop_->AwaitIndexes();
    for (int q = 0; q < kQueryCount; ++q) {
      AttendQuery query;
      query.query = VectorNear(q % kClusterCount, 7'000'000'000 + q);
      query.result_count = kResultCount;
      query.shortlist_count = kResultCount;
      query.weight_scope = WeightScope::kReturned;
      queries_.push_back(query);
      query.scan_mode = ScanMode::kExact;
      const auto snapshot = shop_->snapshot();
      ASSERT_OK_AND_ASSIGN(const AttendAnswer answer,
                           Attend(*snapshot, query, Interrupt()));
      auto& best = best_.emplace_back();
      for (const AttendedItem& item : answer.items) {
        best[std::string(snapshot->IdOf(item.address.segment,
                                        item.address.row))] = item.logit;
      }
    }
  }

  static Item ItemOf(std::int64_t number, std::int64_t version) {
    Item item;
    item.id = absl::StrCat("item", number);
    item.keys = {VectorNear(static_cast<int>(number % kClusterCount), number)};
    item.attributes = {{0, version}};
    return item;
  }

  // Statistics of the share of the best items that the queries found.
  struct Recall {
    double mean = 0;
    double variance = 0;
  };
  Recall AskAll() {
    double sum = 0;
    double squares = 0;
    for (int q = 0; q < kQueryCount; ++q) {
      const double share = Ask(q);
      sum += share;
      squares += share * share;
      LeaveTime();
    }
    const double mean = sum / kQueryCount;
    return {mean, squares / kQueryCount - mean * mean};
  }

  // Asks one query and returns the share of the best items that it found.
  double Ask(int q) {
    const auto snapshot = shop_->snapshot();
    EXPECT_EQ(snapshot->item_count(), item_count_);
    const auto answer = Attend(*snapshot, queries_[q], Interrupt());
    EXPECT_OK(answer);
    if (!answer.ok()) return 0;
    EXPECT_EQ(answer->items.size(), kResultCount);
    std::set<std::string> ids;
    double sum = 0;
    int found_count = 0;
    for (const AttendedItem& item : answer->items) {
      const auto [segment, row] = item.address;
      EXPECT_TRUE(snapshot->segments[segment].IsLive(row));
      std::string id(snapshot->IdOf(segment, row));
      sum += item.weight;
      const auto best = best_[q].find(id);
      if (best != best_[q].end()) {
        EXPECT_EQ(item.logit, best->second) << id;
        ++found_count;
      }
      EXPECT_TRUE(ids.insert(std::move(id)).second) << "twice in an answer";
    }
    EXPECT_NEAR(sum, 1, 1e-5);
    return static_cast<double>(found_count) / kResultCount;
  }

  // Returns the measured recall of the current index; 1 if every key is scored.
  double Published() {
    return shop_->index_states()[0].measured_recall.value_or(1);
  }

  const std::int64_t item_count_ = Flag("count", Short(50000));
  const ScratchDirectory directory_;
  CatalogSchema schema_;
  std::unique_ptr<CatalogSet> set_;
  std::shared_ptr<LiveCatalog> shop_;
  std::vector<AttendQuery> queries_;
  // By query: the exact answer's logits by id. Keys never change.
  std::vector<std::map<std::string, float>> best_;
};

TEST_F(RebuildTest, AnswersStayWholeAndAsGoodAsPublished) {
  double published = Published();
  ASSERT_LT(published, 1) << "there is an index";
  const Recall rest = AskAll();
  std::atomic<bool> stop = false;
  std::atomic<int> pass_count = 0;
  double worst = 1;
  std::thread reader([&] {
    while (!stop && !HasFailure()) {
      worst = std::min(worst, AskAll().mean);
      ++pass_count;
    }
  });
  // Rows move; keys stay the same.
  std::thread writer([&] {
    SplitMix random(3);
    for (std::int64_t version = 1; !stop && !HasFailure(); ++version) {
      const auto number =
          static_cast<std::int64_t>(random.Next() % item_count_);
      const std::vector<Item> item = {ItemOf(number, version)};
      EXPECT_OK(shop_->Upsert(item, ""));
      LeaveTime();
    }
  });
  // Each of these rebuilds everything: with keys in a file, without an index,
  // and again.
  for (const auto& [kind, on_disk] :
       {std::pair(IndexKind::kIvf, true), std::pair(IndexKind::kFlat, false),
        std::pair(IndexKind::kIvf, false)}) {
    schema_.key_fields[0].index_kind = kind;
    schema_.key_fields[0].keys_on_disk = on_disk;
    const int before = pass_count;
    EXPECT_OK(set_->Update("shop", schema_, {}));
    // Merges and writes go on meanwhile.
    IndexState state;
    do {
      LeaveTime();
      state = shop_->index_states()[0];
    } while ((state.active_kind != kind || (state.disk_bytes > 0) != on_disk) &&
             !HasFailure());
    EXPECT_OK(shop_->merge_status());
    published = std::min(published, Published());
    // Waits for a pass that began after the rebuild.
    while (pass_count < before + 2 && !HasFailure()) LeaveTime();
  }
  stop = true;
  reader.join();
  writer.join();
  // Both are means over samples of shares, whose variance is that at rest.
  // Allows four standard deviations of the difference.
  const double tolerance = 4 * std::sqrt(2 * rest.variance / kQueryCount);
  std::printf(
      "worst pass %.3f, at rest %.3f, published %.3f, tolerance %.3f, %d "
      "passes\n",
      worst, rest.mean, published, tolerance, pass_count.load());
  EXPECT_GE(worst, published - tolerance);
}

}  // namespace
}  // namespace attendant
