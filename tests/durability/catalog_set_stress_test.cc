// Runs everything at once on one set of catalogs: writes, reads, index builds,
// aliases, stored snapshots, and catalogs and models that are created and
// deleted.
// Compares what readers see with what the writers know: nothing acknowledged is
// missing, nothing deleted returns, no write is seen by half.
//
// catalog_set_stress_test --seconds=1800 --seed=1     the long form
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/clock.h"
#include "core/catalog/live/catalog_set.h"
#include "core/catalog/query/attend.h"
#include "core/storage/snapshots/snapshot_files.h"
#include "tests/durability/flags.h"
#include "tests/support/random_model.h"
#include "tests/support/scratch_directory.h"
#include "tests/support/split_mix.h"
#include "tests/support/status_matchers.h"
#include "tests/support/stored_items.h"

namespace attendant {
namespace {

using ::testing::AnyOf;

constexpr int kWriterCount = 2;
constexpr int kGroupCount = 240;  // total of all writers
constexpr int kGroupSize = 4;
constexpr int kDim = 8;

// Items that are always written together. The n-th write makes version n: an
// upsert, an update of attributes only, an import and a delete in turn.
class Group {
 public:
  explicit Group(int number) : number_(number) {}

  std::string IdOf(int member) const {
    return absl::StrCat("group", number_, "-", member);
  }

  static bool IsDelete(std::int64_t version) { return version % 4 == 0; }

  // Keys encode the version that wrote them.
  std::vector<float> KeyOf(int member, std::int64_t version) const {
    const std::int64_t written = version % 4 == 2 ? version - 1 : version;
    return SplitMix((written * kGroupCount + number_) * kGroupSize + member)
        .Floats(kDim);
  }

  Item ItemOf(int member, std::int64_t version) const {
    Item item;
    item.id = IdOf(member);
    item.keys = {KeyOf(member, version)};
    item.attributes = {{0, version}};
    return item;
  }

  // Writes the next version, on one thread at a time. Returns once it is
  // acknowledged.
  void Write(LiveCatalog& catalog) {
    const std::int64_t version = ++begun_;
    std::vector<Item> items;
    std::vector<ItemPatch> patches;
    std::vector<std::string> ids;
    for (int member = 0; member < kGroupSize; ++member) {
      ids.push_back(IdOf(member));
      items.push_back(ItemOf(member, version));
      ItemPatch& patch = patches.emplace_back();
      patch.id = ids.back();
      patch.attributes = {{0, AttributeValue(version)}};
    }
    if (version % 4 == 1) {
      ASSERT_OK(catalog.Upsert(items, ""));
    } else if (version % 4 == 2) {
      ASSERT_OK(catalog.Update(patches, ""));
    } else if (version % 4 == 3) {
      const auto outcome = catalog.Import(items);
      ASSERT_OK(outcome);
      for (const absl::Status& status : outcome->statuses) ASSERT_OK(status);
    } else {
      ASSERT_OK(catalog.Delete(ids, ""));
    }
    acknowledged_ = version;
  }

  std::int64_t begun() const { return begun_; }
  std::int64_t acknowledged() const { return acknowledged_; }

  // Expects the snapshot to show one version in [from, to].
  void Check(const Snapshot& snapshot, std::int64_t from,
             std::int64_t to) const {
    SCOPED_TRACE(
        absl::StrCat("group ", number_, ", of versions ", from, " to ", to));
    std::set<std::int64_t> versions;
    for (int member = 0; member < kGroupSize; ++member) {
      const auto address = snapshot.Find(IdOf(member));
      if (!address) {
        versions.insert(0);
        continue;
      }
      const Item item = ItemAt(snapshot, *address);
      ASSERT_EQ(item.attributes.size(), 1u);
      const auto version = std::get<std::int64_t>(item.attributes[0].second);
      EXPECT_EQ(item.keys[0], KeyOf(member, version)) << item.id;
      versions.insert(version);
    }
    ASSERT_THAT(versions, testing::SizeIs(1)) << "half a write";
    std::int64_t version = *versions.begin();
    // Without items the version can only be a delete: take the latest up to
    // `to`.
    if (version == 0) version = to / 4 * 4;
    EXPECT_GE(version, from);
    EXPECT_LE(version, to);
  }

 private:
  const int number_;
  std::atomic<std::int64_t> begun_ = 0;
  std::atomic<std::int64_t> acknowledged_ = 0;
};

// An item of no group, which comes and goes.
constexpr char kPassingItem[] = "passing";

CatalogSchema Schema() {
  CatalogSchema schema;
  schema.key_fields.push_back(
      {.name = "key", .dim = kDim, .index_kind = IndexKind::kIvf});
  schema.attributes.push_back({"version", AttributeType::kInt64});
  return schema;
}

// Checks what holds for any answer of any snapshot.
void CheckAnswer(const Snapshot& snapshot, const AttendQuery& query) {
  const auto answer = Attend(snapshot, query, Interrupt());
  ASSERT_OK(answer);
  std::set<std::string> ids;
  double sum = 0;
  for (const AttendedItem& item : answer->items) {
    const auto [segment, row] = item.address;
    EXPECT_TRUE(snapshot.segments[segment].IsLive(row));
    EXPECT_TRUE(ids.emplace(snapshot.IdOf(segment, row)).second);
    sum += item.weight;
  }
  if (snapshot.item_count() == 0) return;
  EXPECT_NEAR(sum, 1, 1e-5);
  if (query.scan_mode == ScanMode::kExact) {
    EXPECT_EQ(static_cast<std::int64_t>(ids.size()),
              std::min<std::int64_t>(10, snapshot.item_count()));
  }
}

AttendQuery RandomQuery(std::uint64_t seed) {
  AttendQuery query;
  query.query = SplitMix(seed).Floats(kDim);
  query.weight_scope = WeightScope::kReturned;
  query.scan_mode = seed % 2 == 0 ? ScanMode::kExact : ScanMode::kAuto;
  return query;
}

// Checks that no item appears twice.
void CheckRows(const Snapshot& snapshot) {
  std::set<std::string> ids;
  for (int s = 0; s < static_cast<int>(snapshot.segments.size()); ++s) {
    const SegmentView& view = snapshot.segments[s];
    for (RowIndex row = 0; row < view.row_end; ++row) {
      if (!view.IsLive(row)) continue;
      EXPECT_TRUE(ids.emplace(snapshot.IdOf(s, row)).second)
          << snapshot.IdOf(s, row);
    }
  }
  EXPECT_EQ(static_cast<std::int64_t>(ids.size()), snapshot.item_count());
}

class CatalogSetStressTest : public ::testing::Test {
 protected:
  void SetUp() override {
    for (int i = 0; i < kGroupCount; ++i) groups_.emplace_back(i);
    Open();
    ASSERT_OK(set_->Create("shop", Schema(), {}));
    ASSERT_OK(set_->Create("other", Schema(), {}));
    ASSERT_OK(set_->SetAlias("front", "shop", std::nullopt));
  }

  void Open() {
    set_ = nullptr;
    CatalogSet::Options options;
    options.catalog.settle_time = absl::ZeroDuration();
    ASSERT_OK_AND_ASSIGN(set_, CatalogSet::Open(directory_.path(), options));
  }

  std::shared_ptr<LiveCatalog> Shop() {
    auto shop = set_->Get("shop");
    EXPECT_OK(shop);
    return *std::move(shop);
  }

  // Runs rounds of `actor` until the time is over, at least two.
  void Start(const std::string& name,
             std::function<void(std::uint64_t random)> actor) {
    threads_.emplace_back([this, name, actor = std::move(actor)] {
      SCOPED_TRACE(name);
      SplitMix random(seed_ + std::hash<std::string>()(name));
      for (int round = 0; (round < 2 || SteadyNow() < end_) && !HasFailure();
           ++round) {
        actor(random.Next());
      }
    });
  }

  // Each writer writes its own groups and reads what it wrote.
  void Write(int writer, std::uint64_t random) {
    const int group = static_cast<int>(random % (kGroupCount / kWriterCount));
    Group& mine = groups_[group * kWriterCount + writer];
    const auto shop = Shop();
    mine.Write(*shop);
    mine.Check(*shop->snapshot(), mine.begun(), mine.begun());
  }

  void Read(std::uint64_t random) {
    const Group& group = groups_[random % kGroupCount];
    const std::int64_t from = group.acknowledged();
    const auto snapshot = Shop()->snapshot();
    group.Check(*snapshot, from, group.begun());
    CheckAnswer(*snapshot, RandomQuery(random));
    if (random % 16 == 0) CheckRows(*snapshot);
  }

  // Reads through an alias that moves meanwhile, and a catalog that may be
  // being deleted.
  void Visit(std::uint64_t random) {
    const auto front = set_->Get("front");
    ASSERT_OK(front);
    EXPECT_THAT((*front)->record().name, AnyOf("shop", "other"));
    CheckAnswer(*(*front)->snapshot(), RandomQuery(random));
    const auto passing = set_->Get("passing");
    if (!passing.ok()) {
      EXPECT_TRUE(absl::IsNotFound(passing.status())) << passing.status();
      return;
    }
    CheckAnswer(*(*passing)->snapshot(), RandomQuery(random));
    const std::vector<Item> item = {groups_[0].ItemOf(0, 1)};
    const absl::Status written = (*passing)->Upsert(item, "").status();
    EXPECT_TRUE(written.ok() || absl::IsNotFound(written)) << written;
  }

  void MoveAlias(std::uint64_t random) {
    ASSERT_OK(set_->SetAlias("front", random % 2 == 0 ? "shop" : "other", {}));
    ASSERT_OK(set_->SetAlias("second", "other", {}));
    ASSERT_OK(set_->DeleteAlias("second"));
    // Other threads sleep while this one syncs; the pause leaves them time to
    // work.
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }

  // Switches the kind of index, and adds attributes that an item has for a
  // while. Excludes HNSW, whose library uses threads that the sanitizer cannot
  // track.
  void Rebuild(std::uint64_t random) {
    constexpr IndexKind kKinds[] = {IndexKind::kIvf, IndexKind::kFlat,
                                    IndexKind::kIvf, IndexKind::kLsh};
    const auto shop = Shop();
    CatalogSchema schema = shop->record().schema;
    schema.key_fields[0].index_kind = kKinds[random % 4];
    const std::size_t added = schema.attributes.size();
    if (added < kMaxAttributes) {
      schema.attributes.push_back({absl::StrCat("a", added),  //
                                   AttributeType::kInt64});
    }
    ASSERT_OK(set_->Update("shop", schema, {}));
    Item item = groups_[0].ItemOf(0, 1);
    item.id = kPassingItem;
    item.attributes.emplace_back(static_cast<int>(schema.attributes.size()) - 1,
                                 std::int64_t{7});
    ASSERT_OK(shop->Upsert(std::vector{item}, ""));
    ASSERT_OK(shop->Delete(std::vector{item.id}, ""));
    shop->AwaitIndexes();
    EXPECT_OK(shop->merge_status());
    EXPECT_OK(shop->save_status());
    EXPECT_GT(shop->memory_bytes(), 0);
    EXPECT_EQ(shop->index_states().size(), 1u);
    EXPECT_FALSE(set_->List("", 10).empty());
  }

  // Reads all stored items, some of which have attributes that were added just
  // now.
  void Browse(std::uint64_t /*random*/) {
    const auto shop = Shop();
    ASSERT_OK(
        shop->VisitStoredAfter("", [](const StoredItem&) { return true; }));
    ASSERT_OK(shop->VisitExisting(std::vector<std::string>{kPassingItem},
                                  [](const StoredItem&) { return true; }));
  }

  // Creates, fills, indexes and deletes a catalog while others read it.
  void ComeAndGo(std::uint64_t random) {
    const auto created = set_->Create("passing", Schema(), {});
    ASSERT_OK(created);
    std::vector<Item> items;
    for (int i = 0; i < 500; ++i) {
      items.push_back(Group(1000 + i).ItemOf(0, 1));
    }
    ASSERT_OK(created->catalog->Upsert(items, ""));
    if (random % 2 == 0) created->catalog->AwaitIndexes();
    const auto snapshot = created->catalog->snapshot();
    ASSERT_OK(set_->Delete("passing"));
    EXPECT_THAT(created->catalog->Upsert(items, ""),
                StatusIs(absl::StatusCode::kNotFound, testing::_));
    CheckAnswer(*snapshot, RandomQuery(random));
  }

  // Creates and deletes a model while others list it.
  void ReplaceModel(std::uint64_t random) {
    const auto created = set_->models().Create(
        "model", RandomMultiHeadModel(static_cast<std::uint32_t>(random)), {});
    ASSERT_OK(created);
    ASSERT_OK(set_->DeleteModel((*created)->name));
  }

  void ListAll(std::uint64_t /*random*/) {
    EXPECT_TRUE(set_->models().damages().empty());
    EXPECT_LE(set_->models().List({}, 10).size(), 1u);
    EXPECT_TRUE(set_->damages().empty());
    EXPECT_GE(set_->List("", 10).size(), 2u);
    EXPECT_GE(set_->ListAliases("", 10).size(), 1u);
  }

  // A stored snapshot contains everything acknowledged before it.
  void StoreAndRestore(std::uint64_t random) {
    std::vector<std::int64_t> from;
    for (const Group& group : groups_) from.push_back(group.acknowledged());
    LongWork work;
    ASSERT_OK(set_->CreateSnapshot("shop", "now", work));
    std::vector<std::int64_t> to;
    for (const Group& group : groups_) to.push_back(group.begun());
    const auto restored =
        set_->RestoreSnapshot({"shop", "now"}, "restored", work);
    ASSERT_OK(restored);
    const auto snapshot = (*restored)->snapshot();
    for (int i = 0; i < kGroupCount; ++i) {
      groups_[i].Check(*snapshot, from[i], to[i]);
    }
    CheckRows(*snapshot);
    CheckAnswer(*snapshot, RandomQuery(random));
    ASSERT_OK(set_->Delete("restored"));
    ASSERT_OK(set_->snapshots().Remove({"shop", "now"}));
  }

  // Expects everything that was written, and nothing else.
  void CheckAll() {
    const auto snapshot = Shop()->snapshot();
    std::int64_t item_count = 0;
    for (const Group& group : groups_) {
      EXPECT_EQ(group.acknowledged(), group.begun());
      group.Check(*snapshot, group.begun(), group.begun());
      if (!Group::IsDelete(group.begun())) item_count += kGroupSize;
    }
    EXPECT_EQ(snapshot->item_count(), item_count);
    CheckRows(*snapshot);
  }

  const std::uint64_t seed_ = static_cast<std::uint64_t>(Flag("seed", 1));
  const SteadyTime end_ = SteadyAfter(absl::Seconds(Flag("seconds", 3)));
  const ScratchDirectory directory_;
  std::unique_ptr<CatalogSet> set_;
  std::deque<Group> groups_;
  std::vector<std::thread> threads_;
};

TEST_F(CatalogSetStressTest, ReadersSeeWhatWasWritten) {
  for (int i = 0; i < kWriterCount; ++i) {
    Start(absl::StrCat("writer ", i),
          [this, i](std::uint64_t random) { Write(i, random); });
  }
  Start("reader", [this](std::uint64_t random) { Read(random); });
  Start("visitor", [this](std::uint64_t random) { Visit(random); });
  Start("aliases", [this](std::uint64_t random) { MoveAlias(random); });
  Start("builds", [this](std::uint64_t random) { Rebuild(random); });
  Start("browser", [this](std::uint64_t random) { Browse(random); });
  Start("drops", [this](std::uint64_t random) { ComeAndGo(random); });
  Start("models", [this](std::uint64_t random) { ReplaceModel(random); });
  Start("lister", [this](std::uint64_t random) { ListAll(random); });
  Start("snapshots", [this](std::uint64_t random) { StoreAndRestore(random); });
  for (std::thread& thread : threads_) thread.join();
  CheckAll();
  Shop()->AwaitIndexes();
  CheckAll();
  Open();
  CheckAll();
}

}  // namespace
}  // namespace attendant
