// Catalogs that are restored from the files of their segments.
#include "core/catalog/segments/segment_files.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <random>
#include <thread>

#include "core/base/clock.h"
#include "core/base/fail_point.h"
#include "core/shortlist/ivf/ivf_index.h"
#include "core/shortlist/ivf/ivf_training.h"
#include "tests/core/catalog/catalog_fixture.h"
#include "tests/core/catalog/dead_keys.h"
#include "tests/support/random_model.h"
#include "tests/support/scratch_directory.h"
#include "tests/support/stored_items.h"
#include "tests/support/string_stream.h"

namespace attendant {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

// A live catalog on a disk, and a simple model of its expected contents.
class SegmentFilesTest : public ::testing::Test {
 protected:
  static constexpr int kDim = 6;

  // Two key fields, values and attributes.
  static CatalogSchema RichSchema() {
    CatalogSchema schema = OneFieldSchema(kDim, ScoreKind::kCosine);
    schema.key_fields[0].index_kind = IndexKind::kIvf;
    KeyFieldSchema second = schema.key_fields[0];
    second.name = "title";
    second.dim = 3;
    second.score_kind = ScoreKind::kDot;
    schema.key_fields.push_back(second);
    schema.value_dim = 4;
    schema.attributes = {{"name", AttributeType::kString},
                         {"price", AttributeType::kDouble},
                         {"tags", AttributeType::kStringList}};
    return schema;
  }

  void Open(CatalogSchema schema, std::vector<NamedModel> models = {}) {
    record_.name = "shop";
    record_.uid = "0123456789abcdef";
    record_.schema = std::move(schema);
    models_ = std::move(models);
    models_.resize(record_.schema.key_fields.size());
    Start();
    ASSERT_OK(store_->Put(record_));
  }

  void Start() {
    ASSERT_OK_AND_ASSIGN(store_, Store::Open(directory_.path()));
    OpenCatalog();
  }
  void OpenCatalog() {
    ASSERT_OK_AND_ASSIGN(std::unique_ptr<CatalogStore> items,
                         store_->OpenCatalog(record_));
    LiveCatalogOptions options;
    options.settle_time = absl::Hours(1);
    options.learn_interval = absl::Milliseconds(1);
    options.retry_time = absl::Milliseconds(1);
    options.max_logged_changes = max_logged_changes_;
    ASSERT_OK_AND_ASSIGN(catalog_,
                         LiveCatalog::Open(record_, models_, std::move(items),
                                           &background_, options));
  }
  void Stop() {
    catalog_ = nullptr;
    store_ = nullptr;
  }
  void Restart() {
    Stop();
    Start();
  }

  Item RandomItem(const std::string& id) {
    std::normal_distribution<float> normal;
    Item item;
    item.id = id;
    for (const KeyFieldSchema& field : record_.schema.key_fields) {
      auto& key = item.keys.emplace_back();
      // Some items lack the second key.
      if (item.keys.size() > 1 && random_() % 5 == 0) continue;
      for (int d = 0; d < field.dim; ++d) key.push_back(normal(random_));
    }
    for (int d = 0; d < record_.schema.value_dim; ++d) {
      item.value.push_back(normal(random_));
    }
    if (record_.schema.attributes.size() >= 3) {
      item.attributes.emplace_back(0, "name of " + id);
      if (random_() % 2 == 0) item.attributes.emplace_back(1, normal(random_));
      item.attributes.emplace_back(2, std::vector<std::string>{"a", id});
    }
    if (record_.schema.attributes.size() > 3) {
      item.attributes.emplace_back(3, std::int64_t{7});
    }
    if (random_() % 7 == 0) item.opaque_value = std::string("\0x", 2) + id;
    return item;
  }

  // Writes items PREFIX0, PREFIX1, ...
  void Write(const std::string& prefix, int count) {
    std::vector<Item> items;
    for (int i = 0; i < count; ++i) {
      items.push_back(RandomItem(prefix + std::to_string(i)));
      expected_[items.back().id] = items.back();
    }
    ASSERT_OK(catalog_->Import(items));
  }
  void Delete(const std::vector<std::string>& ids) {
    ASSERT_OK(catalog_->Delete(ids, ""));
    for (const std::string& id : ids) expected_.erase(id);
  }

  // Stores 2,500 items whose keys are projected by the two heads of model m:1
  // in the index.
  void StoreHeads() {
    CatalogSchema schema = OneFieldSchema(4);
    schema.key_fields[0].index_kind = IndexKind::kIvf;
    schema.key_fields[0].model = {"m", 1};
    NamedModel model;
    model.name = {"m", 1};
    model.model =
        std::make_shared<const AttentionModel>(RandomMultiHeadModel(3));
    Open(schema, {model});
    Write("a", 2500);
    catalog_->AwaitIndexes();
  }

  void ExpectAll(const char* when) {
    SCOPED_TRACE(when);
    const auto snapshot = catalog_->snapshot();
    EXPECT_EQ(snapshot->item_count(),
              static_cast<std::int64_t>(expected_.size()));
    std::map<std::string, Item> found;
    for (std::size_t i = 0; i < snapshot->segments.size(); ++i) {
      const SegmentView& view = snapshot->segments[i];
      for (RowIndex row = 0; row < view.row_end; ++row) {
        if (!view.IsLive(row)) continue;
        Item item = ItemAt(*snapshot, {static_cast<std::int32_t>(i), row});
        EXPECT_TRUE(found.emplace(item.id, item).second) << item.id;
      }
    }
    EXPECT_EQ(found, expected_);
  }

  // Expects every key of a growing segment to be in a list of the training
  // before it.
  static void ExpectInLists(const SegmentView& view, int head) {
    const KeyIndex& index = view.segment->IndexOf(0, head);
    EXPECT_EQ(index.kind(), IndexKind::kFlat);
    ASSERT_NE(index.training(), nullptr);
    for (RowIndex row = 0; row < view.row_end; ++row) {
      EXPECT_EQ(index.ListOf(row) >= 0, !index.Key(row).empty()) << row;
    }
  }

  std::string segments_path() const {
    return directory_ / ("segments/" + record_.uid);
  }
  std::vector<std::string> Files() const {
    std::vector<std::string> files;
    for (const auto& entry :
         std::filesystem::directory_iterator(segments_path())) {
      files.push_back(entry.path().filename());
    }
    std::ranges::sort(files);
    return files;
  }
  std::string ReadAll(const std::string& name) const {
    std::ifstream file(segments_path() + "/" + name, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  void WriteAll(const std::string& name, const std::string& bytes) const {
    std::ofstream file(segments_path() + "/" + name,
                       std::ios::binary | std::ios::trunc);
    file << bytes;
  }

  static std::string BytesOf(const UnscoredMass& mass) {
    StringSink sink;
    mass.Save(sink);
    return sink.bytes;
  }

  // Returns the parts of an answer that do not depend on where rows lie.
  std::vector<std::pair<std::string, float>> Answer() {
    AttendQuery query = VectorQuery({1, -1, .5, 2, 0, -.25});
    query.key_field = "vec";
    const auto snapshot = catalog_->snapshot();
    const auto answer = Attend(*snapshot, query, Interrupt());
    EXPECT_OK(answer);
    std::vector<std::pair<std::string, float>> items;
    for (const AttendedItem& item : answer->items) {
      items.emplace_back(snapshot->IdOf(item.address.segment, item.address.row),
                         item.weight);
    }
    return items;
  }

  std::mt19937_64 random_{5};
  ScratchDirectory directory_;
  BackgroundWorker background_;
  std::int64_t max_logged_changes_ = LiveCatalogOptions().max_logged_changes;
  CatalogRecord record_;
  std::vector<NamedModel> models_;
  std::unique_ptr<Store> store_;
  std::unique_ptr<LiveCatalog> catalog_;
  std::map<std::string, Item> expected_;
};

TEST_F(SegmentFilesTest, ARestartNeedsNoTraining) {
  Open(RichSchema());
  Write("a", 4000);
  catalog_->AwaitIndexes();
  ASSERT_OK(catalog_->save_status());
  EXPECT_THAT(Files(), SizeIs(4));  // the manifest, two trainings, a segment
  const auto before = Answer();
  const IndexState state = catalog_->index_states()[0];
  Restart();
  ASSERT_OK(catalog_->recovery().files_not_used);
  EXPECT_EQ(catalog_->recovery().segment_count, 1);
  EXPECT_EQ(catalog_->recovery().row_count, 4000);
  EXPECT_EQ(catalog_->recovery().replayed_count, 0);
  const IndexState now = catalog_->index_states()[0];
  EXPECT_EQ(now.active_kind, IndexKind::kIvf);
  EXPECT_FALSE(now.training);
  EXPECT_EQ(now.list_count, state.list_count);
  EXPECT_EQ(now.measured_recall, state.measured_recall);
  EXPECT_EQ(Answer(), before);
  ExpectAll("restarted");
}

class SegmentFilesOfKindTest : public SegmentFilesTest,
                               public ::testing::WithParamInterface<IndexKind> {
};

TEST_P(SegmentFilesOfKindTest, AnIndexComesBackBesideWhatCameAfterIt) {
  CatalogSchema schema = RichSchema();
  schema.key_fields[0].index_kind = GetParam();
  Open(schema);
  Write("a", 3000);
  catalog_->AwaitIndexes();
  ASSERT_OK(catalog_->save_status());
  const auto before = Answer();
  const IndexState state = catalog_->index_states()[0];
  ASSERT_EQ(state.active_kind, GetParam());
  for (const int later_count : {0, 20}) {
    Write("b", later_count);
    Restart();
    ASSERT_OK(catalog_->recovery().files_not_used);
    EXPECT_EQ(catalog_->recovery().row_count, 3000);
    EXPECT_EQ(catalog_->recovery().replayed_count, later_count);
    const IndexState now = catalog_->index_states()[0];
    EXPECT_EQ(now.active_kind, GetParam());
    EXPECT_FALSE(now.training);
    EXPECT_EQ(now.measured_recall, state.measured_recall);
    if (later_count == 0) {
      EXPECT_EQ(Answer(), before);
    }
    ExpectAll("restarted");
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, SegmentFilesOfKindTest,
                         ::testing::Values(IndexKind::kIvf, IndexKind::kHnsw,
                                           IndexKind::kLsh, IndexKind::kPq));

TEST_F(SegmentFilesTest, WhatAnIndexFromFilesLearnsIsKept) {
  Open(RichSchema());
  Write("a", 4000);
  catalog_->AwaitIndexes();
  ASSERT_OK(catalog_->save_status());
  Restart();
  const auto learned = [&] {
    return catalog_->snapshot()->TrainingOf(0, -1)->mass->Load();
  };
  const auto before = learned();
  const std::vector<std::string> files = Files();
  for (std::size_t i = 0; i < LearnedMass::kKeptQueries; ++i) {
    const AttendQuery query = VectorQuery(RandomItem("").keys[0]);
    ASSERT_OK(Attend(*catalog_->snapshot(), query, Interrupt()));
  }
  // Learning runs only in processor time that others leave.
  const SteadyTime end = SteadyAfter(absl::Seconds(120));
  while (learned() == before && SteadyNow() < end) {
    absl::SleepFor(absl::Milliseconds(1));
  }
  ASSERT_NE(learned(), before);
  // The new file replaces that of one of the two trainings.
  while ((Files() == files || Files().size() != files.size()) &&
         SteadyNow() < end) {
    absl::SleepFor(absl::Milliseconds(1));
  }
  ASSERT_THAT(Files(), SizeIs(files.size()));
  const std::string known = BytesOf(*learned());
  ASSERT_NE(known, BytesOf(*before));
  Restart();
  ASSERT_OK(catalog_->recovery().files_not_used);
  EXPECT_EQ(catalog_->recovery().row_count, 4000);
  EXPECT_EQ(BytesOf(*learned()), known);
}

TEST_F(SegmentFilesTest, WhatCameAfterTheFilesIsReplayed) {
  Open(RichSchema());
  Write("a", 3000);
  catalog_->AwaitIndexes();
  Write("b", 700);
  std::vector<std::string> gone = {"b1", "b2", "b699"};
  for (int i = 0; i < 200; ++i) gone.push_back("a" + std::to_string(i));
  Delete(gone);
  Write("a", 100);  // some again, some newer
  ExpectAll("before");
  Restart();
  ASSERT_OK(catalog_->recovery().files_not_used);
  EXPECT_EQ(catalog_->recovery().row_count, 3000);
  EXPECT_EQ(catalog_->recovery().replayed_count, 900);
  ExpectAll("restarted");
  ExpectInLists(catalog_->snapshot()->segments.back(), -1);
  // Replayed changes are replayed again at the next restart.
  Delete({"a99"});
  Restart();
  ASSERT_OK(catalog_->recovery().files_not_used);
  ExpectAll("restarted again");
  Write("c", 1000);
  catalog_->AwaitIndexes();
  ExpectAll("merged");
  Restart();
  EXPECT_EQ(catalog_->recovery().replayed_count, 0);
  ExpectAll("restarted after the merge");
}

TEST_F(SegmentFilesTest, ManySegmentsComeBackAsTheyWere) {
  CatalogSchema schema = OneFieldSchema(kDim);
  schema.key_fields[0].index_kind = IndexKind::kIvf;
  Open(schema);
  Write("a", 12000);
  catalog_->AwaitIndexes();
  for (int i = 0; i < 6; ++i) {
    Write("b" + std::to_string(i) + "-", 3000);
    Delete({"a" + std::to_string(i)});
  }
  // Enough changes to justify writing files of the segments sealed meanwhile.
  for (int i = 0; i < 20; ++i) Write("c", 3000);
  catalog_->AwaitIndexes();
  ASSERT_OK(catalog_->save_status());
  ExpectAll("before");
  Restart();
  ASSERT_OK(catalog_->recovery().files_not_used);
  EXPECT_GT(catalog_->recovery().row_count, 30000);
  ExpectAll("restarted");
}

TEST_F(SegmentFilesTest, TheSameKeysAskedForOtherwiseHaveTheirOwnTraining) {
  CatalogSchema schema = OneFieldSchema(6);
  schema.key_fields[0].index_kind = IndexKind::kIvf;
  schema.key_fields[0].score_kind = ScoreKind::kDot;
  schema.key_fields.push_back(schema.key_fields[0]);
  schema.key_fields[1].name = "scaled";
  schema.key_fields[1].score_kind = ScoreKind::kScaledDot;
  Open(schema);
  std::vector<Item> items;
  for (int i = 0; i < 2500; ++i) {
    items.push_back(RandomItem(std::to_string(i)));
    items.back().keys[1] = items.back().keys[0];
  }
  ASSERT_OK(catalog_->Import(items));
  catalog_->AwaitIndexes();
  ASSERT_OK(catalog_->save_status());
  Restart();
  ASSERT_OK(catalog_->recovery().files_not_used);
  const auto snapshot = catalog_->snapshot();
  ASSERT_THAT(snapshot->segments, SizeIs(1));
  const Segment& segment = *snapshot->segments[0].segment;
  ASSERT_EQ(segment.IndexOf(1, -1).kind(), IndexKind::kIvf);
  EXPECT_EQ(segment.IndexOf(0, -1).training()->score_kind, ScoreKind::kDot);
  EXPECT_EQ(segment.IndexOf(1, -1).training()->score_kind,
            ScoreKind::kScaledDot);
}

TEST_F(SegmentFilesTest, HeadsComeBack) {
  StoreHeads();
  ASSERT_OK(catalog_->save_status());
  const auto before = catalog_->snapshot();
  Restart();
  ASSERT_OK(catalog_->recovery().files_not_used);
  EXPECT_EQ(catalog_->recovery().segment_count, 1);
  const auto now = catalog_->snapshot();
  ASSERT_THAT(now->segments, SizeIs(1));
  for (int h = 0; h < 2; ++h) {
    const KeyIndex& a = before->segments[0].segment->IndexOf(0, h);
    const KeyIndex& b = now->segments[0].segment->IndexOf(0, h);
    EXPECT_EQ(a.kind(), IndexKind::kIvf);
    EXPECT_EQ(b.kind(), IndexKind::kIvf);
    for (RowIndex row = 0; row < 2500; ++row) {
      EXPECT_TRUE(std::ranges::equal(a.Key(row), b.Key(row))) << row;
    }
  }
  EXPECT_EQ(catalog_->index_states()[0].projected_key_count, 0);
  Write("b", 50);
  for (int h = 0; h < 2; ++h) {
    ExpectInLists(catalog_->snapshot()->segments.back(), h);
  }
  // The files are useless for another version of the model.
  models_[0].name.version = 2;
  record_.schema.key_fields[0].model.version = 2;
  Restart();
  EXPECT_OK(catalog_->recovery().files_not_used);
  EXPECT_EQ(catalog_->recovery().segment_count, 0);
  ExpectAll("of another model");
}

TEST_F(SegmentFilesTest, AModelOfTheQueryAloneMakesNoFileUseless) {
  CatalogSchema schema = OneFieldSchema(5);
  schema.key_fields[0].index_kind = IndexKind::kIvf;
  Open(schema);
  Write("a", 2500);
  catalog_->AwaitIndexes();
  ASSERT_OK(catalog_->save_status());
  for (const std::int64_t version : {1, 2}) {
    record_.schema.key_fields[0].model = {"m", version};
    models_[0].name = {"m", version};
    models_[0].model =
        std::make_shared<const AttentionModel>(RandomBilinearModel(3));
    Restart();
    ASSERT_OK(catalog_->recovery().files_not_used);
    EXPECT_EQ(catalog_->recovery().segment_count, 1) << version;
    EXPECT_EQ(catalog_->recovery().row_count, 2500) << version;
  }
}

TEST_F(SegmentFilesTest, AttributesAddedSinceMakeNoFileUseless) {
  Open(RichSchema());
  Write("a", 2500);
  catalog_->AwaitIndexes();
  ASSERT_OK(catalog_->save_status());
  record_.schema.attributes.push_back({"sold", AttributeType::kInt64});
  ASSERT_OK(catalog_->UpdateSchema(record_.schema, models_,
                                   [&] { return store_->Put(record_); }));
  Write("b", 10);
  ExpectAll("before a restart");
  Restart();
  ASSERT_OK(catalog_->recovery().files_not_used);
  EXPECT_EQ(catalog_->recovery().segment_count, 1);
  ExpectAll("after it");
  // Another list of attributes never was this catalog's.
  record_.schema.attributes[0].name = "title";
  Restart();
  EXPECT_EQ(catalog_->recovery().segment_count, 0);
}

TEST_F(SegmentFilesTest, KeysOnDiskComeBack) {
  CatalogSchema schema = OneFieldSchema(kDim);
  schema.key_fields[0].index_kind = IndexKind::kIvf;
  schema.key_fields[0].keys_on_disk = true;
  Open(schema);
  Write("a", 2500);
  catalog_->AwaitIndexes();
  const auto before = Answer();
  Restart();
  EXPECT_EQ(catalog_->recovery().segment_count, 1);
  EXPECT_GT(catalog_->index_states()[0].disk_bytes, 0);
  EXPECT_EQ(Answer(), before);
  ExpectAll("restarted");
}

// Restarts right after the setting changed, before the index is rebuilt.
TEST_F(SegmentFilesTest, WhereKeysAreKeptMakesNoFileUseless) {
  Open(RichSchema());
  Write("a", 2500);
  catalog_->AwaitIndexes();
  for (const bool on_disk : {true, false}) {
    record_.schema.key_fields[0].keys_on_disk = on_disk;
    Restart();
    ASSERT_OK(catalog_->recovery().files_not_used);
    EXPECT_EQ(catalog_->recovery().segment_count, 1) << on_disk;
    EXPECT_EQ(catalog_->index_states()[0].disk_bytes > 0, on_disk);
    ExpectAll("restarted");
  }
}

// A catalog with intact files, to be damaged in many ways.
class DamagedSegmentFilesTest : public SegmentFilesTest {
 protected:
  void SetUp() override {
    Open(RichSchema());
    Write("a", 1500);
    catalog_->AwaitIndexes();
    Write("b", 40);
    Delete({"a3"});
    Stop();
    ASSERT_THAT(Files(), SizeIs(4));
    for (const std::string& name : Files()) good_[name] = ReadAll(name);
  }

  // Expects all items to be there, and an error that names the damage.
  void ExpectFound(const std::string& name) {
    Start();
    const Recovery& recovery = catalog_->recovery();
    EXPECT_TRUE(absl::IsDataLoss(recovery.files_not_used))
        << recovery.files_not_used;
    EXPECT_THAT(recovery.files_not_used.message(), HasSubstr(name));
    EXPECT_EQ(recovery.segment_count, 0);
    ExpectAll("damaged");
    Stop();
  }
  void Repair() {
    std::filesystem::create_directories(segments_path());
    for (const auto& [name, bytes] : good_) WriteAll(name, bytes);
  }

  std::map<std::string, std::string> good_;
};

TEST_F(DamagedSegmentFilesTest, FlippedBitsAreFound) {
  for (const auto& [name, bytes] : good_) {
    for (int part = 0; part < 8; ++part) {
      SCOPED_TRACE(name + " at " + std::to_string(part) + "/8");
      std::string bad = bytes;
      bad[bytes.size() * static_cast<std::size_t>(part) / 8] ^= 0x10;
      Repair();
      WriteAll(name, bad);
      ExpectFound(name);
    }
  }
}

TEST_F(DamagedSegmentFilesTest, CutFilesAreFound) {
  for (const auto& [name, bytes] : good_) {
    for (int part = 0; part < 4; ++part) {
      SCOPED_TRACE(name + " cut at " + std::to_string(part) + "/4");
      Repair();
      WriteAll(name, bytes.substr(
                         0, bytes.size() * static_cast<std::size_t>(part) / 4));
      ExpectFound(name);
    }
  }
}

TEST_F(DamagedSegmentFilesTest, MissingFilesAreFound) {
  for (const auto& [name, bytes] : good_) {
    if (name == "MANIFEST") continue;
    SCOPED_TRACE(name);
    Repair();
    std::filesystem::remove(segments_path() + "/" + name);
    ExpectFound(name);
  }
  // Without a manifest no file can be missing.
  Repair();
  std::filesystem::remove(segments_path() + "/MANIFEST");
  Start();
  EXPECT_OK(catalog_->recovery().files_not_used);
  ExpectAll("without a manifest");
}

TEST_F(DamagedSegmentFilesTest, AfterDamageFilesAreMadeAgain) {
  std::string bad = good_["segment-3"];
  ASSERT_FALSE(bad.empty());
  bad[bad.size() - 10] ^= 0x10;  // of a float
  WriteAll("segment-3", bad);
  Start();
  EXPECT_TRUE(absl::IsDataLoss(catalog_->recovery().files_not_used));
  catalog_->AwaitIndexes();
  ASSERT_OK(catalog_->save_status());
  Restart();
  EXPECT_OK(catalog_->recovery().files_not_used);
  EXPECT_EQ(catalog_->recovery().segment_count, 1);
  ExpectAll("made again");
}

// The injected bug shows that it is the checksum that detects the damage.
TEST_F(DamagedSegmentFilesTest, ChecksumsAreWhatFindsIt) {
  std::string bad = good_["segment-3"];
  bad[bad.size() - 10] ^= 0x10;  // of a float
  WriteAll("segment-3", bad);
  ASSERT_OK(ArmFailPoint("skip_segment_checksum=bug"));
  Start();
  EXPECT_OK(catalog_->recovery().files_not_used);
  Stop();
  ASSERT_OK(ArmFailPoint(""));
  ExpectFound("segment-3");
}

TEST_F(SegmentFilesTest, TheLogIsCutOnceFilesCoverIt) {
  Open(RichSchema());
  Write("a", 1500);
  catalog_->AwaitIndexes();
  Write("b", 3);
  catalog_ = nullptr;
  ASSERT_OK_AND_ASSIGN(const auto items, store_->OpenCatalog(record_));
  const auto nothing = [](absl::string_view) { return true; };
  EXPECT_THAT(items->ScanChanges(0, nothing),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("begins after")));
  std::vector<std::string> ids;
  EXPECT_OK(items->ScanChanges(1, [&](absl::string_view id) {
    ids.emplace_back(id);
    return true;
  }));
  EXPECT_EQ(ids, (std::vector<std::string>{"b0", "b1", "b2"}));
}

TEST_F(SegmentFilesTest, ALogThatServesNothingIsCut) {
  Open(OneFieldSchema(2));  // too small for an index
  for (int i = 0; i < 14; ++i) Write("a", 5000);
  catalog_->AwaitIndexes();
  catalog_ = nullptr;
  ASSERT_OK_AND_ASSIGN(const auto items, store_->OpenCatalog(record_));
  EXPECT_TRUE(absl::IsDataLoss(
      items->ScanChanges(0, [](absl::string_view) { return true; })));
}

// Deletes trigger no merge until they are many. An earlier upsert must not keep
// them in the log either.
TEST_F(SegmentFilesTest, DeletesAloneDoNotMakeALongLog) {
  max_logged_changes_ = 100;
  Open(RichSchema());
  Write("a", 3000);
  catalog_->AwaitIndexes();
  Write("b", 2);
  Delete({"b1"});
  for (int begin = 0; begin < 350; begin += 10) {
    std::vector<std::string> ids;
    for (int i = begin; i < begin + 10; ++i) {
      ids.push_back("a" + std::to_string(i));
    }
    Delete(ids);
    catalog_->AwaitIndexes();
  }
  EXPECT_OK(catalog_->save_status());
  Restart();
  ASSERT_OK(catalog_->recovery().files_not_used);
  EXPECT_GT(catalog_->recovery().replayed_count, 0);
  EXPECT_LT(catalog_->recovery().replayed_count, 100);
  ExpectAll("restarted");
}

// Left by an abandoned save whose segments have been merged since.
TEST_F(SegmentFilesTest, FilesThatNobodyWantsGoBeforeOthersAreWritten) {
  Open(RichSchema());
  Write("a", 1500);
  catalog_->AwaitIndexes();
  const auto files = Files();
  const auto snapshot = catalog_->snapshot();
  catalog_ = nullptr;
  ASSERT_OK_AND_ASSIGN(const auto items, store_->OpenCatalog(record_));
  SegmentFiles again(items->segment_directory(), &items->scratch_files());
  ASSERT_OK(again.Load(Snapshot(*snapshot)));
  WriteAll("segment-9", "a part of it");
  const std::atomic<bool> cancelled = true;
  EXPECT_THAT(again.Save(*snapshot, 1, cancelled),
              StatusIs(absl::StatusCode::kCancelled, ::testing::_));
  EXPECT_EQ(Files(), files);
}

TEST_F(SegmentFilesTest, AFileInTheirPlaceKeepsNothingFromOpening) {
  Open(RichSchema());
  Write("a", 100);
  Stop();
  std::filesystem::remove_all(segments_path());
  std::filesystem::create_directories(directory_ / "segments");
  std::ofstream(segments_path()) << "a file";
  Start();
  EXPECT_TRUE(absl::IsDataLoss(catalog_->recovery().files_not_used));
  EXPECT_THAT(catalog_->save_status(), StatusIs(absl::StatusCode::kDataLoss,
                                                HasSubstr(segments_path())));
  ExpectAll("with a file in their place");
  Write("b", 4000);
  catalog_->AwaitIndexes();
  EXPECT_FALSE(catalog_->save_status().ok());
  Restart();
  ExpectAll("restarted");
  Stop();
  std::filesystem::remove(segments_path());
  Start();
  EXPECT_OK(catalog_->recovery().files_not_used);
  catalog_->AwaitIndexes();
  EXPECT_OK(catalog_->save_status());
  Restart();
  EXPECT_EQ(catalog_->recovery().segment_count, 1);
  ExpectAll("once they have a directory");
}

// Retried without further writes or merges.
TEST_F(SegmentFilesTest, WhatCouldNotBeWrittenIsWrittenLater) {
  Open(RichSchema());
  Write("a", 100);
  std::filesystem::remove_all(segments_path());
  std::filesystem::create_directories(directory_ / "segments");
  std::ofstream(segments_path()) << "a file";
  Write("b", 1500);
  catalog_->AwaitIndexes();
  EXPECT_FALSE(catalog_->save_status().ok());
  std::filesystem::remove(segments_path());
  const SteadyTime give_up = SteadyAfter(absl::Minutes(1));
  while (!catalog_->save_status().ok() && SteadyNow() < give_up) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_OK(catalog_->save_status());
  Restart();
  EXPECT_OK(catalog_->recovery().files_not_used);
  EXPECT_EQ(catalog_->recovery().replayed_count, 0);
  ExpectAll("restarted");
}

TEST_F(SegmentFilesTest, FilesCoverWhatIsBeforeTheFirstRowThatGrows) {
  Open(RichSchema());
  Write("a", 1500);
  catalog_->AwaitIndexes();
  const std::int64_t before = catalog_->snapshot()->sequence;
  EXPECT_EQ(SegmentFiles::Covered(*catalog_->snapshot()), before);
  Write("b", 3);
  Write("c", 3);
  EXPECT_EQ(SegmentFiles::Covered(*catalog_->snapshot()), before);
}

TEST_F(SegmentFilesTest, KeysAreCountedAgain) {
  Open(RichSchema());
  Write("a", 3000);
  catalog_->AwaitIndexes();
  Delete({"a1", "a2", "a3"});
  Restart();
  ASSERT_OK(catalog_->recovery().files_not_used);
  EXPECT_EQ(catalog_->recovery().segment_count, 1);
  for (int f = 0; f < 2; ++f) {
    std::int64_t count = 0;
    for (const auto& [id, item] : expected_) count += !item.keys[f].empty();
    EXPECT_EQ(catalog_->snapshot()->key_count(f), count) << f;
  }
  EXPECT_GT(CountDeadKeys(*catalog_->snapshot()), 0);
}

TEST_F(SegmentFilesTest, KeysOfAModelOfAnotherNameAreOfNoUse) {
  StoreHeads();
  models_[0].name = record_.schema.key_fields[0].model = {"n", 1};
  Restart();
  EXPECT_OK(catalog_->recovery().files_not_used);
  EXPECT_EQ(catalog_->recovery().segment_count, 0);
}

TEST_F(SegmentFilesTest, ADeletedCatalogLeavesNoFiles) {
  Open(RichSchema());
  Write("a", 1500);
  catalog_->AwaitIndexes();
  catalog_ = nullptr;
  ASSERT_OK(store_->RemoveRecord("shop"));
  ASSERT_OK(store_->RemoveFiles(record_));
  EXPECT_FALSE(std::filesystem::exists(segments_path()));
}

}  // namespace
}  // namespace attendant
