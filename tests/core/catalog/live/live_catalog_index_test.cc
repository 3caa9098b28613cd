// Which index a catalog has, what the index learns, and where its keys are
// stored.
#include <gtest/gtest.h>

#include <algorithm>
#include <utility>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "core/base/clock.h"
#include "core/shortlist/ivf/ivf_training.h"
#include "tests/core/catalog/live/live_catalog_fixture.h"
#include "tests/support/stored_items.h"

namespace attendant {
namespace {

TEST_F(LiveCatalogMergeTest, TrainsAnIndexOverOneSegment) {
  OpenIvf();
  Upsert(RandomItems(2000, 4, 5));
  EXPECT_TRUE(catalog_->index_states()[0].training);
  EXPECT_EQ(catalog_->index_states()[0].active_kind, IndexKind::kFlat);
  catalog_->AwaitIndexes();
  ASSERT_OK(catalog_->merge_status());
  const IndexState state = catalog_->index_states()[0];
  EXPECT_EQ(state.active_kind, IndexKind::kIvf);
  EXPECT_FALSE(state.training);
  EXPECT_GT(state.list_count, 1);
  EXPECT_GE(*state.measured_recall, 0.8);
  EXPECT_EQ(catalog_->snapshot()->segments.size(), 1);
  EXPECT_EQ(LiveIds().size(), 2000);
}

TEST_F(LiveCatalogMergeTest, AutoTrainsOnceTheCatalogIsLarge) {
  LiveCatalogOptions options;
  options.auto_ivf_min_count = 1000;
  options.settle_time = absl::ZeroDuration();
  OpenCatalog(OneFieldSchema(4), options);
  Upsert(RandomItems(999, 4, 5));
  catalog_->AwaitIndexes();
  EXPECT_EQ(catalog_->index_states()[0].active_kind, IndexKind::kFlat);
  Upsert({MakeItem("one more", {1, 2, 3, 4})});
  catalog_->AwaitIndexes();
  EXPECT_EQ(catalog_->index_states()[0].active_kind, IndexKind::kIvf);
  Restart();
  catalog_->AwaitIndexes();
  EXPECT_EQ(catalog_->index_states()[0].active_kind, IndexKind::kIvf);
}

TEST_F(LiveCatalogMergeTest, AutoMissesFewOfFewKeys) {
  constexpr int kDim = 32, kClusterSize = 300, kQueryCount = 20;
  LiveCatalogOptions options;
  options.auto_ivf_min_count = 1000;
  options.settle_time = absl::ZeroDuration();
  OpenCatalog(OneFieldSchema(kDim), options);
  std::vector<Item> items = RandomItems(3000, kDim, 5);
  const std::vector<Item> centres = RandomItems(10, kDim, 7);
  for (std::size_t i = 0; i < items.size(); ++i) {
    const std::vector<float>& centre = centres[i / kClusterSize].keys[0];
    for (std::size_t d = 0; d < kDim; ++d) items[i].keys[0][d] += centre[d];
  }
  Upsert(items);
  catalog_->AwaitIndexes();
  std::size_t found_count = 0, wanted_count = 0;
  std::int64_t visited = 0, visited_for_less = 0;
  for (std::size_t q = 0; q < kQueryCount; ++q) {
    AttendQuery query = VectorQuery(items[q * 150 + 1].keys[0]);
    query.shortlist_count = query.result_count = 100;
    ASSERT_OK_AND_ASSIGN(const AttendAnswer unstated, Ask(query));
    EXPECT_EQ(unstated.index_kind, IndexKind::kIvf);
    visited += unstated.visited_list_count;
    query.scan_mode = ScanMode::kIndex;
    ASSERT_OK_AND_ASSIGN(const AttendAnswer less, Ask(query));
    visited_for_less += less.visited_list_count;
    query.scan_mode = ScanMode::kAuto;
    query.shortlist_count = 101;
    ASSERT_OK_AND_ASSIGN(const AttendAnswer proven, Ask(query));
    EXPECT_TRUE(proven.results_exact);
    query.shortlist_count = 100;
    query.scan_mode = ScanMode::kExact;
    ASSERT_OK_AND_ASSIGN(const AttendAnswer exact, Ask(query));
    const std::vector<std::string> wanted = IdsOf(exact);
    const std::vector<std::string> found = IdsOf(unstated);
    wanted_count += wanted.size();
    for (const std::string& id : wanted) {
      found_count += std::ranges::count(found, id);
    }
  }
  // The recall was learned from other queries: 1 % is 2 of these.
  EXPECT_GE(static_cast<double>(found_count),
            0.98 * static_cast<double>(wanted_count));
  EXPECT_GT(visited, visited_for_less);
  EXPECT_LT(visited, kQueryCount * catalog_->index_states()[0].list_count);
  AttendQuery draw = VectorQuery(std::vector<float>(kDim, 1));
  draw.select_kind = SelectKind::kSample;
  ASSERT_OK_AND_ASSIGN(const AttendAnswer drawn, Ask(draw));
  EXPECT_EQ(drawn.slate->distance, 0);
}

TEST_F(LiveCatalogMergeTest, IndexesLearnFromTheQueriesThatCome) {
  constexpr int kDim = 16;
  CatalogSchema schema = OneFieldSchema(kDim);
  schema.key_fields[0].index_kind = IndexKind::kIvf;
  LiveCatalogOptions options;
  options.settle_time = absl::Hours(1);
  options.learn_interval = absl::Milliseconds(1);
  OpenCatalog(schema, options);
  Upsert(RandomItems(3000, kDim, 5));
  catalog_->AwaitIndexes();
  const auto learned = [&] {
    return catalog_->snapshot()->TrainingOf(0, -1)->mass->Load();
  };
  const auto before = learned();
  const auto held = catalog_->snapshot();
  const AttendQuery query = VectorQuery(RandomItems(1, kDim, 8)[0].keys[0]);
  const auto interval_in = [&query](const Snapshot& snapshot) {
    const absl::StatusOr<AttendAnswer> answer =
        Attend(snapshot, query, Interrupt());
    EXPECT_OK(answer);
    if (!answer.ok() || !answer->log_partition_interval) {
      return std::pair(0.0, 0.0);
    }
    return std::pair(answer->log_partition_interval->lower_bound,
                     answer->log_partition_interval->upper_bound);
  };
  const auto interval = interval_in(*held);
  for (const Item& asked :
       RandomItems(static_cast<int>(LearnedMass::kKeptQueries), kDim, 7)) {
    ASSERT_OK_AND_ASSIGN(const AttendAnswer answer,
                         Ask(VectorQuery(asked.keys[0])));
    EXPECT_EQ(answer.shortlist_mass.method, MassMethod::kEstimate);
  }
  // Learning runs only in processor time that others leave.
  const SteadyTime end = SteadyAfter(absl::Seconds(120));
  while (learned() == before && SteadyNow() < end) {
    absl::SleepFor(absl::Milliseconds(1));
  }
  EXPECT_NE(learned(), before);
  while (catalog_->snapshot() == held && SteadyNow() < end) {
    absl::SleepFor(absl::Milliseconds(1));
  }
  ASSERT_NE(catalog_->snapshot(), held);
  // A snapshot never changes.
  EXPECT_EQ(interval_in(*held), interval);
  EXPECT_NE(interval_in(*catalog_->snapshot()), interval);
  EXPECT_EQ(catalog_->snapshot()->sequence, held->sequence);
}

TEST_F(LiveCatalogMergeTest, ACatalogMayGoWhileItsIndexesLearn) {
  LiveCatalogOptions options;
  options.settle_time = absl::Hours(1);
  options.learn_interval = absl::ZeroDuration();
  CatalogSchema schema = OneFieldSchema(16);
  schema.key_fields[0].index_kind = IndexKind::kIvf;
  for (int i = 0; i < 5; ++i) {
    OpenCatalog(schema, options);
    Upsert(RandomItems(3000, 16, 5));
    catalog_->AwaitIndexes();
    for (const Item& asked : RandomItems(300 + i, 16, 9)) {
      ASSERT_OK(Ask(VectorQuery(asked.keys[0])));
    }
    catalog_ = nullptr;
  }
}

TEST_F(LiveCatalogMergeTest, AnIndexThatWasAskedForHasItsOwnRecall) {
  OpenIvf();
  Upsert(RandomItems(2000, 4, 5));
  catalog_->AwaitIndexes();
  ASSERT_OK_AND_ASSIGN(const AttendAnswer answer,
                       Ask(VectorQuery({1, 0, 0, 0})));
  EXPECT_LT(answer.visited_list_count, catalog_->index_states()[0].list_count);
}

TEST_F(LiveCatalogMergeTest, AutoKeepsItsIndexDownToHalfTheLimit) {
  LiveCatalogOptions options;
  options.auto_ivf_min_count = 1000;
  options.settle_time = absl::ZeroDuration();
  OpenCatalog(OneFieldSchema(4), options);
  Upsert(RandomItems(1000, 4, 5));
  catalog_->AwaitIndexes();
  const auto delete_range = [&](int begin, int end) {
    std::vector<std::string> ids;
    for (int i = begin; i < end; ++i) ids.push_back("item" + std::to_string(i));
    Delete(ids);
    catalog_->AwaitIndexes();
  };
  delete_range(0, 500);
  EXPECT_EQ(catalog_->index_states()[0].active_kind, IndexKind::kIvf);
  delete_range(500, 501);
  EXPECT_EQ(catalog_->index_states()[0].active_kind, IndexKind::kFlat);
}

TEST_F(LiveCatalogMergeTest, SetDefaultsMayMoveKeysToDiskAndBack) {
  OpenIvf();
  Upsert(RandomItems(2000, 4, 5));
  catalog_->AwaitIndexes();
  const std::int64_t memory_bytes = catalog_->memory_bytes();
  ASSERT_OK_AND_ASSIGN(const AttendAnswer before,
                       Ask(VectorQuery({1, 0, 0, 0})));
  const auto move = [&](bool to_disk) {
    schema_.key_fields[0].keys_on_disk = to_disk;
    SetDefaults(schema_.key_fields, std::vector<NamedModel>(1));
    catalog_->AwaitIndexes();
    EXPECT_OK(catalog_->merge_status());
  };
  move(true);
  EXPECT_EQ(catalog_->index_states()[0].disk_bytes, 2000 * 4 * 4);
  EXPECT_EQ(memory_bytes - catalog_->memory_bytes(), 2000 * 4 * 4);
  ASSERT_OK_AND_ASSIGN(const AttendAnswer after,
                       Ask(VectorQuery({1, 0, 0, 0})));
  EXPECT_EQ(IdsOf(after), IdsOf(before));
  EXPECT_EQ(after.log_partition, before.log_partition);
  // After a merge that reads keys from the file, the items are unchanged.
  const std::vector<Item> items = RandomItems(2000, 4, 5);
  Upsert({items.begin(), items.begin() + 1500});
  Restart();
  catalog_->AwaitIndexes();
  EXPECT_EQ(catalog_->index_states()[0].disk_bytes, 2000 * 4 * 4);
  move(false);
  EXPECT_EQ(catalog_->index_states()[0].disk_bytes, 0);
  // The order of rows has changed, and with it the lists.
  EXPECT_NEAR(static_cast<double>(memory_bytes),
              static_cast<double>(catalog_->memory_bytes()), 2000 * 4);
  for (const Item& item : items) {
    ASSERT_OK_AND_ASSIGN(const std::vector<Item> found,
                         ItemsIn(*catalog_, {item.id}));
    ASSERT_EQ(found[0], item);
  }
}

TEST_F(LiveCatalogMergeTest, SetDefaultsMayChangeTheIndex) {
  OpenIvf();
  Upsert(RandomItems(2000, 4, 5));
  catalog_->AwaitIndexes();
  std::vector<KeyFieldSchema> fields = schema_.key_fields;
  fields[0].index_kind = IndexKind::kFlat;
  fields[0].temperature = 0.25;
  fields[0].combine_kind = CombineKind::kUnit;
  SetDefaults(fields, std::vector<NamedModel>(fields.size()));
  catalog_->AwaitIndexes();
  EXPECT_EQ(catalog_->index_states()[0].active_kind, IndexKind::kFlat);
  ASSERT_OK_AND_ASSIGN(const AttendAnswer answer,
                       Ask(VectorQuery({1, 0, 0, 0})));
  EXPECT_EQ(answer.temperature, 0.25);
  EXPECT_TRUE(answer.complete);
}

}  // namespace
}  // namespace attendant
