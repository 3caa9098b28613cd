#include "core/catalog/live/live_catalog.h"

#include <functional>
#include <future>
#include <optional>
#include <set>
#include <thread>

#include "core/base/clock.h"
#include "core/base/memory_budget.h"
#include "core/base/status.h"
#include "core/shortlist/ivf/ivf_training.h"
#include "tests/core/catalog/catalog_fixture.h"
#include "tests/core/catalog/failing_allocation.h"
#include "tests/support/sanitized.h"
#include "tests/support/stored_items.h"

namespace attendant {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class LiveCatalogTest : public CatalogFixture {
 protected:
  // Item ids of the snapshot, each as often as it is live.
  std::multiset<std::string> LiveIds() {
    std::multiset<std::string> ids;
    const auto snapshot = catalog_->snapshot();
    for (const SegmentView& view : snapshot->segments) {
      for (RowIndex row = 0; row < view.row_end; ++row) {
        if (view.IsLive(row)) ids.emplace(view.segment->rows->Id(row));
      }
    }
    return ids;
  }
};

TEST_F(LiveCatalogTest, UpsertCountsInsertsAndUpdates) {
  OpenCatalog(OneFieldSchema(1));
  ASSERT_OK_AND_ASSIGN(
      const WriteOutcome first,
      catalog_->Upsert(std::vector{MakeItem("a", {1}), MakeItem("b", {2})},
                       ""));
  EXPECT_EQ(first.inserted_count, 2);
  EXPECT_EQ(first.sequence, 1);
  ASSERT_OK_AND_ASSIGN(
      const WriteOutcome second,
      catalog_->Upsert(std::vector{MakeItem("b", {3}), MakeItem("c", {4})},
                       ""));
  EXPECT_EQ(second.inserted_count, 1);
  EXPECT_EQ(second.updated_count, 1);
  EXPECT_EQ(second.sequence, 2);
  EXPECT_EQ(LiveIds(), (std::multiset<std::string>{"a", "b", "c"}));
  ASSERT_OK_AND_ASSIGN(const std::vector<Item> items,
                       ItemsIn(*catalog_, {"b"}));
  EXPECT_THAT(items[0].keys[0], ElementsAre(3));
}

TEST_F(LiveCatalogTest, ASnapshotDoesNotChange) {
  OpenCatalog(OneFieldSchema(1));
  Upsert({MakeItem("a", {1}), MakeItem("b", {2})});
  const auto before = catalog_->snapshot();
  Upsert({MakeItem("a", {9})});
  Delete({"b"});
  EXPECT_EQ(before->item_count(), 2);
  EXPECT_THAT(ItemAt(*before, *before->Find("a")).keys[0], ElementsAre(1));
  EXPECT_TRUE(before->Find("b").has_value());
  EXPECT_EQ(catalog_->snapshot()->item_count(), 1);
  EXPECT_FALSE(catalog_->snapshot()->Find("b").has_value());
}

TEST_F(LiveCatalogTest, UpsertIsAllOrNothing) {
  OpenCatalog(OneFieldSchema(1));
  EXPECT_THAT(catalog_->Upsert(
                  std::vector{MakeItem("a", {1}), MakeItem("b", {1, 2})}, ""),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("items[1].keys[vec]")));
  EXPECT_THAT(
      catalog_->Upsert(std::vector{MakeItem("a", {1}), MakeItem("a", {2})}, ""),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("items[1].id")));
  EXPECT_THAT(catalog_->Upsert(std::vector<Item>{}, ""),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("items")));
  EXPECT_EQ(catalog_->snapshot()->item_count(), 0);
  EXPECT_EQ(catalog_->snapshot()->sequence, 0);
}

TEST_F(LiveCatalogTest, AFailedWriteIsNotApplied) {
  OpenCatalog(OneFieldSchema(1));
  Upsert({MakeItem("a", {1})});
  {
    MutexLock lock(&disk_->mutex);
    disk_->write_status = absl::ResourceExhaustedError("disk full");
  }
  EXPECT_THAT(
      catalog_->Upsert(std::vector{MakeItem("b", {1})}, ""),
      StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("disk full")));
  EXPECT_THAT(
      catalog_->Import(std::vector{MakeItem("b", {1})}),
      StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("disk full")));
  EXPECT_EQ(LiveIds(), (std::multiset<std::string>{"a"}));
  {
    MutexLock lock(&disk_->mutex);
    disk_->write_status = absl::OkStatus();
  }
  Upsert({MakeItem("b", {1})});
  EXPECT_EQ(LiveIds(), (std::multiset<std::string>{"a", "b"}));
}

TEST_F(LiveCatalogTest, AWriteWithoutMemoryIsNotAppliedAndTheNextOneIs) {
  OpenCatalog(OneFieldSchema(1));
  Upsert({MakeItem("a", {1})});
  {
    MutexLock lock(&disk_->mutex);
    disk_->out_of_memory = true;
  }
  EXPECT_THAT(
      catalog_->Upsert(std::vector{MakeItem("a", {9}), MakeItem("b", {9})}, ""),
      StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("memory")));
  {
    MutexLock lock(&disk_->mutex);
    disk_->out_of_memory = false;
  }
  Upsert({MakeItem("c", {3})});
  EXPECT_EQ(LiveIds(), (std::multiset<std::string>{"a", "c"}));
  EXPECT_EQ(catalog_->snapshot()->sequence, 2);
  ASSERT_OK_AND_ASSIGN(const std::vector<Item> items,
                       ItemsIn(*catalog_, {"a", "c"}));
  EXPECT_THAT(items[0].keys[0], ElementsAre(1));
  EXPECT_THAT(items[1].keys[0], ElementsAre(3));
}

TEST_F(LiveCatalogTest, ARepeatedRequestReturnsTheFirstOutcome) {
  OpenCatalog(OneFieldSchema(1));
  const std::vector<Item> items = {MakeItem("a", {1})};
  ASSERT_OK_AND_ASSIGN(const WriteOutcome first, catalog_->Upsert(items, "r1"));
  Upsert({MakeItem("a", {2})});
  ASSERT_OK_AND_ASSIGN(const WriteOutcome repeat,
                       catalog_->Upsert(items, "r1"));
  EXPECT_EQ(repeat, first);
  // Not applied again: the later write stands.
  ASSERT_OK_AND_ASSIGN(const std::vector<Item> now, ItemsIn(*catalog_, {"a"}));
  EXPECT_THAT(now[0].keys[0], ElementsAre(2));
  Restart();
  ASSERT_OK_AND_ASSIGN(const WriteOutcome later, catalog_->Upsert(items, "r1"));
  EXPECT_EQ(later, first);
  EXPECT_THAT(
      catalog_->Upsert(std::vector{MakeItem("a", {3})}, "r1"),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("request_id")));
  EXPECT_THAT(
      catalog_->Delete(std::vector<std::string>{"a"}, "r1"),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("request_id")));
}

TEST_F(LiveCatalogTest, DeleteCountsWhatWasThere) {
  OpenCatalog(OneFieldSchema(1));
  Upsert({MakeItem("a", {1}), MakeItem("b", {2})});
  ASSERT_OK_AND_ASSIGN(
      const WriteOutcome outcome,
      catalog_->Delete(std::vector<std::string>{"a", "x"}, ""));
  EXPECT_EQ(outcome.deleted_count, 1);
  EXPECT_EQ(outcome.missing_count, 1);
  EXPECT_EQ(LiveIds(), (std::multiset<std::string>{"b"}));
  Restart();
  EXPECT_EQ(LiveIds(), (std::multiset<std::string>{"b"}));
}

TEST_F(LiveCatalogTest, ImportTakesWhatIsValidAndTheLastOfAnId) {
  OpenCatalog(OneFieldSchema(1));
  ASSERT_OK_AND_ASSIGN(
      const ImportOutcome outcome,
      catalog_->Import(std::vector{MakeItem("a", {1}), MakeItem("", {1}),
                                   MakeItem("b", {}), MakeItem("a", {5})}));
  EXPECT_THAT(outcome.statuses[0], IsOk());
  EXPECT_THAT(outcome.statuses[1],
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("id")));
  EXPECT_THAT(outcome.statuses[2],
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("key")));
  EXPECT_THAT(outcome.statuses[3], IsOk());
  EXPECT_EQ(outcome.sequence, 1);
  EXPECT_EQ(LiveIds(), (std::multiset<std::string>{"a"}));
  ASSERT_OK_AND_ASSIGN(const std::vector<Item> items,
                       ItemsIn(*catalog_, {"a"}));
  EXPECT_THAT(items[0].keys[0], ElementsAre(5));
}

TEST_F(LiveCatalogTest, TheFirstMissingItemIsNamed) {
  OpenCatalog(OneFieldSchema(1));
  Upsert({MakeItem("a", {1})});
  EXPECT_THAT(
      catalog_->VisitStored(std::vector<std::string>{"a", "x", "y"},
                            [](const StoredItem&) { return absl::OkStatus(); }),
      StatusIs(absl::StatusCode::kNotFound, HasSubstr("ids[1]")));
}

TEST_F(LiveCatalogTest, ListPagesInTheOrderOfIds) {
  OpenCatalog(OneFieldSchema(1));
  Upsert({MakeItem("c", {1}), MakeItem("a", {1}), MakeItem("b", {1})});
  ASSERT_OK_AND_ASSIGN(const std::vector<StoredItem> first,
                       StoredItems(*catalog_, "", 2));
  ASSERT_EQ(first.size(), 2);
  EXPECT_EQ(first[1].id, "b");
  ASSERT_OK_AND_ASSIGN(const std::vector<StoredItem> rest,
                       StoredItems(*catalog_, "b", 2));
  ASSERT_EQ(rest.size(), 1);
  EXPECT_EQ(rest[0].id, "c");
}

TEST_F(LiveCatalogTest, GrowsOverManySegments) {
  OpenCatalog(OneFieldSchema(2));
  const std::vector<Item> items = RandomItems(5000, 2, 1);
  for (int i = 0; i < 5000; i += 100) {
    Upsert({items.begin() + i, items.begin() + i + 100});
  }
  EXPECT_GT(catalog_->snapshot()->segments.size(), 1);
  EXPECT_EQ(LiveIds().size(), 5000);
  for (const int i : {0, 1023, 1024, 4999}) {
    ASSERT_OK_AND_ASSIGN(const std::vector<Item> found,
                         ItemsIn(*catalog_, {items[i].id}));
    EXPECT_EQ(found[0], items[i]);
  }
  Restart();
  EXPECT_EQ(LiveIds().size(), 5000);
  EXPECT_EQ(catalog_->snapshot()->sequence, 50);
}

class LiveCatalogMergeTest : public LiveCatalogTest {
 protected:
  void OpenIvf() {
    CatalogSchema schema = OneFieldSchema(4);
    schema.key_fields[0].index_kind = IndexKind::kIvf;
    LiveCatalogOptions options;
    // Merges happen only when a test waits for them.
    options.settle_time = absl::Hours(1);
    OpenCatalog(schema, options);
  }
};

TEST_F(LiveCatalogMergeTest, OpaqueValuesSurviveMergesAndRestarts) {
  OpenIvf();
  std::vector<Item> items = RandomItems(2000, 4, 6);
  for (std::size_t i = 0; i < items.size(); i += 2) {
    items[i].opaque_value = std::string("\0\xff", 2) + std::to_string(i);
  }
  Upsert(items);
  items[10].opaque_value = "another";
  items[11].opaque_value = "a first one";
  items[12].opaque_value.clear();
  Upsert({items[10], items[11], items[12]});
  const auto expect_all = [&](const char* when) {
    for (const Item& item : items) {
      ASSERT_OK_AND_ASSIGN(const std::vector<Item> found,
                           ItemsIn(*catalog_, {item.id}));
      EXPECT_EQ(found[0], item) << when;
    }
  };
  expect_all("as written");
  catalog_->AwaitIndexes();
  ASSERT_EQ(catalog_->snapshot()->segments.size(), 1);
  expect_all("merged");
  Restart();
  expect_all("restarted");
}

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

TEST_F(LiveCatalogMergeTest, KeepsDeletesAndUpdatesOfMergedRows) {
  OpenIvf();
  Upsert(RandomItems(2000, 4, 5));
  catalog_->AwaitIndexes();
  Delete({"item7"});
  Upsert({MakeItem("item8", {9, 9, 9, 9})});
  EXPECT_EQ(LiveIds().size(), 1999);
  EXPECT_EQ(LiveIds().count("item8"), 1);
  ASSERT_OK_AND_ASSIGN(const AttendAnswer answer,
                       Ask(VectorQuery({1, 1, 1, 1})));
  EXPECT_EQ(IdsOf(answer).front(), "item8");
  Upsert(RandomItems(2000, 4, 6));
  catalog_->AwaitIndexes();
  EXPECT_EQ(catalog_->snapshot()->segments.size(), 1);
  EXPECT_EQ(LiveIds().size(), 2000);
}

TEST_F(LiveCatalogMergeTest, WritesDuringAMergeSurviveIt) {
  OpenIvf();
  Upsert(RandomItems(3000, 4, 5));
  std::thread waiter([&] { catalog_->AwaitIndexes(); });
  std::multiset<std::string> expected = LiveIds();
  for (int i = 0; i < 300; ++i) {
    const std::string id = "item" + std::to_string(i);
    if (i % 2 == 0) {
      Delete({id});
      expected.erase(id);
    } else {
      Upsert({MakeItem(id, {static_cast<float>(i), 0, 0, 0})});
    }
  }
  waiter.join();
  catalog_->AwaitIndexes();
  EXPECT_EQ(LiveIds(), expected);
  for (int i = 1; i < 300; i += 2) {
    ASSERT_OK_AND_ASSIGN(const std::vector<Item> items,
                         ItemsIn(*catalog_, {"item" + std::to_string(i)}));
    EXPECT_EQ(items[0].keys[0][0], i);
  }
}

TEST_F(LiveCatalogMergeTest, DropsDeadRowsOnceTheyAreTheMost) {
  LiveCatalogOptions options;
  options.settle_time = absl::ZeroDuration();
  OpenCatalog(OneFieldSchema(4), options);
  Upsert(RandomItems(3000, 4, 5));
  std::vector<std::string> ids;
  for (int i = 0; i < 2000; ++i) ids.push_back("item" + std::to_string(i));
  Delete(ids);
  catalog_->AwaitIndexes();
  std::int64_t row_count = 0;
  const auto snapshot = catalog_->snapshot();
  for (const SegmentView& view : snapshot->segments) {
    row_count += view.row_end;
  }
  EXPECT_EQ(row_count, 1000);
  EXPECT_EQ(LiveIds().size(), 1000);
}

// Their count is nothing beside what they hold.
TEST_F(LiveCatalogMergeTest, FewDeadRowsOfMuchMemoryAreDropped) {
  CatalogSchema schema = OneFieldSchema(4);
  schema.attributes = {{"text", AttributeType::kString}};
  OpenCatalog(schema);
  const auto text_of = [](std::size_t i, std::size_t byte_count) {
    std::string text = std::to_string(i);
    text.resize(byte_count, '.');
    return text;
  };
  constexpr std::int64_t kFewBytes = 4 << 20;
  std::vector<Item> items = RandomItems(200, 4, 5);
  std::vector<std::string> ids;
  for (std::size_t i = 0; i < items.size(); ++i) {
    items[i].attributes = {{0, text_of(i, 512 << 10)}};
    ids.push_back(items[i].id);
  }
  Upsert(items);
  EXPECT_GT(catalog_->memory_bytes(), 100 << 20);
  Delete(ids);
  catalog_->AwaitIndexes();
  EXPECT_LT(catalog_->memory_bytes(), kFewBytes);
  // Nor does one item that is replaced again and again leave more behind.
  for (std::size_t i = 0; i < 1000; ++i) {
    items[0].attributes = {{0, text_of(i, 64 << 10)}};
    Upsert({items[0]});
  }
  catalog_->AwaitIndexes();
  EXPECT_LT(catalog_->memory_bytes(), 2 * kFewBytes);
  ASSERT_OK_AND_ASSIGN(const auto found, ItemsIn(*catalog_, {items[0].id}));
  EXPECT_EQ(found[0], items[0]);
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
      found_count += std::count(found.begin(), found.end(), id);
    }
  }
  // The recall is learned from other queries: 1 % may be 2 of these.
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
  // In what others leave of the processor.
  const SteadyTime end = SteadyAfter(absl::Seconds(120));
  while (learned() == before && SteadyNow() < end) {
    absl::SleepFor(absl::Milliseconds(1));
  }
  EXPECT_NE(learned(), before);
  while (catalog_->snapshot() == held && SteadyNow() < end) {
    absl::SleepFor(absl::Milliseconds(1));
  }
  ASSERT_NE(catalog_->snapshot(), held);
  // A snapshot stays what it is.
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
  // Merged anew from the file, the items are what they were.
  const std::vector<Item> items = RandomItems(2000, 4, 5);
  Upsert({items.begin(), items.begin() + 1500});
  Restart();
  catalog_->AwaitIndexes();
  EXPECT_EQ(catalog_->index_states()[0].disk_bytes, 2000 * 4 * 4);
  move(false);
  EXPECT_EQ(catalog_->index_states()[0].disk_bytes, 0);
  // The rows' order is another now, and with it the lists.
  EXPECT_NEAR(static_cast<double>(memory_bytes),
              static_cast<double>(catalog_->memory_bytes()), 2000 * 4);
  for (const Item& item : items) {
    ASSERT_OK_AND_ASSIGN(const std::vector<Item> found,
                         ItemsIn(*catalog_, {item.id}));
    ASSERT_EQ(found[0], item);
  }
}

// Memory holds them all meanwhile, and every answer is exact.
TEST_F(LiveCatalogMergeTest, AFullDiskKeepsTheCatalogAnswering) {
  CatalogSchema schema = OneFieldSchema(4);
  schema.key_fields[0].index_kind = IndexKind::kIvf;
  schema.key_fields[0].keys_on_disk = true;
  LiveCatalogOptions options;
  options.settle_time = absl::Hours(1);
  OpenCatalog(schema, options);
  const absl::Status full = absl::ResourceExhaustedError("the disk is full");
  disk_->scratch_files.FailToCreate(full);
  Upsert(RandomItems(2000, 4, 5));
  const auto expect_exact = [&] {
    EXPECT_THAT(catalog_->merge_status(),
                StatusIs(absl::StatusCode::kResourceExhausted,
                         HasSubstr("the disk is full")));
    EXPECT_EQ(catalog_->index_states()[0].active_kind, IndexKind::kFlat);
    ASSERT_OK_AND_ASSIGN(const AttendAnswer answer,
                         Ask(VectorQuery({1, 0, 0, 0})));
    EXPECT_TRUE(answer.complete);
  };
  catalog_->AwaitIndexes();
  expect_exact();
  // Nor does one that fills up meanwhile.
  disk_->scratch_files.FailToCreate(absl::OkStatus());
  disk_->scratch_files.FailAfter(100, full);
  Upsert({MakeItem("another", {1, 2, 3, 4})});
  catalog_->AwaitIndexes();
  expect_exact();
  // What failed leaves no segment behind.
  EXPECT_EQ(catalog_->snapshot()->segments.size(), 2u);
  // The next write tries again.
  disk_->scratch_files.FailAfter(0, absl::OkStatus());
  Upsert({MakeItem("one more", {1, 2, 3, 4})});
  catalog_->AwaitIndexes();
  EXPECT_OK(catalog_->merge_status());
  EXPECT_EQ(catalog_->index_states()[0].active_kind, IndexKind::kIvf);
  EXPECT_EQ(catalog_->index_states()[0].disk_bytes, 2002 * 4 * 4);
}

TEST_F(LiveCatalogMergeTest, WhatFailedIsTriedAgainWithoutAWrite) {
  CatalogSchema schema = OneFieldSchema(4);
  schema.key_fields[0].index_kind = IndexKind::kIvf;
  schema.key_fields[0].keys_on_disk = true;
  LiveCatalogOptions options;
  options.settle_time = absl::ZeroDuration();
  options.retry_time = absl::Milliseconds(1);
  OpenCatalog(schema, options);
  disk_->scratch_files.FailToCreate(
      absl::ResourceExhaustedError("the disk is full"));
  Upsert(RandomItems(2000, 4, 5));
  catalog_->AwaitIndexes();
  EXPECT_FALSE(catalog_->merge_status().ok());
  disk_->scratch_files.FailToCreate(absl::OkStatus());
  for (int i = 0; i < 5000 && !catalog_->merge_status().ok(); ++i) {
    absl::SleepFor(absl::Milliseconds(1));
  }
  EXPECT_OK(catalog_->merge_status());
  EXPECT_EQ(catalog_->index_states()[0].active_kind, IndexKind::kIvf);
}

// What waits for writes to settle is hurried while somebody waits for it.
TEST_F(LiveCatalogMergeTest, WithoutMemoryNobodyWaitsForIndexesForEver) {
  CatalogSchema schema = OneFieldSchema(4);
  schema.key_fields[0].index_kind = IndexKind::kIvf;
  schema.key_fields[0].keys_on_disk = true;
  LiveCatalogOptions options;
  options.settle_time = absl::Hours(1);
  OpenCatalog(schema, options);
  disk_->scratch_files.FailToCreate(
      absl::ResourceExhaustedError("the disk is full"));
  Upsert(RandomItems(2000, 4, 5));
  catalog_->AwaitIndexes();
  EXPECT_FALSE(catalog_->merge_status().ok());
  disk_->scratch_files.FailToCreate(absl::OkStatus());
  if (!WithoutMemoryAt(1, [&] { catalog_->AwaitIndexes(); })) {
    EXPECT_TRUE(kSanitized);
    return;
  }
  Upsert({MakeItem("another", {1, 2, 3, 4})});
  // Behind the merge, if that were due.
  std::promise<void> behind;
  background_.Add(
      this, absl::ZeroDuration(), [&] { behind.set_value(); }, Lane::kFirst);
  behind.get_future().wait();
  EXPECT_EQ(catalog_->index_states()[0].active_kind, IndexKind::kFlat);
  catalog_->AwaitIndexes();
  EXPECT_EQ(catalog_->index_states()[0].active_kind, IndexKind::kIvf);
}

// Each of them leaves rows behind that no snapshot shows, and so a segment.
TEST_F(LiveCatalogMergeTest, WritesThatFailLeaveFewSegments) {
  OpenCatalog(OneFieldSchema(4));
  const std::vector<Item> items = RandomItems(60, 4, 5);
  for (const Item& item : items) {
    {
      MutexLock lock(&disk_->mutex);
      disk_->write_status = absl::ResourceExhaustedError("the disk is full");
    }
    EXPECT_FALSE(catalog_->Upsert(std::vector{item}, "").ok());
    {
      MutexLock lock(&disk_->mutex);
      disk_->write_status = absl::OkStatus();
    }
    Upsert({item});
  }
  catalog_->AwaitIndexes();
  EXPECT_LE(catalog_->snapshot()->segments.size(), 24u);
  EXPECT_EQ(catalog_->snapshot()->item_count(), 60);
  for (const Item& item : items) {
    ASSERT_OK_AND_ASSIGN(const auto found, ItemsIn(*catalog_, {item.id}));
    EXPECT_EQ(found[0], item);
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

// Which a restart would go by, and find a key that its model can't take, or no
// model.
TEST_F(LiveCatalogTest, WithoutMemoryDefaultsThatAreStoredKeepTheirModels) {
  MultiHeadProjections heads;
  heads.head_count = 1;
  heads.query = heads.key = {{1, 1, {1}}, {}};
  const NamedModel wanted{
      {"taste", 1},
      std::make_shared<const AttentionModel>(AttentionModel{heads}),
      /*key_limit=*/1};
  const CatalogSchema schema = OneFieldSchema(1);
  std::vector<KeyFieldSchema> fields = schema.key_fields;
  fields[0].model = wanted.name;
  bool befell = true;
  for (int nth = 1; befell; ++nth) {
    SCOPED_TRACE(nth);
    disk_ = std::make_shared<FakeDisk>();
    OpenCatalog(schema);
    Upsert({MakeItem("small", {1})});
    const std::vector<NamedModel> models = {wanted};
    bool stored = false;
    absl::Status status = absl::ResourceExhaustedError("thrown");
    befell = WithoutMemoryAt(nth, [&] {
      status = catalog_->SetDefaults(fields, models, [&] {
        stored = true;
        return absl::OkStatus();
      });
    });
    EXPECT_EQ(catalog_->Upsert(std::vector{MakeItem("large", {2})}, "").ok(),
              !stored);
    // What may be in use is not deleted.
    EXPECT_EQ(catalog_->MayUse(wanted.name), stored);
    // Done as a whole, or another time.
    EXPECT_EQ(catalog_->record().schema.key_fields[0].model,
              status.ok() ? wanted.name : ModelName());
    EXPECT_TRUE(!status.ok() || stored);
    if (!stored) continue;
    EXPECT_OK(
        catalog_->SetDefaults(fields, models, [] { return absl::OkStatus(); }));
    EXPECT_EQ(catalog_->record().schema.key_fields[0].model, wanted.name);
  }
}

TEST_F(LiveCatalogTest, WithoutMemoryEncodersThatAreStoredAreUsed) {
  TextEncoderParts parts;
  parts.terms = {"clock"};
  parts.idf = {1};
  parts.dim = 1;
  parts.projection = {1};
  bool befell = true;
  for (int nth = 1; befell; ++nth) {
    SCOPED_TRACE(nth);
    disk_ = std::make_shared<FakeDisk>();
    OpenCatalog(OneFieldSchema(1));
    std::vector<LiveCatalog::FieldEncoder> encoders;
    encoders.push_back({0, *TextEncoder::Create(parts)});
    befell = WithoutMemoryAt(
        nth, [&] { catalog_->SetEncoders(std::move(encoders)).IgnoreError(); });
    MutexLock lock(&disk_->mutex);
    EXPECT_EQ(catalog_->snapshot()->encoders[0] != nullptr,
              !disk_->encoders["vec"].empty());
  }
}

// What the background threads do is done again.
TEST_F(LiveCatalogTest, WithoutMemoryBackgroundWorkIsPutOffAndNotForgotten) {
  CatalogSchema schema = OneFieldSchema(4);
  schema.key_fields[0].index_kind = IndexKind::kIvf;
  LiveCatalogOptions options;
  options.settle_time = absl::ZeroDuration();
  options.retry_time = absl::Milliseconds(1);
  const std::vector<Item> items = RandomItems(30, 4, 5);
  bool befell = true;
  int nth = 0;
  while (befell) {
    nth += 1 + nth / 4;
    SCOPED_TRACE(nth);
    disk_ = std::make_shared<FakeDisk>();
    OpenCatalog(schema, options);
    {
      const FailingElsewhere failing(nth);
      Upsert(items);
      catalog_->AwaitIndexes();
      befell = failing.befell();
    }
    // It may have come to nothing yet, by a pause.
    catalog_->AwaitIndexes();
    EXPECT_EQ(catalog_->snapshot()->segments[0].segment->indexes[0]->kind(),
              IndexKind::kIvf);
    EXPECT_EQ(IdsOf(*Ask(VectorQuery({1, 0, 0, 0}))).size(), 10);
  }
  EXPECT_TRUE(nth > 1 || kSanitized);
}

// What a write that is done can't schedule the next one does.
TEST_F(LiveCatalogTest, WithoutMemoryAMergeIsPutOffAndNotForgotten) {
  CatalogSchema schema = OneFieldSchema(4);
  schema.key_fields[0].index_kind = IndexKind::kIvf;
  const std::vector<Item> items = RandomItems(30, 4, 5);
  bool befell = true;
  for (int nth = 1; befell; ++nth) {
    SCOPED_TRACE(nth);
    disk_ = std::make_shared<FakeDisk>();
    CatalogRecord record;
    record.name = "shop";
    record.schema = schema;
    LiveCatalogOptions options;
    options.settle_time = absl::ZeroDuration();
    BackgroundWorker background;  // which needs memory for its first task
    ASSERT_OK_AND_ASSIGN(const auto catalog,
                         LiveCatalog::Open(record, std::vector<NamedModel>(1),
                                           std::make_unique<FakeStore>(disk_),
                                           &background, options));
    std::optional<FailingAllocation> failing;
    const auto set_when_written = [&](std::function<void()> then) {
      MutexLock lock(&disk_->mutex);
      disk_->when_written = std::move(then);
    };
    set_when_written([&] { failing.emplace(nth); });
    const absl::Status written = catalog->Upsert(items, "").status();
    befell = failing->befell();
    failing.reset();
    EXPECT_OK(written);
    set_when_written(nullptr);
    ASSERT_OK(catalog->Upsert(items, ""));
    for (int i = 0; i < 5000; ++i) {
      if (catalog->index_states()[0].active_kind == IndexKind::kIvf) break;
      absl::SleepFor(absl::Milliseconds(1));
    }
    ASSERT_EQ(catalog->index_states()[0].active_kind, IndexKind::kIvf);
  }
}

TEST_F(LiveCatalogTest, CloseKeepsSnapshotsAndRefusesWrites) {
  OpenCatalog(OneFieldSchema(1));
  Upsert({MakeItem("a", {1})});
  catalog_->Close();
  EXPECT_THAT(catalog_->Upsert(std::vector{MakeItem("b", {1})}, ""),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("deleted")));
  EXPECT_THAT(StoredItems(*catalog_, "", 1),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("deleted")));
  ASSERT_OK_AND_ASSIGN(const AttendAnswer answer, Ask(VectorQuery({1})));
  EXPECT_THAT(IdsOf(answer), ElementsAre("a"));
  EXPECT_EQ(catalog_->store_figures().memory_bytes(), 0);
}

TEST_F(LiveCatalogTest, ASnapshotKnowsSinceWhenItIsSeen) {
  OpenCatalog(OneFieldSchema(1));
  const SteadyTime opened = catalog_->snapshot()->publish_time;
  EXPECT_GT(opened, SteadyTime());
  const SteadyTime before = SteadyNow();
  Upsert({MakeItem("a", {1})});
  EXPECT_GE(catalog_->snapshot()->publish_time, before);
  EXPECT_LE(catalog_->snapshot()->publish_time, SteadyNow());
}

TEST_F(LiveCatalogTest, MemoryGrowsWithTheKeys) {
  OpenCatalog(OneFieldSchema(128));
  const std::int64_t empty = catalog_->memory_bytes();
  Upsert(RandomItems(1000, 128, 1));
  EXPECT_GE(catalog_->memory_bytes() - empty, 1000 * 128 * 4);
}

// Accounts of a catalog and no more: what the test's process holds is not
// looked at.
class MemoryLimitTest : public CatalogFixture {
 protected:
  void Open(std::int64_t limit_bytes, IndexKind kind = IndexKind::kFlat) {
    MemoryBudget::Options limits;
    limits.limit_bytes = limit_bytes;
    catalog_ = nullptr;  // counts in the one before
    budget_ = std::make_unique<MemoryBudget>(limits);
    LiveCatalogOptions options;
    options.memory = budget_.get();
    options.retry_time = absl::Milliseconds(1);
    CatalogSchema schema = OneFieldSchema(64);
    schema.key_fields[0].index_kind = kind;
    OpenCatalog(schema, options);
  }
  // Writes of 100 items until one is refused; the last status.
  absl::Status Fill() {
    absl::Status status;
    for (int seed = 0; status.ok(); ++seed) {
      std::vector<Item> items = RandomItems(100, 64, seed);
      for (Item& item : items) item.id += "-" + std::to_string(seed);
      status = catalog_->Upsert(items, "").status();
    }
    return status;
  }
  ~MemoryLimitTest() override { catalog_ = nullptr; }

  std::unique_ptr<MemoryBudget> budget_;
};

TEST_F(MemoryLimitTest, WritesAreRefusedAndReadsAndDeletesGoOn) {
  constexpr std::int64_t kLimit = 4 << 20;
  Open(kLimit);
  const absl::Status full = Fill();
  EXPECT_THAT(full, StatusIs(absl::StatusCode::kResourceExhausted,
                             HasSubstr("memory is full")));
  EXPECT_EQ(ReasonOf(full), "MEMORY_LIMIT");
  EXPECT_LE(budget_->use().counted_bytes, kLimit);
  EXPECT_GE(budget_->use().counted_bytes, kLimit * 8 / 10);
  EXPECT_EQ(budget_->use().counted_bytes, catalog_->memory_bytes());
  const std::int64_t sequence = catalog_->snapshot()->sequence;
  const std::int64_t item_count = catalog_->snapshot()->item_count();
  EXPECT_THAT(catalog_->Import(RandomItems(100, 64, 99)).status(),
              StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("")));
  EXPECT_EQ(catalog_->snapshot()->sequence, sequence);
  EXPECT_OK(Ask(VectorQuery(std::vector<float>(64, 1))));
  EXPECT_OK(ItemsIn(*catalog_, {"item1-0"}));
  Delete({"item1-0"});
  EXPECT_EQ(catalog_->snapshot()->item_count(), item_count - 1);
}

TEST_F(MemoryLimitTest, WritesResumeWhenMemoryIsFree) {
  Open(4 << 20);
  MemoryBudget::Account other = budget_->OpenAccount();
  other.Set(4 << 20);
  EXPECT_THAT(catalog_->Upsert(RandomItems(1, 64, 1), "").status(),
              StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("")));
  other.Set(0);
  EXPECT_OK(catalog_->Upsert(RandomItems(1, 64, 1), ""));
  catalog_ = nullptr;
  EXPECT_EQ(budget_->use().counted_bytes, 0);
}

TEST_F(MemoryLimitTest, WritesThatFitButNotTogetherAreNotBothTaken) {
  const std::vector<Item> items = RandomItems(2000, 64, 1);
  Open(0);
  Upsert(items);
  const std::int64_t both = 2 * budget_->use().counted_bytes;
  const auto other_disk = std::make_shared<FakeDisk>();
  disk_ = std::make_shared<FakeDisk>();
  Open(both);
  CatalogRecord record;
  record.name = "other";
  record.schema = schema_;
  ASSERT_OK_AND_ASSIGN(
      const auto other,
      LiveCatalog::Open(record, std::vector<NamedModel>(1),
                        std::make_unique<FakeStore>(other_disk), &background_,
                        options_));
  {
    MutexLock lock(&disk_->mutex);
    disk_->held = true;
  }
  std::thread first([&] { Upsert(items); });
  {
    MutexLock lock(&disk_->mutex);
    while (disk_->write_count == 0) disk_->changed.Wait(&disk_->mutex);
  }
  // A write takes for a while about twice what stays of it.
  EXPECT_THAT(other->Upsert(items, "").status(),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       HasSubstr("the write wants")));
  {
    MutexLock lock(&disk_->mutex);
    disk_->held = false;
  }
  disk_->changed.NotifyAll();
  first.join();
}

TEST_F(MemoryLimitTest, EncodersAreCountedWhileTheyAreStored) {
  TextEncoderParts parts;
  parts.terms = {"clock"};
  parts.idf = {1};
  parts.dim = 64;
  parts.projection.assign(64, 1);
  Open(0);
  const std::int64_t before = budget_->use().counted_bytes;
  {
    MutexLock lock(&disk_->mutex);
    disk_->held = true;
  }
  std::thread setter(
      [&] { EXPECT_OK(SetEncoder(*catalog_, *TextEncoder::Create(parts))); });
  std::int64_t counted = 0;
  {
    MutexLock lock(&disk_->mutex);
    while (disk_->write_count == 0) disk_->changed.Wait(&disk_->mutex);
    counted = budget_->use().counted_bytes;
    disk_->held = false;
  }
  disk_->changed.NotifyAll();
  setter.join();
  EXPECT_EQ(counted, budget_->use().counted_bytes);
  EXPECT_GT(counted, before);
}

// What merges then free is more than what they take.
TEST_F(MemoryLimitTest, DeletesFreeMemoryThoughThereIsNone) {
  constexpr std::int64_t kLimit = 16 << 20;
  Open(kLimit);
  EXPECT_FALSE(Fill().ok());
  MemoryBudget::Account other = budget_->OpenAccount();
  other.Set(kLimit);
  std::vector<std::string> ids;
  const auto snapshot = catalog_->snapshot();
  for (const SegmentView& view : snapshot->segments) {
    for (RowIndex row = 0; row < view.row_end; ++row) {
      ids.emplace_back(view.segment->rows->Id(row));
    }
  }
  // All but a tenth.
  ids.resize(ids.size() * 9 / 10);
  ASSERT_OK(catalog_->Delete(ids, ""));
  catalog_->AwaitIndexes();
  EXPECT_OK(catalog_->merge_status());
  EXPECT_LE(catalog_->memory_bytes(), kLimit / 4);
  other.Set(0);
  EXPECT_OK(catalog_->Upsert(RandomItems(1, 64, 99), ""));
}

TEST_F(MemoryLimitTest, AnIndexBuildWithoutRoomIsPutOffAndThenMade) {
  constexpr std::int64_t kLimit = 64 << 20;
  Open(kLimit, IndexKind::kIvf);
  MemoryBudget::Account other = budget_->OpenAccount();
  other.Set(kLimit - (4 << 20));
  Upsert(RandomItems(5000, 64, 1));
  catalog_->AwaitIndexes();
  EXPECT_THAT(catalog_->merge_status(),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       HasSubstr("an index build wants")));
  EXPECT_EQ(catalog_->index_states()[0].active_kind, IndexKind::kFlat);
  EXPECT_OK(Ask(VectorQuery(std::vector<float>(64, 1))));
  // No write is needed.
  other.Set(0);
  while (catalog_->index_states()[0].active_kind != IndexKind::kIvf) {
    absl::SleepFor(absl::Milliseconds(1));
    catalog_->AwaitIndexes();
  }
  EXPECT_OK(catalog_->merge_status());
  background_.Remove(catalog_.get());
  EXPECT_EQ(budget_->use().counted_bytes, catalog_->memory_bytes());
}

// Nobody has to write, nor to wait for memory.
TEST_F(MemoryLimitTest, AnIndexBuildThatIsNotWantedAnyMoreHasNotFailed) {
  constexpr std::int64_t kLimit = 64 << 20;
  Open(kLimit, IndexKind::kIvf);
  MemoryBudget::Account other = budget_->OpenAccount();
  other.Set(kLimit - (4 << 20));
  Upsert(RandomItems(5000, 64, 1));
  catalog_->AwaitIndexes();
  EXPECT_THAT(
      catalog_->merge_status(),
      StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("index build")));
  std::vector<KeyFieldSchema> fields = schema_.key_fields;
  fields[0].index_kind = IndexKind::kFlat;
  SetDefaults(fields, {NamedModel()});
  catalog_->AwaitIndexes();
  EXPECT_OK(catalog_->merge_status());
}

}  // namespace
}  // namespace attendant
