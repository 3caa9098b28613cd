// Segments that are sealed, merged and retrained while writes continue.
#include <gmock/gmock.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <future>
#include <set>
#include <thread>

#include "absl/cleanup/cleanup.h"
#include "core/base/fail_point.h"
#include "core/catalog/live/rebuild.h"
#include "core/catalog/segments/merge_plan.h"
#include "core/shortlist/ivf/ivf_index.h"
#include "tests/core/catalog/catalog_fixture.h"

namespace attendant {
namespace {

constexpr std::int64_t kSealCount = MergeLimits().seal_count;

using ::testing::Each;
using ::testing::SizeIs;

class SealingTest : public CatalogFixture {
 protected:
  static constexpr int kDim = 8;

  // Writes settle only when a test waits for it.
  void SetUp() override {
    CatalogSchema schema = OneFieldSchema(kDim);
    schema.key_fields[0].index_kind = IndexKind::kIvf;
    LiveCatalogOptions options;
    options.settle_time = absl::Hours(1);
    OpenCatalog(schema, options);
  }

  // Returns items PREFIX0, PREFIX1, ...
  static std::vector<Item> Items(const std::string& prefix, int count,
                                 std::uint64_t seed, float shift = 0) {
    std::vector<Item> items = RandomItems(count, kDim, seed);
    for (int i = 0; i < count; ++i) {
      items[i].id = prefix + std::to_string(i);
      for (float& x : items[i].keys[0]) x += shift;
    }
    return items;
  }

  // Writes in batches, as imports do.
  void Write(const std::vector<Item>& items) {
    for (std::size_t i = 0; i < items.size(); i += 500) {
      ASSERT_OK(catalog_->Import(std::span(items).subspan(
          i, std::min<std::size_t>(500, items.size() - i))));
    }
  }

  static const IvfIndex* IvfOf(const SegmentView& view) {
    const KeyIndex& index = *view.segment->indexes[0];
    if (index.kind() != IndexKind::kIvf) return nullptr;
    return static_cast<const IvfIndex*>(&index);
  }

  std::int64_t UnsealedCount() const {
    std::int64_t count = 0;
    const auto snapshot = catalog_->snapshot();
    for (const SegmentView& view : snapshot->segments) {
      if (IvfOf(view) == nullptr) count += view.row_end;
    }
    return count;
  }

  bool IsSealed(std::size_t i) const {
    const auto snapshot = catalog_->snapshot();
    return i < snapshot->segments.size() &&
           IvfOf(snapshot->segments[i]) != nullptr;
  }

  template <typename Condition>
  void WaitFor(Condition condition) {
    const auto end =
        std::chrono::steady_clock::now() + std::chrono::seconds(50);
    while (!condition()) {
      ASSERT_LT(std::chrono::steady_clock::now(), end);
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  }

  std::multiset<std::string> Ids() const {
    std::multiset<std::string> ids;
    const auto snapshot = catalog_->snapshot();
    for (const SegmentView& view : snapshot->segments) {
      for (RowIndex row = 0; row < view.row_end; ++row) {
        if (view.IsLive(row)) {
          ids.insert(std::string(view.segment->rows->Id(row)));
        }
      }
    }
    return ids;
  }
};

TEST_F(SealingTest, FullSegmentsAreSealedByTheOneTraining) {
  Write(Items("a", 6000, 1));
  catalog_->AwaitIndexes();
  ASSERT_THAT(catalog_->snapshot()->segments, SizeIs(1));
  const auto training = IvfOf(catalog_->snapshot()->segments[0])->training();
  Write(Items("b", 12000, 2));
  WaitFor([&] { return UnsealedCount() < 2 * kSealCount; });
  ASSERT_OK(catalog_->merge_status());
  const auto snapshot = catalog_->snapshot();
  EXPECT_GT(snapshot->segments.size(), 1);
  for (const SegmentView& view : snapshot->segments) {
    if (const IvfIndex* index = IvfOf(view)) {
      EXPECT_EQ(index->training(), training);
    }
  }
  EXPECT_THAT(Ids(), SizeIs(18000));
  // After writes settle, the segments become one. It has three times the keys,
  // enough to learn new lists.
  catalog_->AwaitIndexes();
  ASSERT_THAT(catalog_->snapshot()->segments, SizeIs(1));
  const IvfIndex* merged = IvfOf(catalog_->snapshot()->segments[0]);
  EXPECT_NE(merged->training(), training);
  EXPECT_EQ(merged->trained_key_count(), 18000);
}

// Each segment draws keys for its own share of the precision.
TEST_F(SealingTest, SeveralSegmentsMeetAPrecisionWithoutAScanOfAll) {
  // Keys long enough that codes are read from 4,096 keys on, instead of all
  // floats.
  constexpr std::int64_t kLongDim = 65;
  CatalogSchema schema = OneFieldSchema(kLongDim);
  schema.key_fields[0].index_kind = IndexKind::kIvf;
  LiveCatalogOptions options;
  options.settle_time = absl::Hours(1);
  OpenCatalog(schema, options);
  std::vector<Item> items = RandomItems(14000, kLongDim, 1);
  Write({items.begin(), items.begin() + 8000});
  catalog_->AwaitIndexes();
  Write({items.begin() + 8000, items.end()});
  const auto large_count = [&] {
    const auto snapshot = catalog_->snapshot();
    return std::ranges::count_if(
        snapshot->segments,
        [](const SegmentView& view) { return view.row_end >= 4096; });
  };
  WaitFor([&] { return large_count() == 2; });
  constexpr int kQueries = 40;
  int estimated = 0;
  for (const Item& item : RandomItems(kQueries, kLongDim, 2)) {
    AttendQuery query = VectorQuery(item.keys[0]);
    query.temperature = 4;
    query.mass_precision = 0.005;
    query.result_count = 10;
    ASSERT_OK_AND_ASSIGN(const AttendAnswer answer, Ask(query));
    estimated += answer.returned_mass.method == MassMethod::kEstimate ? 1 : 0;
  }
  // The number of draws needed is itself random.
  EXPECT_GE(estimated, kQueries * 9 / 10);
}

TEST_F(SealingTest, WhatWasMergedGoesWithItsLastReader) {
  Write(Items("a", 3000, 1));
  std::shared_ptr<const Snapshot> held = catalog_->snapshot();
  const std::weak_ptr<const Segment> merged = held->segments[0].segment;
  catalog_->AwaitIndexes();
  ASSERT_NE(IvfOf(catalog_->snapshot()->segments[0]), nullptr);
  ASSERT_FALSE(merged.expired());
  EXPECT_EQ(held->segments[0].segment->rows->Id(0), "a0");
  held = nullptr;
  WaitFor([&] { return merged.expired(); });
}

TEST_F(SealingTest, WhatDiesWhileSegmentsAreSealedStaysDead) {
  Write(Items("a", 5000, 1));
  catalog_->AwaitIndexes();
  std::multiset<std::string> expected = Ids();
  for (int round = 0; round < 12; ++round) {
    const std::string prefix = "r" + std::to_string(round) + "-";
    const std::vector<Item> items =
        Items(prefix, 1500, static_cast<std::uint64_t>(round) + 10);
    Write(items);
    std::vector<std::string> gone;
    for (int i = 0; i < 1500; ++i) {
      if (i % 3 == 0)
        gone.push_back(prefix + std::to_string(i));
      else
        expected.insert(prefix + std::to_string(i));
    }
    for (int i = round * 100; i < round * 100 + 50; ++i) {
      gone.push_back("a" + std::to_string(i));
      expected.erase("a" + std::to_string(i));
    }
    ASSERT_OK(catalog_->Delete(gone, ""));
  }
  WaitFor([&] { return UnsealedCount() < 2 * kSealCount; });
  EXPECT_EQ(Ids(), expected);
  EXPECT_EQ(catalog_->snapshot()->item_count(),
            static_cast<std::int64_t>(expected.size()));
  catalog_->AwaitIndexes();
  EXPECT_EQ(Ids(), expected);
  Restart();
  EXPECT_EQ(Ids(), expected);
}

// The shortlist of many segments equals that of the segment they become.
TEST_F(SealingTest, SealedSegmentsAnswerAsOneDoes) {
  Write(Items("a", 8000, 1));
  catalog_->AwaitIndexes();
  Write(Items("b", 3900, 2));
  // The bound between a part and the whole must hold for masses too.
  AttendQuery query = VectorQuery({1, -1, .5, 2, 0, -.25, .75, 1});
  query.mass_precision = 0.05;
  const auto ask = [&](ScanMode mode) {
    query.scan_mode = mode;
    auto answer = Ask(query);
    EXPECT_OK(answer);
    return IdsOf(*answer);
  };
  const std::vector<std::string> apart = ask(ScanMode::kAuto);
  EXPECT_EQ(apart, ask(ScanMode::kExact));
  catalog_->AwaitIndexes();
  EXPECT_EQ(apart, ask(ScanMode::kAuto));
}

TEST_F(SealingTest, GrowingRowsAreScoredByTheirLists) {
  Write(Items("a", 8000, 1));
  catalog_->AwaitIndexes();
  AttendQuery query = VectorQuery({1, -1, .5, 2, 0, -.25, .75, 1});
  query.recall = 0.8;
  const auto scored_count = [&] {
    auto answer = Ask(query);
    EXPECT_OK(answer);
    return answer->scored_count;
  };
  const std::int64_t of_sealed = scored_count();
  ASSERT_LT(of_sealed, 8000);
  constexpr int kCount = 100;
  Write(Items("b", kCount, 2));
  const std::int64_t of_growing = scored_count() - of_sealed;
  EXPECT_GT(of_growing, 0);
  EXPECT_LT(of_growing, kCount / 2);
  // A guaranteed recall scores every key.
  query.recall = 1;
  EXPECT_EQ(scored_count(), 8000 + kCount);
}

// A merge of everything takes seconds, during which every query would score
// unsealed keys one by one.
TEST_F(SealingTest, NoSealWaitsForAMerge) {
  Write(Items("a", 6000, 1));
  catalog_->AwaitIndexes();
  std::promise<void> go;
  background_.Add(nullptr, absl::ZeroDuration(),
                  [gone = go.get_future().share()] { gone.wait(); });
  Write(Items("b", 7000, 2));
  WaitFor([&] { return UnsealedCount() < 2 * kSealCount; });
  EXPECT_GT(catalog_->snapshot()->segments.size(), 1);
  go.set_value();
  EXPECT_THAT(Ids(), SizeIs(13000));
}

// Another catalog's rebuild may take arbitrarily long while cores are busy, and
// without an index every query scores all keys.
TEST_F(SealingTest, NoFirstIndexWaitsForALongTask) {
  std::promise<void> go;
  background_.Add(nullptr, absl::ZeroDuration(),
                  [gone = go.get_future().share()] { gone.wait(); });
  const absl::Cleanup let_go = [&] { go.set_value(); };
  Write(Items("a", 6000, 1));
  catalog_->AwaitIndexes();
  ASSERT_OK(catalog_->merge_status());
  EXPECT_TRUE(IsSealed(0));
  // Once there is an index, later builds wait like others.
  std::vector<KeyFieldSchema> fields = catalog_->snapshot()->schema->key_fields;
  fields[0].index_kind = IndexKind::kPq;
  SetDefaults(fields, {NamedModel()});
  EXPECT_TRUE(catalog_->index_states()[0].training);
  EXPECT_EQ(catalog_->index_states()[0].active_kind, IndexKind::kIvf);
}

TEST_F(SealingTest, OnlyWhatIsBehindAMergeIsSealed) {
  Write(Items("a", 6000, 1));
  catalog_->AwaitIndexes();
  std::promise<void> go;
  background_.Add(nullptr, absl::ZeroDuration(),
                  [gone = go.get_future().share()] { gone.wait(); });
  // Fewer rows than a seal takes.
  Write(Items("b", 1500, 2));
  const auto snapshot = catalog_->snapshot();
  ASSERT_THAT(snapshot->segments, SizeIs(3));
  // A copy with more segments, as if none were still growing.
  Snapshot full = *snapshot;
  full.segments.push_back(full.segments[1]);
  full.segments.push_back(full.segments[1]);
  const auto plan_behind = [&](std::size_t i) {
    return PlanSeal(full, nullptr, full.segments[i].segment.get());
  };
  EXPECT_EQ(PlanSeal(full, nullptr, nullptr).first, 1);
  EXPECT_EQ(PlanSeal(full, nullptr, nullptr).end, 5);
  EXPECT_EQ(plan_behind(0).first, 1);
  EXPECT_EQ(plan_behind(2).first, 3);
  EXPECT_EQ(plan_behind(2).end, 5);
  const Segment* last = full.segments[2].segment.get();
  EXPECT_TRUE((MergePlan{0, 3}.TakesFrom(full, last)));
  EXPECT_TRUE((MergePlan{3, 5}.TakesFrom(full, last)));
  EXPECT_FALSE((MergePlan{0, 2}.TakesFrom(full, last)));
  EXPECT_FALSE((MergePlan{0, 5}.TakesFrom(full, nullptr)));
  // 1,024 rows are too few.
  full.segments.pop_back();
  EXPECT_FALSE(plan_behind(2).needed());
  go.set_value();
}

// A long merge must not leave queries with ever more segments.
TEST_F(SealingTest, OfManySealedSegmentsTheSmallestAreMergedBesideAMerge) {
  Write(Items("a", 6000, 1));
  catalog_->AwaitIndexes();
  std::promise<void> go;
  background_.Add(nullptr, absl::ZeroDuration(),
                  [gone = go.get_future().share()] { gone.wait(); });
  constexpr int kRounds = 11;
  for (int i = 0; i < kRounds; ++i) {
    Write(Items("b" + std::to_string(i) + "-", 2 * kSealCount,
                static_cast<std::uint64_t>(i) + 2));
    WaitFor([&] { return UnsealedCount() < 2 * kSealCount; });
  }
  // Plus the segment that still grows.
  WaitFor(
      [&] { return catalog_->snapshot()->segments.size() <= kManySealed + 2; });
  go.set_value();
  EXPECT_THAT(Ids(), SizeIs(6000 + kRounds * 2 * kSealCount));
  ASSERT_OK(catalog_->merge_status());
}

TEST_F(SealingTest, TheFewestRowsOfManySegmentsAreMerged) {
  Write(Items("a", 12000, 1));
  catalog_->AwaitIndexes();
  Write(Items("b", 5000, 2));
  WaitFor([&] { return IsSealed(1); });
  const auto snapshot = catalog_->snapshot();
  const SegmentView& many = snapshot->segments[0];
  const SegmentView& few = snapshot->segments[1];
  Snapshot full = *snapshot;
  full.segments = {many, few, few, many, few, few, few, few, few};
  const MergePlan plan = PlanSeal(full, nullptr, nullptr);
  EXPECT_EQ(plan.first, 4);
  EXPECT_EQ(plan.end, 8);
  // Seven segments behind the first are too few, as are those behind the
  // segment being merged.
  EXPECT_FALSE(
      PlanSeal(full, nullptr, full.segments[1].segment.get()).needed());
  full.segments.pop_back();
  EXPECT_FALSE(PlanSeal(full, nullptr, nullptr).needed());
}

// Otherwise queries would search the lists of two trainings.
TEST_F(SealingTest, WhatWasSealedBesideATrainingGoesToItsListsAtOnce) {
  Write(Items("a", 12000, 1));
  catalog_->AwaitIndexes();
  Write(Items("b", 5000, 2));
  WaitFor([&] { return IsSealed(1); });
  const auto before = catalog_->snapshot();
  // Once writes settle, this many keys are enough to learn new lists.
  Write(Items("c", 6000, 3));
  catalog_->AwaitIndexes();
  const auto after = catalog_->snapshot();
  ASSERT_THAT(after->segments, SizeIs(1));
  const auto training = IvfOf(after->segments[0])->training();
  ASSERT_NE(training, IvfOf(before->segments[1])->training());

  Snapshot mixed = *after;
  mixed.segments.push_back(before->segments[1]);
  for (const bool settled : {false, true}) {
    const MergePlan plan = PlanMerge(mixed, mixed.models, nullptr, settled);
    EXPECT_EQ(plan.first, 1);
    EXPECT_EQ(plan.end, 2);
    EXPECT_FALSE(plan.retrains);
  }
  const std::atomic<bool> cancelled = false;
  const auto merged =
      MergeSegments(mixed, PlanMerge(mixed, mixed.models, nullptr, false),
                    mixed.models, disk_->scratch_files, cancelled);
  ASSERT_OK(merged);
  EXPECT_EQ(static_cast<const IvfIndex&>(*(*merged)->indexes[0]).training(),
            training);
  mixed.segments[1].segment = *merged;
  EXPECT_FALSE(PlanMerge(mixed, mixed.models, nullptr, false).needed());
}

// Small segments don't justify merging everything; a merge scheduled for them
// may find that writes have settled.
TEST_F(SealingTest, WhatIsMergedAmongWritesIsMergedOnceTheySettle) {
  Write(Items("a", 12000, 1));
  catalog_->AwaitIndexes();
  Snapshot snapshot = *catalog_->snapshot();
  ASSERT_THAT(snapshot.segments, SizeIs(1));
  SegmentView small = snapshot.segments[0];
  small.row_end = small.live_count = small.live_key_counts[0] = 400;
  snapshot.segments.insert(snapshot.segments.end(), 2, small);
  for (const bool settled : {false, true}) {
    SCOPED_TRACE(settled);
    const MergePlan plan =
        PlanMerge(snapshot, snapshot.models, nullptr, settled);
    EXPECT_EQ(plan.first, 1);
    EXPECT_EQ(plan.end, 3);
    EXPECT_FALSE(plan.retrains);
  }
}

// Rows are sealed and deleted while everything is rebuilt.
TEST_F(SealingTest, SealsAndMergesAtOnceLoseNothing) {
  Write(Items("a", 5000, 1));
  catalog_->AwaitIndexes();
  std::multiset<std::string> expected = Ids();
  std::vector<KeyFieldSchema> fields = catalog_->snapshot()->schema->key_fields;
  for (int round = 0; round < 6; ++round) {
    fields[0].keys_on_disk = !fields[0].keys_on_disk;
    SetDefaults(fields, {NamedModel()});
    const std::string prefix = "r" + std::to_string(round) + "-";
    for (int part = 0; part < 4; ++part) {
      const std::string id = prefix + std::to_string(part) + "-";
      Write(Items(id, 1500, static_cast<std::uint64_t>(round * 4 + part) + 10));
      std::vector<std::string> gone;
      for (int i = 0; i < 1500; ++i) {
        if (i % 5 == 0) {
          gone.push_back(id + std::to_string(i));
        } else {
          expected.insert(id + std::to_string(i));
        }
      }
      gone.push_back("a" + std::to_string(round * 4 + part));
      expected.erase(gone.back());
      ASSERT_OK(catalog_->Delete(gone, ""));
    }
    ASSERT_EQ(Ids(), expected);
  }
  catalog_->AwaitIndexes();
  ASSERT_OK(catalog_->merge_status());
  EXPECT_EQ(Ids(), expected);
  EXPECT_THAT(catalog_->snapshot()->segments, SizeIs(1));
}

// A seal and a merge are both built before either is published, so the second
// is published into a snapshot that it was not built from.
class PublicationOrderTest : public SealingTest,
                             public ::testing::WithParamInterface<bool> {};

TEST_P(PublicationOrderTest, ASealAndAMergeAreBothThereInTheEnd) {
  const bool seal_comes_first = GetParam();
  Write(Items("a", 6000, 1));
  catalog_->AwaitIndexes();
  // Fewer rows than a seal takes: the merge makes three segments one.
  Write(Items("c", 1500, 3));
  ASSERT_THAT(catalog_->snapshot()->segments, SizeIs(3));
  std::multiset<std::string> expected = Ids();
  ASSERT_OK(ArmFailPoint("merge.before_publish=wait,seal.before_publish=wait"));
  std::future<void> awaiting;  // destroyed after `go`
  const absl::Cleanup go = [] { EXPECT_OK(ArmFailPoint("")); };
  std::vector<KeyFieldSchema> fields = catalog_->snapshot()->schema->key_fields;
  fields[0].keys_on_disk = true;
  SetDefaults(fields, {NamedModel()});
  awaiting =
      std::async(std::launch::async, [this] { catalog_->AwaitIndexes(); });
  WaitFor([] { return WaitingAtFailPoints() == 1; });
  Write(Items("b", 7000, 2));
  for (int i = 0; i < 7000; ++i) expected.insert("b" + std::to_string(i));
  WaitFor([] { return WaitingAtFailPoints() == 2; });
  const auto lose = [&](const std::vector<std::string>& ids) {
    ASSERT_OK(catalog_->Delete(ids, ""));
    for (const std::string& id : ids) expected.erase(id);
    EXPECT_EQ(Ids(), expected);
  };
  // Rows of the merge and of the seal; one item of each is also rewritten.
  lose({"a0", "a5999", "b0", "b2"});
  Upsert({MakeItem("a1", std::vector<float>(kDim, 9)),
          MakeItem("b1", std::vector<float>(kDim, 8))});
  const auto before = catalog_->snapshot();
  ASSERT_OK(ArmFailPoint(seal_comes_first ? "merge.before_publish=wait"
                                          : "seal.before_publish=wait"));
  WaitFor([&] {
    return catalog_->snapshot()->segments.size() < before->segments.size() ||
           catalog_->snapshot()->segments[0].segment !=
               before->segments[0].segment;
  });
  EXPECT_EQ(WaitingAtFailPoints(), 1);
  EXPECT_EQ(
      catalog_->snapshot()->segments[0].segment == before->segments[0].segment,
      seal_comes_first);
  EXPECT_EQ(Ids(), expected);
  lose({"a3", "b3"});
  ASSERT_OK(ArmFailPoint(""));
  awaiting.wait();
  ASSERT_OK(catalog_->merge_status());
  EXPECT_EQ(Ids(), expected);
  EXPECT_THAT(catalog_->snapshot()->segments, SizeIs(1));
  const auto after = catalog_->snapshot();
  EXPECT_THAT(after->KeyOf(*after->Find("a1"), 0), Each(9));
  EXPECT_THAT(after->KeyOf(*after->Find("b1"), 0), Each(8));
}

INSTANTIATE_TEST_SUITE_P(EitherFirst, PublicationOrderTest, ::testing::Bool());

TEST_F(SealingTest, DriftedKeysAreLearnedAnew) {
  Write(Items("a", 6000, 1));
  catalog_->AwaitIndexes();
  const auto training = IvfOf(catalog_->snapshot()->segments[0])->training();
  // Too few keys to retrain on account of their number.
  Write(Items("b", 2500, 2, /*shift=*/30));
  catalog_->AwaitIndexes();
  const IvfIndex* index = IvfOf(catalog_->snapshot()->segments[0]);
  EXPECT_NE(index->training(), training);
  EXPECT_EQ(index->trained_key_count(), 8500);
}

class TwoFieldSealingTest : public SealingTest {
 protected:
  void SetUp() override {
    CatalogSchema schema = OneFieldSchema(kDim);
    schema.key_fields[0].index_kind = IndexKind::kIvf;
    schema.key_fields.push_back(schema.key_fields[0]);
    schema.key_fields[1].name = "rare";
    LiveCatalogOptions options;
    options.settle_time = absl::Hours(1);
    OpenCatalog(schema, options);
  }

  // Items with keys in one field and none in the other.
  static std::vector<Item> OfField(std::size_t field, std::vector<Item> items) {
    for (Item& item : items) {
      item.keys.resize(2);
      if (field == 1) item.keys[0].swap(item.keys[1]);
    }
    return items;
  }
  void WriteAndAwait(std::size_t field, const std::vector<Item>& items) {
    Write(OfField(field, items));
    catalog_->AwaitIndexes();
  }
  std::shared_ptr<const IvfTraining> Training() const {
    return catalog_->snapshot()->TrainingOf(0, -1);
  }
};

TEST_F(TwoFieldSealingTest, FewKeysOfAFieldTrainNoOther) {
  WriteAndAwait(0, Items("a", 6000, 1));
  WriteAndAwait(1, Items("b", 20, 2));
  const auto training = Training();
  // Less than a quarter of the keys, then several times as many.
  for (int i = 0; i < 17; ++i) Delete({"b" + std::to_string(i)});
  catalog_->AwaitIndexes();
  EXPECT_EQ(Training(), training);
  WriteAndAwait(1, Items("c", 100, 3));
  EXPECT_EQ(Training(), training);
  // This many keys justify retraining.
  WriteAndAwait(1, Items("d", 1200, 4));
  EXPECT_NE(Training(), training);
}

TEST_F(TwoFieldSealingTest, FewKeysThatDriftTrainNoOtherField) {
  Write(OfField(1, Items("b", 10, 2)));
  WriteAndAwait(0, Items("a", 6000, 1));
  const auto training = Training();
  Write(OfField(1, Items("c", 4, 3, /*shift=*/30)));
  // Enough keys that all segments are merged into one.
  WriteAndAwait(0, Items("d", 1100, 4));
  ASSERT_THAT(catalog_->snapshot()->segments, SizeIs(1));
  // The drifted keys lie in lists of other keys, far from the means.
  WriteAndAwait(0, Items("e", 1, 5));
  EXPECT_EQ(Training(), training);
}

// Rows written during the training lie in the lists of the old one.
TEST_F(SealingTest, WhatIsWrittenAfterATrainingGoesToItsLists) {
  Write(Items("a", 6000, 1));
  catalog_->AwaitIndexes();
  const auto training = IvfOf(catalog_->snapshot()->segments[0])->training();
  Write(Items("b", 2500, 2, /*shift=*/30));
  auto trained =
      std::async(std::launch::async, [this] { catalog_->AwaitIndexes(); });
  auto write_one = [&, i = 0]() mutable {
    Write(Items("c" + std::to_string(i++) + "-", 1, 3));
    return catalog_->snapshot();
  };
  const auto training_of = [](const Snapshot& snapshot) {
    return IvfOf(snapshot.segments[0])->training();
  };
  auto before = write_one();
  WaitFor([&] { return training_of(*(before = write_one())) != training; });
  // The previous write may have come just before the new lists.
  const auto after = write_one();
  ASSERT_EQ(training_of(*after), training_of(*before));
  EXPECT_EQ(after->segments.back().segment->indexes[0]->training(),
            training_of(*after));
  trained.get();
}

// The rows are put into lists before the write is logged.
TEST_F(SealingTest, RowsOfAFailedWriteAreSeenByNobody) {
  Write(Items("a", 6000, 1));
  catalog_->AwaitIndexes();
  Write(Items("b", 10, 2));
  const auto before = Ids();
  AttendQuery query = VectorQuery({1, -1, .5, 2, 0, -.25, .75, 1});
  query.result_count = 6;
  const auto list_count =
      IvfOf(catalog_->snapshot()->segments[0])->list_count();
  const auto expect_count = [&](std::int64_t count) {
    for (const std::int64_t probe_count : {list_count - 1, list_count}) {
      query.probe_count = probe_count;
      const auto answer = Ask(query);
      ASSERT_OK(answer);
      EXPECT_LE(answer->scored_count, count);
      // The list that is not visited holds few rows.
      EXPECT_GT(answer->scored_count, count - 200);
      EXPECT_EQ(answer->eligible_count, count);
    }
    EXPECT_EQ(Ask(query)->scored_count, count);
  };
  expect_count(6010);
  {
    MutexLock lock(&disk_->mutex);
    disk_->write_status = absl::ResourceExhaustedError("disk full");
  }
  ASSERT_FALSE(catalog_->Import(Items("c", 500, 3)).ok());
  {
    MutexLock lock(&disk_->mutex);
    disk_->write_status = absl::OkStatus();
  }
  EXPECT_EQ(Ids(), before);
  expect_count(6010);
  Write(Items("d", 10, 4));
  expect_count(6020);
}

TEST_F(SealingTest, KeysThatStayAlikeAreNot) {
  Write(Items("a", 6000, 1));
  catalog_->AwaitIndexes();
  const auto training = IvfOf(catalog_->snapshot()->segments[0])->training();
  Write(Items("b", 2500, 2));
  catalog_->AwaitIndexes();
  ASSERT_THAT(catalog_->snapshot()->segments, SizeIs(1));
  EXPECT_EQ(IvfOf(catalog_->snapshot()->segments[0])->training(), training);
}

TEST_F(SealingTest, EverySegmentHasMoreRowsThanAllThatFollow) {
  Write(Items("a", 20000, 1));
  catalog_->AwaitIndexes();
  for (int i = 0; i < 8; ++i) {
    Write(Items("b" + std::to_string(i) + "-", 5000,
                static_cast<std::uint64_t>(i) + 2));
    WaitFor([&] { return UnsealedCount() < 2 * kSealCount; });
  }
  const auto is_sorted = [&] {
    const auto snapshot = catalog_->snapshot();
    std::int64_t later = 0;
    for (std::size_t i = snapshot->segments.size(); i-- > 0;) {
      const SegmentView& view = snapshot->segments[i];
      if (IvfOf(view) == nullptr) continue;
      if (later >= view.row_end) return false;
      later += view.row_end;
    }
    return true;
  };
  WaitFor(is_sorted);
  EXPECT_THAT(Ids(), SizeIs(60000));
}

TEST_F(SealingTest, ASegmentWithoutLiveRowsGoes) {
  Write(Items("a", 6000, 1));
  catalog_->AwaitIndexes();
  Write(Items("b", 3000, 2));
  std::vector<std::string> gone;
  for (int i = 0; i < 3000; ++i) gone.push_back("b" + std::to_string(i));
  ASSERT_OK(catalog_->Delete(gone, ""));
  catalog_->AwaitIndexes();
  ASSERT_THAT(catalog_->snapshot()->segments, SizeIs(1));
  EXPECT_EQ(catalog_->snapshot()->segments[0].row_end, 6000);
  EXPECT_THAT(Ids(), SizeIs(6000));
}

}  // namespace
}  // namespace attendant
