#include "core/catalog/live/model_set.h"

#include <rocksdb/db.h>

#include <atomic>
#include <filesystem>
#include <functional>
#include <thread>

#include "core/base/status.h"
#include "core/base/status_details.h"
#include "core/catalog/live/catalog_set.h"
#include "core/catalog/query/attend.h"
#include "core/storage/rocks/database.h"
#include "core/storage/snapshots/snapshot_files.h"
#include "tests/core/catalog/failing_allocation.h"
#include "tests/support/random_model.h"
#include "tests/support/scratch_directory.h"
#include "tests/support/status_matchers.h"

namespace attendant {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Optional;
using ::testing::Pair;

class FakeClock : public Clock {
 public:
  absl::Time Now() const override { return now; }
  absl::Time now = absl::FromUnixSeconds(1700000000);
};

class ModelSetTest : public ::testing::Test {
 protected:
  void SetUp() override { Open(); }
  void Open(std::int64_t memory_limit_bytes = 0) {
    set_ = nullptr;
    CatalogSet::Options options;
    options.clock = &clock_;
    options.memory_limit_bytes = memory_limit_bytes;
    auto opened = CatalogSet::Open(directory_ / "data", options);
    ASSERT_OK(opened);
    set_ = *std::move(opened);
  }
  ModelSet& models() { return set_->models(); }
  // Returns the assigned version; 0 after an error.
  std::int64_t Create(absl::string_view name, std::uint32_t seed = 1) {
    const auto created = models().Create(name, RandomMultiHeadModel(seed), {});
    EXPECT_OK(created);
    return created.ok() ? (*created)->name.version : 0;
  }
  // Writes bytes into the closed metadata database.
  void Overwrite(const std::string& key, const std::string& value) {
    set_ = nullptr;
    rocksdb::DB* db = nullptr;
    ASSERT_TRUE(rocksdb::DB::Open({}, directory_ / "data/catalogs", &db).ok());
    const std::unique_ptr<rocksdb::DB> owner(db);
    rocksdb::WriteOptions options;
    options.sync = true;
    ASSERT_TRUE(db->Put(options, key, value).ok());
  }
  std::vector<ModelName> Names(const ModelName& after = {},
                               std::int64_t limit = 100) {
    std::vector<ModelName> names;
    for (const auto& version : models().List(after, limit)) {
      names.push_back(version->name);
    }
    return names;
  }

  FakeClock clock_;
  ScratchDirectory directory_;
  std::unique_ptr<CatalogSet> set_;
};

TEST_F(ModelSetTest, BringsModelsBack) {
  RandomFloats random(1);
  MultiHeadProjections heads;
  heads.query = random.Projection(4, 4);
  heads.key = random.Projection(4, 4);
  const AttentionModel model = {heads};
  ASSERT_OK_AND_ASSIGN(const auto created, models().Create("text", model, {}));
  EXPECT_EQ(created->name, (ModelName{"text", 1}));
  EXPECT_EQ(created->create_time, clock_.now);
  EXPECT_GT(created->asymmetry.value_or(0), 0);
  EXPECT_EQ(created->model, model);
  EXPECT_EQ(Create("text", 2), 2);
  EXPECT_EQ(Create("image", 3), 1);
  Open();
  ASSERT_OK_AND_ASSIGN(const auto first, models().Get("text", 1));
  EXPECT_EQ(*first, *created);
  ASSERT_OK_AND_ASSIGN(const auto newest, models().Get("text", std::nullopt));
  EXPECT_EQ(newest->name.version, 2);
  EXPECT_EQ(newest->model, RandomMultiHeadModel(2));
  EXPECT_EQ(newest->asymmetry, std::nullopt);
  EXPECT_TRUE(models().damages().empty());
}

TEST_F(ModelSetTest, VersionsAreNeverUsedAgain) {
  EXPECT_EQ(Create("text"), 1);
  EXPECT_EQ(Create("text"), 2);
  ASSERT_OK(set_->DeleteModel({"text", 2}));
  EXPECT_EQ(Create("text"), 3);
  ASSERT_OK(set_->DeleteModel({"text", 3}));
  ASSERT_OK(set_->DeleteModel({"text", 1}));
  Open();
  EXPECT_TRUE(Names().empty());
  EXPECT_EQ(Create("text"), 4);
}

TEST_F(ModelSetTest, MissingModelsAreNamed) {
  Create("text");
  for (const auto& [name, version] :
       std::vector<std::pair<std::string, std::optional<std::int64_t>>>{
           {"text", 2},
           {"text", 0},
           {"tex", std::nullopt},
           {"texts", 1},
           {"zz", std::nullopt},
           {"", std::nullopt}}) {
    const auto got = models().Get(name, version);
    EXPECT_THAT(got, StatusIs(absl::StatusCode::kNotFound,
                              HasSubstr("'" + name + "'")));
    EXPECT_THAT(ReasonOf(got.status()),
                Optional(std::string("MODEL_NOT_FOUND")));
  }
  const absl::Status deleted = set_->DeleteModel({"text", 2});
  EXPECT_THAT(deleted, StatusIs(absl::StatusCode::kNotFound,
                                HasSubstr("no version 2 of model 'text'")));
  EXPECT_THAT(ReasonOf(deleted), Optional(std::string("MODEL_NOT_FOUND")));
}

TEST_F(ModelSetTest, ListsByNameAndVersion) {
  for (int i = 0; i < 11; ++i) Create("b");
  Create("a");
  Create("b-2");
  std::vector<ModelName> want = {{"a", 1}};
  for (int i = 1; i <= 11; ++i) want.push_back({"b", i});
  want.push_back({"b-2", 1});
  EXPECT_EQ(Names(), want);
  EXPECT_THAT(Names({"b", 9}, 2),
              ElementsAre(ModelName{"b", 10}, ModelName{"b", 11}));
  EXPECT_THAT(Names({"b", 11}), ElementsAre(ModelName{"b-2", 1}));
}

TEST_F(ModelSetTest, RefusesBadNamesModelsAndProbes) {
  for (const char* name : {"", "Text", "-text", "a/b"}) {
    const auto created = models().Create(name, RandomMultiHeadModel(1), {});
    EXPECT_THAT(created, StatusIs(absl::StatusCode::kInvalidArgument,
                                  HasSubstr("model.name")));
    EXPECT_THAT(FieldOf(created.status()), Optional(std::string("model.name")));
  }
  EXPECT_THAT(models().Create("text", {BilinearForm{{1, 2, {1}}}}, {}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("model.bilinear.weight.float32_le")));
  const AttentionModel identity = {BilinearForm{{2, 2, {1, 0, 0, 1}}}};
  const ProjectionProbe good = {ProjectionKind::kKey, {3, 4}, {3, 4}};
  const ProjectionProbe bad = {ProjectionKind::kKey, {3, 4}, {4, 3}};
  EXPECT_THAT(models().Create("text", identity, std::vector{good, bad}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("probes[1].output")));
  EXPECT_THAT(
      models().Create("text", identity, std::vector<ProjectionProbe>(17, good)),
      StatusIs(absl::StatusCode::kResourceExhausted,
               HasSubstr("probes: got 17")));
  EXPECT_TRUE(Names().empty());
  ASSERT_OK_AND_ASSIGN(const auto created,
                       models().Create("text", identity,
                                       std::vector<ProjectionProbe>(16, good)));
  EXPECT_EQ(created->name.version, 1) << "refused ones use up no version";
}

TEST_F(ModelSetTest, WhatIsNotWaitedForIsNotStored) {
  const std::atomic<bool> cancelled = true;
  MultiHeadProjections square;
  square.query.weight = square.key.weight = RandomFloats(1).Matrix(3, 3);
  EXPECT_THAT(models().Create("text", {square}, {}, {.cancelled = &cancelled}),
              StatusIs(absl::StatusCode::kCancelled, HasSubstr("went away")));
  EXPECT_EQ(Create("text"), 1);
}

TEST_F(ModelSetTest, HoldersOfADeletedVersionCanUseIt) {
  Create("text", 5);
  ASSERT_OK_AND_ASSIGN(const auto held, models().Get("text", 1));
  ASSERT_OK(set_->DeleteModel({"text", 1}));
  EXPECT_THAT(models().Get("text", 1),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("text")));
  EXPECT_EQ(held->model, RandomMultiHeadModel(5));
}

TEST_F(ModelSetTest, ADamagedVersionLeavesTheOthersReadable) {
  Create("text", 1);
  Create("text", 2);
  Overwrite(std::string("wtext\0\0\0\0\0\0\0\0\2", 14), "not a model");
  Open();
  EXPECT_OK(models().Get("text", 1));
  // The newest version is damaged: an older one must not be returned in its
  // place.
  for (const std::optional<std::int64_t> version :
       {std::optional<std::int64_t>(2), std::optional<std::int64_t>()}) {
    EXPECT_THAT(models().Get("text", version),
                StatusIs(absl::StatusCode::kDataLoss,
                         HasSubstr("version 2 of model \"text\"")));
  }
  EXPECT_THAT(Names(), ElementsAre(ModelName{"text", 1}));
  EXPECT_THAT(models().damages(),
              ElementsAre(Pair(Pair("text", 2), ::testing::_)));
  EXPECT_EQ(Create("text", 3), 3);
  ASSERT_OK(set_->DeleteModel({"text", 2}));
  Open();
  EXPECT_TRUE(models().damages().empty());
}

TEST_F(ModelSetTest, ADamagedFileCostsItsVersionAndWhatUsesIt) {
  const auto schema_with = [](ModelName model) {
    CatalogSchema schema;
    KeyFieldSchema field;
    field.name = "k";
    field.dim = 2;
    field.model = std::move(model);
    field.score_kind =
        field.model.empty() ? ScoreKind::kDot : ScoreKind::kBilinear;
    schema.key_fields = {field};
    return schema;
  };
  const AttentionModel identity = {BilinearForm{{2, 2, {1, 0, 0, 1}}}};
  ASSERT_OK(models().Create("text", identity, {}));
  ASSERT_OK(models().Create("text", identity, {}));
  ASSERT_OK(set_->Create("first", schema_with({"text", 1}), {}));
  ASSERT_OK(set_->Create("second", schema_with({"text", 2}), {}));
  ASSERT_OK(set_->Create("plain", schema_with({}), {}));
  set_ = nullptr;
  const std::string path = directory_ / "data/models/text/2";
  std::filesystem::rename(path, path + ".away");
  Open();
  EXPECT_OK(models().Get("text", 1));
  EXPECT_THAT(models().Get("text", 2),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("is missing")));
  EXPECT_OK(set_->Get("first"));
  EXPECT_OK(set_->Get("plain"));
  EXPECT_THAT(set_->damages(),
              ElementsAre(Pair("second", StatusIs(absl::StatusCode::kDataLoss,
                                                  HasSubstr("is missing")))));
  EXPECT_EQ(Create("text"), 3);
  // Nothing else was lost.
  std::filesystem::rename(path + ".away", path);
  Open();
  EXPECT_OK(set_->Get("second"));
  EXPECT_THAT(Names(), ElementsAre(ModelName{"text", 1}, ModelName{"text", 2},
                                   ModelName{"text", 3}));
}

// Otherwise a restart would project all keys, in memory that is not there.
TEST_F(ModelSetTest, ASwapThatIsPutOffIsSoAfterARestart) {
  constexpr std::int64_t kNoRoom = 1 << 20;
  Create("text", 1);
  Create("text", 2);
  CatalogSchema schema;
  KeyFieldSchema field;
  field.name = "k";
  field.dim = 4;
  field.index_kind = IndexKind::kIvf;
  field.model = {"text", 1};
  schema.key_fields = {field};
  schema.value_dim = 6;
  std::vector<Item> items(2000);
  RandomFloats random(3);
  for (std::size_t i = 0; i < items.size(); ++i) {
    items[i].id = std::to_string(i);
    items[i].keys = {random.Vector(4)};
    items[i].value = random.Vector(6);
  }
  {
    ASSERT_OK_AND_ASSIGN(const auto created, set_->Create("shop", schema, {}));
    ASSERT_OK(created.catalog->Upsert(items, ""));
    created.catalog->AwaitIndexes();
    ASSERT_OK(created.catalog->merge_status());
  }
  AttendQuery query;
  query.query = std::vector<float>(5, 1);
  const auto expect = [&](std::int64_t version) {
    ASSERT_OK_AND_ASSIGN(const auto shop, set_->Get("shop"));
    const IndexState state = shop->index_states()[0];
    EXPECT_EQ(state.active_model, (ModelName{"text", version}));
    EXPECT_EQ(state.active_kind, IndexKind::kIvf);
    ASSERT_OK_AND_ASSIGN(const AttendAnswer answer,
                         Attend(*shop->snapshot(), query, Interrupt()));
    EXPECT_EQ(answer.model, (ModelName{"text", version}));
    EXPECT_EQ(answer.eligible_count, 2000);
  };
  Open(kNoRoom);
  schema.key_fields[0].model = {"text", 2};
  ASSERT_OK(set_->Update("shop", schema, {}));
  for (int restarts = 0; restarts < 3; ++restarts) {
    SCOPED_TRACE(restarts);
    if (restarts > 0) Open(kNoRoom);
    ASSERT_OK_AND_ASSIGN(const auto shop, set_->Get("shop"));
    EXPECT_EQ(shop->recovery().segment_count, 1);
    EXPECT_EQ(shop->index_states()[0].projected_key_count, 0);
    shop->AwaitIndexes();
    EXPECT_THAT(shop->merge_status(),
                StatusIs(absl::StatusCode::kResourceExhausted,
                         HasSubstr("an index build wants")));
    EXPECT_EQ(shop->record().schema, schema);
    expect(1);
    const absl::Status in_use = set_->DeleteModel({"text", 1});
    EXPECT_EQ(ReasonOf(in_use), "MODEL_IN_USE");
    EXPECT_THAT(DetailsOf(in_use),
                ElementsAre(Pair("catalog", "shop"), Pair("model", "text"),
                            Pair("version", "1")));
  }
  // With enough memory the swap is made, permanently.
  Open();
  {
    ASSERT_OK_AND_ASSIGN(const auto shop, set_->Get("shop"));
    shop->AwaitIndexes();
    EXPECT_OK(shop->merge_status());
  }
  expect(2);
  Open(kNoRoom);
  expect(2);
  // A deleted model can't be used, even if it was recorded as the active one.
  ASSERT_OK(set_->DeleteModel({"text", 1}));
  set_ = nullptr;
  {
    ASSERT_OK_AND_ASSIGN(const auto store, Store::Open(directory_ / "data"));
    ASSERT_OK_AND_ASSIGN(const CatalogList list, store->List());
    ASSERT_OK_AND_ASSIGN(const auto shop, store->OpenCatalog(list.records[0]));
    ASSERT_OK(shop->PutActiveModel("k", {"text", 1}));
  }
  Open();
  expect(2);
  // The record of the active model was replaced, so the deleted model would not
  // be used even if it came back.
  set_ = nullptr;
  ASSERT_OK_AND_ASSIGN(const auto store, Store::Open(directory_ / "data"));
  ASSERT_OK_AND_ASSIGN(const CatalogList list, store->List());
  ASSERT_OK_AND_ASSIGN(const auto shop, store->OpenCatalog(list.records[0]));
  ASSERT_OK_AND_ASSIGN(const auto active, shop->GetActiveModel("k"));
  EXPECT_EQ(active, (ModelName{"text", 2}));
}

// While a record is damaged, nobody can tell which files are left over.
TEST_F(ModelSetTest, NoModelFilesAreRemovedWhileARecordIsDamaged) {
  Create("text", 1);
  Create("text", 2);
  ASSERT_OK(set_->DeleteModel({"text", 2}));
  const std::string left = directory_ / "data/models/text/2";
  std::filesystem::copy_file(directory_ / "data/models/text/1", left);
  Overwrite(std::string("wtext\0\0\0\0\0\0\0\0\1", 14), "no record");
  Open();
  EXPECT_TRUE(std::filesystem::exists(left));
  EXPECT_TRUE(std::filesystem::exists(directory_ / "data/models/text/1"));
  ASSERT_OK(set_->DeleteModel({"text", 1}));
  Open();
  EXPECT_FALSE(std::filesystem::exists(left));
  EXPECT_EQ(Create("text"), 3);
}

TEST_F(ModelSetTest, WithoutItsLastVersionANameGetsNoMore) {
  Create("text", 1);
  Overwrite("vtext", "?");
  Open();
  EXPECT_OK(models().Get("text", 1));
  EXPECT_THAT(models().Create("text", RandomMultiHeadModel(1), {}),
              StatusIs(absl::StatusCode::kDataLoss,
                       HasSubstr("last version of model \"text\"")));
  EXPECT_THAT(models().damages(),
              ElementsAre(Pair(Pair("text", 0), ::testing::_)));
  EXPECT_EQ(Create("other"), 1);
}

// A store that fails when told to, and keeps nothing.
class FailingStore : public Store {
 public:
  absl::StatusOr<CatalogList> List() const override { return CatalogList(); }
  absl::Status Put(const CatalogRecord&, bool*) override { return status; }
  absl::Status RemoveRecord(absl::string_view) override { return status; }
  absl::Status PutAlias(absl::string_view, absl::string_view) override {
    return status;
  }
  absl::Status RemoveAlias(absl::string_view) override { return status; }
  absl::Status left_overs() const override { return absl::OkStatus(); }
  absl::Status RemoveFiles(const CatalogRecord&) override { return status; }
  absl::StatusOr<ModelList> ListModels() const override { return list; }
  absl::Status PutModel(const ModelRecord&) override {
    if (while_put) while_put();
    if (status.ok()) ++model_count;
    return status;
  }
  absl::Status RemoveModel(const ModelName&) override {
    if (status.ok()) --model_count;
    return status;
  }
  SnapshotFiles& snapshots() override { return snapshots_; }
  absl::Status CopyItems(const std::string&, const CatalogRecord&,
                         const Interrupt&) override {
    return status;
  }
  absl::StatusOr<std::unique_ptr<CatalogStore>> OpenCatalog(
      const CatalogRecord&) override {
    return absl::UnimplementedError("no items");
  }
  std::int64_t cache_bytes() const override { return 0; }
  std::int64_t write_buffer_bytes() const override { return 0; }

  ModelList list;
  absl::Status status;
  std::size_t model_count = 0;  // stored, except those in `list`
  std::function<void()> while_put;

 private:
  const DatabaseResources resources_ = DatabaseResources::Make();
  SnapshotFiles snapshots_{"none", &resources_};
};

TEST(ModelSetFaultTest, WhatTheStoreRefusesIsNotServed) {
  FailingStore store;
  ASSERT_OK_AND_ASSIGN(const auto models,
                       ModelSet::Open(&store, &Clock::System()));
  ASSERT_OK(models->Create("text", RandomBilinearModel(1), {}));
  store.status = absl::ResourceExhaustedError("disk full");
  EXPECT_THAT(
      models->Create("text", RandomBilinearModel(1), {}),
      StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("disk full")));
  EXPECT_THAT(
      models->Delete({"text", 1}),
      StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("disk full")));
  EXPECT_EQ(models->List({}, 10).size(), 1u);
  // The failed record may be on the disk, so its number is not assigned again.
  store.status = absl::OkStatus();
  ASSERT_OK_AND_ASSIGN(const auto next,
                       models->Create("text", RandomBilinearModel(1), {}));
  EXPECT_EQ(next->name.version, 3);
}

TEST(ModelSetFaultTest, WithoutMemoryWhatIsStoredIsWhatIsServed) {
  bool befell = true;
  for (int nth = 1; befell; ++nth) {
    SCOPED_TRACE(nth);
    FailingStore store;
    ASSERT_OK_AND_ASSIGN(const auto models,
                         ModelSet::Open(&store, &Clock::System()));
    const AttentionModel model = RandomBilinearModel(1);
    befell = WithoutMemoryAt(
        nth, [&] { models->Create("text", model, {}).status().IgnoreError(); });
    EXPECT_EQ(models->List({}, 10).size(), store.model_count);
    ASSERT_OK(models->Create("other", model, {}));
    befell |= WithoutMemoryAt(nth, [&] {
      models->Delete({"other", 1}).IgnoreError();
    });
    EXPECT_EQ(models->List({}, 10).size(), store.model_count);
  }
}

// If two models fit separately but not together, one of them is refused.
TEST(ModelSetFaultTest, AModelIsCountedWhileItIsStored) {
  MemoryBudget budget({});
  FailingStore store;
  ASSERT_OK_AND_ASSIGN(const auto models,
                       ModelSet::Open(&store, &Clock::System(), &budget));
  const AttentionModel model = RandomBilinearModel(1);
  store.while_put = [&] {
    EXPECT_EQ(budget.use().counted_bytes, WeightBytes(model));
  };
  EXPECT_OK(models->Create("text", model, {}));
  EXPECT_EQ(budget.use().counted_bytes, WeightBytes(model));
}

TEST(ModelSetFaultTest, VersionsAreLimited) {
  FailingStore store;
  for (int i = 1; i <= 998; ++i) {
    store.list.records.push_back(
        {{"text", i}, {}, std::nullopt, RandomBilinearModel(1)});
  }
  store.list.damages[{"damaged", 1}] = absl::DataLossError("damaged");
  ASSERT_OK_AND_ASSIGN(const auto models,
                       ModelSet::Open(&store, &Clock::System()));
  ASSERT_OK_AND_ASSIGN(const auto last,
                       models->Create("text", RandomBilinearModel(1), {}));
  // No last version is recorded, but versions up to 998 are there.
  EXPECT_EQ(last->name.version, 999);
  const auto over = models->Create("text", RandomBilinearModel(1), {});
  EXPECT_THAT(over, StatusIs(absl::StatusCode::kResourceExhausted,
                             HasSubstr("1000 versions")));
  EXPECT_THAT(ReasonOf(over.status()), Optional(std::string(kOverLimit)));
  ASSERT_OK(models->Delete({"damaged", 1}));
  EXPECT_OK(models->Create("text", RandomBilinearModel(1), {}));
}

TEST(ModelSetFaultTest, ConcurrentCreationsGetVersionsOfTheirOwn) {
  FailingStore store;
  ASSERT_OK_AND_ASSIGN(const auto models,
                       ModelSet::Open(&store, &Clock::System()));
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 20; ++i) {
        const auto created = models->Create("text", RandomBilinearModel(1), {});
        ASSERT_OK(created);
        EXPECT_OK(models->Get("text", (*created)->name.version));
        EXPECT_OK(models->Get("text", std::nullopt));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(models->List({}, 1000).size(), 80u);
  ASSERT_OK_AND_ASSIGN(const auto newest, models->Get("text", std::nullopt));
  EXPECT_EQ(newest->name.version, 80);
}

}  // namespace
}  // namespace attendant
