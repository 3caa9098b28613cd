#include "core/catalog/live/catalog_set.h"

#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <future>
#include <thread>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "core/base/fail_point.h"
#include "core/catalog/query/attend.h"
#include "core/catalog/segments/mask.h"
#include "tests/core/catalog/catalog_fixture.h"
#include "tests/support/stored_items.h"

namespace attendant {
namespace {

using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

class CatalogSetTest : public ::testing::Test {
 protected:
  void SetUp() override {
    directory_ =
        ::testing::TempDir() + "/catalog_set_" +
        ::testing::UnitTest::GetInstance()->current_test_info()->name();
    std::filesystem::remove_all(directory_);
    Open();
  }
  void TearDown() override {
    set_ = nullptr;
    std::filesystem::remove_all(directory_);
  }
  void Open() {
    set_ = nullptr;
    auto opened = CatalogSet::Open(directory_, {});
    ASSERT_OK(opened);
    set_ = *std::move(opened);
  }

  std::string directory_;
  std::unique_ptr<CatalogSet> set_;
};

std::vector<Item> ItemsOf(const LiveCatalog& catalog) {
  const std::vector<StoredItem> items = *StoredItems(catalog, "", 100);
  return {items.begin(), items.end()};
}

TextEncoder MakeEncoder(std::int64_t dim) {
  TextEncoderParts parts;
  parts.terms = {"clock"};
  parts.idf = {1};
  parts.dim = dim;
  parts.projection.assign(dim, 1);
  return *TextEncoder::Create(parts);
}

TEST_F(CatalogSetTest, BringsCatalogsItemsAndEncodersBack) {
  ASSERT_OK_AND_ASSIGN(
      CatalogSet::Created created,
      set_->Create("shop", OneFieldSchema(2), {{"vec", MakeEncoder(2)}}));
  EXPECT_TRUE(created.created);
  ASSERT_OK(created.catalog->Upsert(std::vector{MakeItem("a", {1, 2})}, ""));
  const CatalogRecord record = created.catalog->record();
  created.catalog = nullptr;
  Open();
  ASSERT_OK_AND_ASSIGN(const auto catalog, set_->Get("shop"));
  EXPECT_EQ(catalog->record(), record);
  AttendQuery query;
  query.query = TextQuery{"clock"};
  ASSERT_OK_AND_ASSIGN(const AttendAnswer answer,
                       Attend(*catalog->snapshot(), query, Interrupt()));
  EXPECT_EQ(answer.items.size(), 1);
}

TEST_F(CatalogSetTest, CreateAgainIsOkOnlyWithTheSameSchema) {
  ASSERT_OK(set_->Create("shop", OneFieldSchema(2), {}));
  CatalogSchema other_defaults = OneFieldSchema(2);
  other_defaults.key_fields[0].temperature = 3;
  ASSERT_OK_AND_ASSIGN(const CatalogSet::Created again,
                       set_->Create("shop", other_defaults, {}));
  EXPECT_FALSE(again.created);
  EXPECT_EQ(again.catalog->record().schema, OneFieldSchema(2));
  const auto refuses = [&](const CatalogSchema& schema,
                           const std::string& difference) {
    EXPECT_THAT(set_->Create("shop", schema, {}),
                StatusIs(absl::StatusCode::kAlreadyExists,
                         HasSubstr(absl::StrCat("catalog 'shop' exists with "
                                                "another schema: ",
                                                difference, ";"))));
  };
  const std::string field = OneFieldSchema(2).key_fields[0].name;
  refuses(OneFieldSchema(3),
          absl::StrCat("its key field '", field,
                       "' has another place, dimension or score kind"));
  CatalogSchema other = OneFieldSchema(2);
  other.key_fields[0].name = "else";
  refuses(other, "it has no key field 'else'");
  other = OneFieldSchema(2);
  other.attributes = {{.name = "price"}};
  refuses(other, "it has no attribute 'price'");
  other.attributes.clear();
  other.value_dim = 7;
  refuses(other, absl::StrCat("its values have ", OneFieldSchema(2).value_dim,
                              " dimensions, not 7"));
}

TEST_F(CatalogSetTest, EncodersAreAskedForWhereThereIsNoCatalogYet) {
  const auto refused = [] {
    return CatalogSet::Encoders(absl::InvalidArgumentError("bad encoders"));
  };
  EXPECT_THAT(
      set_->Create("shop", OneFieldSchema(2), refused),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("bad encoders")));
  EXPECT_FALSE(set_->Get("shop").ok());
  ASSERT_OK(set_->Create("shop", OneFieldSchema(2), {}));
  ASSERT_OK_AND_ASSIGN(const CatalogSet::Created again,
                       set_->Create("shop", OneFieldSchema(2), refused));
  EXPECT_FALSE(again.created);
}

TEST_F(CatalogSetTest, AModelMakesKeysThatIndexesCanHold) {
  constexpr std::int64_t kRows = 8193;
  MultiHeadProjections heads;
  heads.head_count = 1;
  heads.query = heads.key = {{kRows, 1, std::vector<float>(kRows, 1)}, {}};
  ASSERT_OK(set_->models().Create("long", AttentionModel{heads}, {}));
  const auto refused =
      StatusIs(absl::StatusCode::kResourceExhausted,
               HasSubstr("schema.key_fields[0].model: got a model of"));
  CatalogSchema schema = OneFieldSchema(1);
  ASSERT_OK(set_->Create("plain", schema, {}));
  schema.key_fields[0].model.name = "long";
  EXPECT_THAT(set_->Create("shop", schema, {}), refused);
  EXPECT_THAT(set_->Update("plain", schema, {}), refused);
}

// Repeatedly creating a catalog that is refused must not fill the disk.
TEST_F(CatalogSetTest, WhatIsRefusedLeavesNoFiles) {
  ASSERT_OK(ArmFailPoint("create.before_record=error"));
  const absl::Cleanup disarm = [] { EXPECT_OK(ArmFailPoint("")); };
  EXPECT_FALSE(set_->Create("shop", OneFieldSchema(2), {}).ok());
  EXPECT_TRUE(std::filesystem::is_empty(directory_ + "/items"));
  ASSERT_OK(ArmFailPoint(""));
  EXPECT_OK(set_->Create("shop", OneFieldSchema(2), {}));
  Open();
  EXPECT_OK(set_->Get("shop"));
}

TEST_F(CatalogSetTest, RefusesBadNamesAndEncoders) {
  for (const char* name : {"", "Shop", "-shop", "a/b"}) {
    EXPECT_THAT(
        set_->Create(name, OneFieldSchema(2), {}),
        StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("name")));
  }
  EXPECT_THAT(
      set_->Create("shop", OneFieldSchema(2), {{"vec", MakeEncoder(3)}}),
      StatusIs(absl::StatusCode::kInvalidArgument,
               HasSubstr("text_encoders[0]")));
  EXPECT_THAT(
      set_->Create("shop", OneFieldSchema(2), {{"other", MakeEncoder(2)}}),
      StatusIs(absl::StatusCode::kInvalidArgument,
               HasSubstr("text_encoders[0].key_field")));
  EXPECT_TRUE(set_->List("", 10).empty());
}

TEST_F(CatalogSetTest, ListsByNameFromTheOneAfter) {
  for (const char* name : {"c", "a", "b"}) {
    ASSERT_OK(set_->Create(name, OneFieldSchema(2), {}));
  }
  const auto page = set_->List("a", 1);
  ASSERT_EQ(page.size(), 1);
  EXPECT_EQ(page[0]->record().name, "b");
  EXPECT_EQ(set_->List("", 10).size(), 3);
}

TEST_F(CatalogSetTest, UpdateChangesDefaultsForGood) {
  ASSERT_OK(set_->Create("shop", OneFieldSchema(2), {}));
  CatalogSchema schema = OneFieldSchema(2);
  KeyFieldSchema& field = schema.key_fields[0];
  field.temperature = 0.5;
  ASSERT_OK(set_->Update("shop", schema, {}));
  Open();
  ASSERT_OK_AND_ASSIGN(const auto catalog, set_->Get("shop"));
  EXPECT_EQ(catalog->record().schema.key_fields[0].temperature, 0.5);
  field.temperature = -1;
  EXPECT_THAT(
      set_->Update("shop", schema, {}),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("temperature")));
  field.temperature = 1;
  field.dim = 3;
  EXPECT_THAT(set_->Update("shop", schema, {}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("fixed at creation")));
}

TEST_F(CatalogSetTest, UpdateAddsAttributesForGood) {
  CatalogSchema schema = OneFieldSchema(2);
  schema.attributes = {{"price", AttributeType::kDouble}};
  ASSERT_OK(set_->Create("shop", schema, {}));
  Item before = MakeItem("before", {1, 2});
  before.attributes = {{0, 2.5}};
  {
    ASSERT_OK_AND_ASSIGN(const auto shop, set_->Get("shop"));
    ASSERT_OK(shop->Upsert(std::vector{before}, ""));
  }
  const CatalogSchema fewer = schema;
  schema.attributes.push_back({"color", AttributeType::kString});
  schema.attributes.push_back({"sold", AttributeType::kInt64});
  ASSERT_OK(set_->Update("shop", schema, {}));
  Item after = MakeItem("after", {3, 4});
  after.attributes = {{1, std::string("red")}, {2, std::int64_t{7}}};
  const Filter red = Filter::Compare("color", ComparisonKind::kEqual,
                                     AttributeValue(std::string("red")));
  for (const bool restarts : {false, true}) {
    SCOPED_TRACE(restarts);
    if (restarts) Open();
    ASSERT_OK_AND_ASSIGN(const auto shop, set_->Get("shop"));
    EXPECT_EQ(shop->record().schema, schema);
    if (!restarts) {
      ASSERT_OK(shop->Upsert(std::vector{after}, ""));
    }
    EXPECT_THAT(ItemsOf(*shop), UnorderedElementsAre(before, after));
    ASSERT_OK_AND_ASSIGN(const std::int64_t count,
                         CountMatching(*shop->snapshot(), red));
    EXPECT_EQ(count, 1);
  }
  const auto refused = StatusIs(absl::StatusCode::kInvalidArgument,
                                HasSubstr("fixed at creation"));
  EXPECT_THAT(set_->Update("shop", fewer, {}), refused);
  CatalogSchema other = schema;
  other.attributes[1].type = AttributeType::kInt64;
  EXPECT_THAT(set_->Update("shop", other, {}), refused);
  other = schema;
  std::swap(other.attributes[1], other.attributes[2]);
  EXPECT_THAT(set_->Update("shop", other, {}), refused);
  // Who asks for some of them again, in any order, gets this catalog.
  for (const CatalogSchema& asked : {fewer, other}) {
    ASSERT_OK_AND_ASSIGN(const auto again, set_->Create("shop", asked, {}));
    EXPECT_FALSE(again.created);
  }
}

TEST_F(CatalogSetTest, RefusesTemperaturesThatNoQueryCouldHave) {
  for (const double temperature : {1e-320, 1e-300, 2.9e-39}) {
    CatalogSchema schema = OneFieldSchema(2);
    schema.key_fields[0].temperature = temperature;
    const absl::Status refused = set_->Create("shop", schema, {}).status();
    EXPECT_THAT(refused, StatusIs(absl::StatusCode::kInvalidArgument,
                                  HasSubstr("want at least 2.93")));
    EXPECT_EQ(FieldOf(refused), "schema.key_fields[0].temperature");
    ASSERT_OK(set_->Create("other", OneFieldSchema(2), {}));
    EXPECT_EQ(set_->Update("other", schema, {}), refused);
  }
  CatalogSchema schema = OneFieldSchema(2);
  schema.key_fields[0].temperature = 2.94e-39;
  EXPECT_OK(set_->Create("shop", schema, {}));
}

TEST_F(CatalogSetTest, ADamagedCatalogLeavesTheOthersReadable) {
  std::string damaged_uid;
  for (const char* name : {"whole", "damaged"}) {
    ASSERT_OK_AND_ASSIGN(const CatalogSet::Created created,
                         set_->Create(name, OneFieldSchema(2), {}));
    ASSERT_OK(created.catalog->Upsert(std::vector{MakeItem("a", {1, 2})}, ""));
    damaged_uid = created.catalog->record().uid;
  }
  set_ = nullptr;
  // Without the file that names the manifest, RocksDB finds no data.
  ASSERT_TRUE(std::filesystem::remove(directory_ + "/items/" + damaged_uid +
                                      "/CURRENT"));
  Open();
  ASSERT_OK_AND_ASSIGN(const auto whole, set_->Get("whole"));
  EXPECT_EQ(whole->snapshot()->item_count(), 1);
  EXPECT_THAT(set_->Get("damaged"),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("")));
  EXPECT_THAT(set_->Create("damaged", OneFieldSchema(2), {}),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("")));
  EXPECT_THAT(set_->damages(),
              ::testing::ElementsAre(::testing::Key("damaged")));
  EXPECT_EQ(set_->List("", 10).size(), 1);
  ASSERT_OK(set_->Delete("damaged"));
  EXPECT_THAT(set_->Get("damaged"),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("damaged")));
}

// A snapshot from an untrusted source may contain one.
TEST_F(CatalogSetTest, AnEncoderOfOtherDimensionsIsDamage) {
  CatalogRecord record;
  {
    ASSERT_OK_AND_ASSIGN(const CatalogSet::Created created,
                         set_->Create("shop", OneFieldSchema(2), {}));
    record = created.catalog->record();
  }
  set_ = nullptr;
  {
    ASSERT_OK_AND_ASSIGN(const auto store, Store::Open(directory_));
    ASSERT_OK_AND_ASSIGN(const auto items, store->OpenCatalog(record));
    const CatalogStore::EncoderBytes encoder = {"vec",
                                                MakeEncoder(8).Serialize()};
    ASSERT_OK(items->PutEncoders({&encoder, 1}));
  }
  Open();
  EXPECT_THAT(set_->Get("shop"),
              StatusIs(absl::StatusCode::kDataLoss,
                       HasSubstr("text encoder of key field 'vec' is of 8")));
}

TEST_F(CatalogSetTest, ADamagedRecordLeavesTheOthersReadable) {
  ASSERT_OK(set_->Create("whole", OneFieldSchema(2), {}));
  set_ = nullptr;
  {
    ASSERT_OK_AND_ASSIGN(const auto store, Store::Open(directory_));
    CatalogRecord record;
    record.name = "damaged";
    record.uid = "00000000000000aa";
    // Not a schema.
    ASSERT_OK(store->Put(record));
  }
  Open();
  EXPECT_OK(set_->Get("whole"));
  EXPECT_THAT(set_->Get("damaged"),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("record")));
  ASSERT_OK(set_->Delete("damaged"));
  Open();
  EXPECT_OK(set_->Get("whole"));
  EXPECT_TRUE(set_->damages().empty());
}

TEST_F(CatalogSetTest, DeletedCatalogsStayGoneAndHoldersCanRead) {
  ASSERT_OK_AND_ASSIGN(CatalogSet::Created created,
                       set_->Create("shop", OneFieldSchema(2), {}));
  ASSERT_OK(created.catalog->Upsert(std::vector{MakeItem("a", {1, 2})}, ""));
  ASSERT_OK(set_->Delete("shop"));
  EXPECT_THAT(set_->Get("shop"),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("shop")));
  EXPECT_THAT(set_->Delete("shop"),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("shop")));
  EXPECT_EQ(created.catalog->snapshot()->item_count(), 1);
  ASSERT_OK_AND_ASSIGN(CatalogSet::Created again,
                       set_->Create("shop", OneFieldSchema(3), {}));
  EXPECT_EQ(again.catalog->snapshot()->item_count(), 0);
  EXPECT_NE(again.catalog->record().uid, created.catalog->record().uid);
  again.catalog = nullptr;
  created.catalog = nullptr;
  Open();
  ASSERT_OK_AND_ASSIGN(const auto catalog, set_->Get("shop"));
  EXPECT_EQ(catalog->record().schema, OneFieldSchema(3));
}

// A waiting delete may take as long as other work keeps every core busy.
TEST_F(CatalogSetTest, NothingWaitsForADeleteThatWaits) {
  ASSERT_OK_AND_ASSIGN(CatalogSet::Created created,
                       set_->Create("shop", OneFieldSchema(2), {}));
  const std::string uid = created.catalog->record().uid;
  ASSERT_OK(created.catalog->Upsert(std::vector{MakeItem("a", {1, 2})}, ""));
  std::promise<void> reading;
  std::promise<void> go_on;
  std::thread reader([&] {
    EXPECT_OK(created.catalog->VisitStoredAfter("", [&](const StoredItem&) {
      reading.set_value();
      go_on.get_future().wait();
      return true;
    }));
  });
  reading.get_future().wait();
  std::atomic<bool> deleted = false;
  std::thread deleter([&] {
    EXPECT_OK(set_->Delete("shop"));
    deleted = true;
  });
  while (set_->Get("shop").ok()) std::this_thread::yield();
  EXPECT_OK(set_->Create("other", OneFieldSchema(2), {}));
  EXPECT_OK(set_->Update("other", OneFieldSchema(2), {}));
  EXPECT_OK(set_->SetAlias("window", "other", std::nullopt));
  EXPECT_THAT(set_->Delete("shop"),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("shop")));
  // Its name now belongs to another catalog.
  ASSERT_OK_AND_ASSIGN(CatalogSet::Created again,
                       set_->Create("shop", OneFieldSchema(3), {}));
  EXPECT_TRUE(again.created);
  ASSERT_OK(again.catalog->Upsert(std::vector{MakeItem("b", {1, 2, 3})}, ""));
  EXPECT_FALSE(deleted);
  EXPECT_TRUE(std::filesystem::exists(directory_ + "/items/" + uid));
  go_on.set_value();
  reader.join();
  deleter.join();
  EXPECT_FALSE(std::filesystem::exists(directory_ + "/items/" + uid));
  created.catalog = nullptr;
  again.catalog = nullptr;
  Open();
  ASSERT_OK_AND_ASSIGN(const auto shop, set_->Get("shop"));
  EXPECT_EQ(shop->snapshot()->item_count(), 1);
  EXPECT_OK(ItemsIn(*shop, {"b"}));
}

// Shows the time it is set to.
class FakeClock : public Clock {
 public:
  absl::Time Now() const override { return now; }
  absl::Time now = absl::FromUnixSeconds(1'800'000'000);
};

TEST_F(CatalogSetTest, AClockThatJumpsBackLosesAndOrdersNothing) {
  FakeClock clock;
  CatalogSet::Options options;
  options.clock = &clock;
  set_ = nullptr;
  ASSERT_OK_AND_ASSIGN(set_, CatalogSet::Open(directory_, options));
  AttentionModel model;
  model.kind = BilinearForm{{2, 2, {1, 0, 0, 1}}};
  ASSERT_OK_AND_ASSIGN(CatalogSet::Created first,
                       set_->Create("first", OneFieldSchema(2), {}));
  ASSERT_OK(first.catalog->Upsert(std::vector{MakeItem("a", {1, 2})}, "r1"));
  ASSERT_OK(set_->models().Create("m", model, {}));
  const absl::Time before = clock.now;
  clock.now -= absl::Hours(24 * 365);
  ASSERT_OK(set_->Create("second", OneFieldSchema(2), {}));
  ASSERT_OK(first.catalog->Upsert(std::vector{MakeItem("a", {3, 4})}, "r2"));
  ASSERT_OK_AND_ASSIGN(const auto version,
                       set_->models().Create("m", model, {}));
  EXPECT_EQ(version->name.version, 2);
  EXPECT_EQ(first.catalog->snapshot()->sequence, 2);
  first.catalog = nullptr;
  Open();
  ASSERT_OK_AND_ASSIGN(const auto catalog, set_->Get("first"));
  EXPECT_EQ(catalog->record().create_time, before);
  EXPECT_EQ(catalog->snapshot()->sequence, 2);
  ASSERT_OK_AND_ASSIGN(const auto items, ItemsIn(*catalog, {"a"}));
  EXPECT_EQ(items[0].keys[0], (std::vector<float>{3, 4}));
  ASSERT_OK_AND_ASSIGN(const auto newer, set_->Get("second"));
  EXPECT_EQ(newer->record().create_time, clock.now);
  ASSERT_OK_AND_ASSIGN(const auto newest,
                       set_->models().Get("m", std::nullopt));
  EXPECT_EQ(newest->name.version, 2);
}

TEST_F(CatalogSetTest, BiasesDecayByTheSetsClock) {
  FakeClock clock;
  CatalogSet::Options options;
  options.clock = &clock;
  set_ = nullptr;
  ASSERT_OK_AND_ASSIGN(set_, CatalogSet::Open(directory_, options));
  CatalogSchema schema = OneFieldSchema(2);
  schema.attributes = {{"listed", AttributeType::kTimestamp}};
  ASSERT_OK_AND_ASSIGN(const auto created, set_->Create("shop", schema, {}));
  ASSERT_OK(created.catalog->Upsert(std::vector{MakeItem("a", {1, 2})}, ""));
  AttendQuery query = VectorQuery({1, 0});
  query.biases = {{"listed", std::nullopt, absl::Hours(1)}};
  ASSERT_OK_AND_ASSIGN(
      const AttendAnswer answer,
      Attend(*created.catalog->snapshot(), query, Interrupt()));
  EXPECT_EQ(answer.time, clock.now);
}

}  // namespace
}  // namespace attendant
