// A catalog with each kind of index over the wire: created, filled, trained,
// queried, restarted, and changed to another kind.
#include <gmock/gmock.h>

#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "tests/service/server_fixture.h"

namespace attendant {
namespace {

constexpr int kItemCount = 3000;
constexpr int kDim = 8;

class IndexKindsTest : public ServerFixture,
                       public ::testing::WithParamInterface<v1::IndexKind> {
 protected:
  void SetUp() override {
    ServerFixture::SetUp();
    std::mt19937 random(5);
    std::normal_distribution<float> normal;
    for (float& f : query_) f = normal(random);
    keys_.resize(kItemCount * kDim);
    for (float& f : keys_) f = normal(random);
  }

  void CreateCatalog(v1::IndexKind kind) {
    v1::CreateCatalogRequest request;
    request.set_name("shop");
    v1::KeyField& field = *request.mutable_schema()->add_key_fields();
    field.set_name("k");
    field.set_dimension(kDim);
    field.set_index_kind(kind);
    ASSERT_TRUE(Create(request).ok());
  }

  void Write() {
    v1::BatchUpsertItemsRequest request;
    request.set_catalog("shop");
    for (int i = 0; i < kItemCount; ++i) {
      v1::Item& item = *request.add_items();
      item.set_id(absl::StrCat("i", i));
      SetVector({keys_.data() + i * kDim, kDim}, &(*item.mutable_keys())["k"]);
      if (request.items_size() == 250) {
        const grpc::Status status = Upsert(request);
        ASSERT_TRUE(status.ok()) << status.error_message();
        request.clear_items();
      }
    }
  }

  void AwaitIndex() {
    ASSERT_OK_AND_ASSIGN(const auto catalog, catalogs_->Get("shop"));
    catalog->AwaitIndexes();
  }

  v1::AttendResponse Ask(v1::ScanMode mode) {
    v1::AttendRequest request = Query("shop", query_);
    request.set_result_count(10);
    request.set_scan_mode(mode);
    return Answer(request);
  }

  // Expects the index to answer, and its answer to agree with an exact scan.
  void ExpectAnswers(v1::IndexKind kind) {
    const v1::Catalog catalog = Describe("shop");
    ASSERT_EQ(catalog.indexes_size(), 1);
    EXPECT_EQ(catalog.indexes(0).active_kind(), kind);
    EXPECT_FALSE(catalog.indexes(0).training());
    EXPECT_GT(catalog.indexes(0).probe_count(), 0);
    EXPECT_GE(catalog.indexes(0).measured_recall(), 0.8);
    const v1::AttendResponse exact = Ask(v1::SCAN_MODE_EXACT);
    const v1::AttendResponse found = Ask(v1::SCAN_MODE_INDEX);
    EXPECT_EQ(found.stats().index_kind(), kind);
    ASSERT_EQ(found.items_size(), 10);
    int hits = 0;
    for (const v1::AttendedItem& item : found.items()) {
      for (const v1::AttendedItem& best : exact.items()) {
        if (best.id() != item.id()) continue;
        ++hits;
        EXPECT_EQ(item.logit(), best.logit());
      }
    }
    EXPECT_GE(hits, 7);
  }

  std::vector<float> query_ = std::vector<float>(kDim);
  std::vector<float> keys_;
};

INSTANTIATE_TEST_SUITE_P(Kinds, IndexKindsTest,
                         ::testing::Values(v1::INDEX_KIND_IVF,
                                           v1::INDEX_KIND_HNSW,
                                           v1::INDEX_KIND_LSH,
                                           v1::INDEX_KIND_PQ));

TEST_P(IndexKindsTest, AnswersFromImportToRestart) {
  CreateCatalog(GetParam());
  Write();
  AwaitIndex();
  ExpectAnswers(GetParam());

  server_.reset();
  catalogs_.reset();
  ServerFixture::SetUp();
  EXPECT_EQ(Describe("shop").schema().key_fields(0).index_kind(), GetParam());
  AwaitIndex();
  ExpectAnswers(GetParam());
}

// The place of the floats affects only the reported sizes, and survives a
// restart.
TEST_P(IndexKindsTest, KeysMayLieOnDisk) {
  CreateCatalog(GetParam());
  const auto move = [this](bool to_disk) {
    v1::UpdateCatalogRequest request;
    request.set_name("shop");
    v1::KeyField& field = *request.add_key_fields();
    field.set_name("k");
    field.set_keys_on_disk(to_disk);
    request.mutable_update_mask()->add_paths("keys_on_disk");
    return UpdateCatalog(request);
  };
  if (GetParam() == v1::INDEX_KIND_HNSW || GetParam() == v1::INDEX_KIND_LSH) {
    const grpc::Status status = move(true);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
    EXPECT_THAT(status.error_message(),
                ::testing::StartsWith("key_fields[0].keys_on_disk: "));
    return;
  }
  Write();
  AwaitIndex();
  v1::AttendResponse before = Ask(v1::SCAN_MODE_INDEX);
  const v1::MemoryUse memory = Describe("shop").memory();
  EXPECT_EQ(Describe("shop").indexes(0).disk_bytes(), 0);
  ASSERT_TRUE(move(true).ok());
  const auto expect_on_disk = [&] {
    AwaitIndex();
    constexpr std::int64_t kFloatBytes = kItemCount * kDim * 4;
    const v1::Catalog catalog = Describe("shop");
    EXPECT_TRUE(catalog.schema().key_fields(0).keys_on_disk());
    EXPECT_EQ(catalog.indexes(0).disk_bytes(), kFloatBytes);
    EXPECT_EQ(memory.key_bytes() - catalog.memory().key_bytes(), kFloatBytes);
    EXPECT_EQ(catalog.memory().mapped_bytes(), kFloatBytes);
    EXPECT_EQ(catalog.memory().code_bytes(), memory.code_bytes());
    EXPECT_EQ(catalog.memory().index_bytes(), memory.index_bytes());
    ExpectAnswers(GetParam());
    const v1::AttendResponse after = Ask(v1::SCAN_MODE_INDEX);
    ASSERT_EQ(after.items_size(), before.items_size());
    for (int i = 0; i < after.items_size(); ++i) {
      EXPECT_EQ(after.items(i).SerializeAsString(),
                before.items(i).SerializeAsString());
    }
    EXPECT_EQ(after.log_partition(), before.log_partition());
  };
  expect_on_disk();
  server_.reset();
  catalogs_.reset();
  ServerFixture::SetUp();
  // A restart reads items in the order of their ids, which trains different
  // lists.
  AwaitIndex();
  before = Ask(v1::SCAN_MODE_INDEX);
  expect_on_disk();
}

TEST_P(IndexKindsTest, ACatalogCanChangeToItAndBack) {
  CreateCatalog(v1::INDEX_KIND_FLAT);
  Write();
  const auto change_to = [this](v1::IndexKind kind) {
    v1::UpdateCatalogRequest request;
    request.set_name("shop");
    v1::KeyField& field = *request.add_key_fields();
    field.set_name("k");
    field.set_index_kind(kind);
    request.mutable_update_mask()->add_paths("index_kind");
    ASSERT_TRUE(UpdateCatalog(request).ok());
    AwaitIndex();
  };
  change_to(GetParam());
  ExpectAnswers(GetParam());
  change_to(v1::INDEX_KIND_FLAT);
  EXPECT_EQ(Describe("shop").indexes(0).active_kind(), v1::INDEX_KIND_FLAT);
}

}  // namespace
}  // namespace attendant
