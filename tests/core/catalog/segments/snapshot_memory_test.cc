#include "core/catalog/segments/snapshot_memory.h"

#include <gtest/gtest.h>
#include <malloc.h>
#include <unistd.h>

#include <cmath>
#include <fstream>
#include <memory>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/config.h"
#include "core/base/aligned_buffer.h"
#include "core/catalog/live/live_catalog.h"
#include "core/shortlist/ivf/list_index.h"
#include "core/shortlist/mass/unscored_mass.h"
#include "tests/core/catalog/catalog_fixture.h"
#include "tests/support/random_model.h"
#include "tests/support/status_matchers.h"

#if defined(ABSL_HAVE_ADDRESS_SANITIZER) || defined(ABSL_HAVE_THREAD_SANITIZER)
#define ATTENDANT_HAS_OWN_ALLOCATOR 1
#endif

namespace attendant {
namespace {

constexpr std::int64_t kDim = 32;
constexpr std::int64_t kBatch = 1000;

// Keeps no items, so that all allocated memory is the catalog's.
class ForgetfulStore : public FakeStore {
 public:
  using FakeStore::FakeStore;
  absl::Status WriteGroup(std::span<const StoreWrite> /*writes*/) override {
    return absl::OkStatus();
  }
};

CatalogSchema SchemaOf(IndexKind kind, bool has_values) {
  CatalogSchema schema = OneFieldSchema(kDim);
  schema.key_fields[0].index_kind = kind;
  if (has_values) {
    schema.value_dim = 8;
    schema.attributes.push_back({"color", AttributeType::kString});
    schema.attributes.push_back({"price", AttributeType::kDouble});
  }
  return schema;
}

// Returns numbered items from `first` on. Every other one has an opaque value.
std::vector<Item> ItemsFrom(std::int64_t first, bool has_values) {
  std::mt19937_64 random(static_cast<std::uint64_t>(first));
  std::normal_distribution<float> normal;
  std::vector<Item> items;
  for (std::int64_t i = first; i < first + kBatch; ++i) {
    std::vector<float> key(kDim);
    for (float& component : key) component = normal(random);
    items.push_back(MakeItem("item" + std::to_string(i), std::move(key)));
    if (!has_values) continue;
    items.back().value.assign(8, static_cast<float>(i));
    items.back().attributes = {{0, "color" + std::to_string(i % 100)},
                               {1, static_cast<double>(i)}};
    if (i % 2 == 0) items.back().opaque_value = std::string(100, 'o');
  }
  return items;
}

// Bytes allocated and not freed.
std::int64_t AllocatedBytes() {
  const struct mallinfo2 info = mallinfo2();
  return static_cast<std::int64_t>(info.uordblks + info.hblkhd) +
         MappedBufferBytes();
}

// Memory of the process that no file backs.
std::int64_t AnonymousBytes() {
  malloc_trim(0);
  std::ifstream status("/proc/self/status");
  std::string word;
  while (status >> word) {
    std::int64_t kib = 0;
    if (word == "RssAnon:" && status >> kib) return kib << 10;
  }
  return 0;
}

struct Case {
  IndexKind kind;
  std::int64_t count;
  bool has_values;
};

class WeighedFixture : public CatalogFixture {
 protected:
  void SetUp() override {
#ifdef ATTENDANT_HAS_OWN_ALLOCATOR
    GTEST_SKIP() << "the sanitizer's allocator keeps no such numbers";
#endif
  }

  void OpenForgetful(CatalogSchema schema) {
    CatalogRecord record;
    record.name = "shop";
    record.uid = "0123456789abcdef";
    record.schema = std::move(schema);
    std::vector<NamedModel> models(record.schema.key_fields.size());
    auto opened = LiveCatalog::Open(record, std::move(models),
                                    std::make_unique<ForgetfulStore>(disk_),
                                    &background_, {});
    ASSERT_OK(opened);
    catalog_ = *std::move(opened);
  }
  // Old segments are freed once the work on them has ended.
  void AwaitMerges() {
    catalog_->AwaitIndexes();
    background_.Remove(catalog_.get());
  }
};

class SnapshotMemoryTest : public WeighedFixture,
                           public ::testing::WithParamInterface<Case> {
 protected:
  // Opens a catalog whose index is built.
  void Open(const Case& of) {
    ASSERT_NO_FATAL_FAILURE(OpenForgetful(SchemaOf(of.kind, of.has_values)));
    for (std::int64_t i = 0; i < of.count; i += kBatch) {
      ASSERT_OK(catalog_->Upsert(ItemsFrom(i, of.has_values), ""));
    }
    AwaitMerges();
    ASSERT_EQ(catalog_->index_states()[0].active_kind, of.kind);
  }
};

TEST_P(SnapshotMemoryTest, SumOfPartsIsWhatTheAllocatorGave) {
  // Growing segments reserve rows that are not touched yet: the process has
  // requested that memory, but does not occupy it.
  const bool grows = GetParam().kind == IndexKind::kFlat;
  // Excludes what a process sets up once.
  ASSERT_NO_FATAL_FAILURE(
      Open({GetParam().kind, 2 * kBatch, GetParam().has_values}));
  catalog_ = nullptr;
  const std::int64_t before = grows ? AnonymousBytes() : AllocatedBytes();
  ASSERT_NO_FATAL_FAILURE(Open(GetParam()));
  const std::int64_t taken =
      (grows ? AnonymousBytes() : AllocatedBytes()) - before;
  const MemoryParts parts = catalog_->memory();
  EXPECT_NEAR(static_cast<double>(parts.sum()), static_cast<double>(taken),
              0.05 * static_cast<double>(taken))
      << "keys " << parts.keys << ", codes " << parts.codes << ", index "
      << parts.index << ", attributes " << parts.attributes << ", values "
      << parts.values << ", ids " << parts.ids;
  EXPECT_EQ(parts.keys, GetParam().count * kDim * 4);
  EXPECT_EQ(parts.mapped, 0);
  EXPECT_EQ(parts.codes > 0, GetParam().kind != IndexKind::kFlat);
  EXPECT_EQ(parts.values > parts.ids, GetParam().has_values);
}

INSTANTIATE_TEST_SUITE_P(
    Kinds, SnapshotMemoryTest,
    ::testing::Values(Case{IndexKind::kFlat, 100000, false},
                      Case{IndexKind::kFlat, 100000, true},
                      Case{IndexKind::kIvf, 100000, false},
                      Case{IndexKind::kIvf, 20000, true},
                      Case{IndexKind::kLsh, 100000, false},
                      Case{IndexKind::kPq, 100000, false},
                      // Building the graph takes long.
                      Case{IndexKind::kHnsw, 10000, false}));

struct SparseCase {
  std::int64_t dim;    // dimension of a second key field
  std::int64_t count;  // of items
  std::int64_t step;   // one item in `step` has a key; 0: none
};

class SparseKeysTest : public WeighedFixture,
                       public ::testing::WithParamInterface<SparseCase> {
 protected:
  void Open(const SparseCase& of) {
    CatalogSchema schema = OneFieldSchema(8);
    schema.key_fields.push_back({.name = "rare", .dim = of.dim});
    for (KeyFieldSchema& field : schema.key_fields) {
      field.index_kind = IndexKind::kFlat;
    }
    ASSERT_NO_FATAL_FAILURE(OpenForgetful(std::move(schema)));
    for (std::int64_t first = 0; first < of.count; first += kBatch) {
      std::vector<Item> items;
      for (std::int64_t i = first; i < first + kBatch; ++i) {
        items.push_back(
            MakeItem("item" + std::to_string(i), std::vector<float>(8, 1)));
        items.back().keys.emplace_back();
        if (of.step == 0 || i % of.step != 0) continue;
        items.back().keys[1].assign(of.dim, 1);
      }
      ASSERT_OK(catalog_->Upsert(std::move(items), ""));
    }
    AwaitMerges();
  }
};

// Memory is taken by pages: those between keys are no more counted than taken,
// and those that a key is in are whole. 16 MiB of them at most are small.
TEST_P(SparseKeysTest, SumOfPartsIsWhatTheAllocatorGave) {
  // Excludes what a process sets up once.
  ASSERT_NO_FATAL_FAILURE(Open({GetParam().dim, kBatch, GetParam().step}));
  catalog_ = nullptr;
  const std::int64_t before = AnonymousBytes();
  ASSERT_NO_FATAL_FAILURE(Open(GetParam()));
  const std::int64_t taken = AnonymousBytes() - before;
  const MemoryParts parts = catalog_->memory();
  EXPECT_NEAR(static_cast<double>(parts.sum()), static_cast<double>(taken),
              0.05 * static_cast<double>(taken))
      << "keys " << parts.keys << ", index " << parts.index << ", values "
      << parts.values << ", ids " << parts.ids;
}

INSTANTIATE_TEST_SUITE_P(Cases, SparseKeysTest,
                         ::testing::Values(SparseCase{8192, 100000, 0},
                                           SparseCase{1024, 4000, 3},
                                           SparseCase{256, 4000, 2}));

class SnapshotPartsTest : public CatalogFixture {};

TEST_F(SnapshotPartsTest, EachPartGrowsWithWhatItIsOf) {
  OpenCatalog(SchemaOf(IndexKind::kFlat, true));
  const MemoryParts empty = catalog_->memory();
  EXPECT_EQ(empty, MemoryParts());
  Item item =
      MakeItem("a", std::vector<float>(kDim, 1), std::vector<float>(8, 1));
  Upsert({item});
  const MemoryParts one = catalog_->memory();
  EXPECT_EQ(one.keys, kDim * 4);
  EXPECT_EQ(one.attributes, 0);
  EXPECT_EQ(one.tombstones, 0);
  EXPECT_GT(one.ids, 0);

  item.id = "b";
  item.opaque_value = std::string(1000, 'o');
  Upsert({item});
  const MemoryParts two = catalog_->memory();
  EXPECT_EQ(two.keys, 2 * one.keys);
  EXPECT_GE(two.values - one.values, 1000 + 8 * 4);
  EXPECT_EQ(two.ids - one.ids, 1 + 2);

  item.id = "c";
  item.attributes = {{0, std::string(500, 'x')}};
  Upsert({item});
  EXPECT_GE(catalog_->memory().attributes, 500);

  Delete({"a"});
  const MemoryParts dead = catalog_->memory();
  EXPECT_GT(dead.tombstones, 0);
  EXPECT_EQ(dead.keys, 3 * one.keys);
  EXPECT_EQ(dead.sum(), catalog_->memory_bytes());
}

TEST_F(SnapshotPartsTest, TextEncodersCount) {
  OpenCatalog(OneFieldSchema(2));
  TextEncoderParts parts;
  parts.terms = {"red", "blue"};
  parts.idf = {1, 1};
  parts.dim = 2;
  parts.projection = {1, 2, 3, 4};
  auto encoder = TextEncoder::Create(parts);
  ASSERT_OK(encoder);
  ASSERT_OK(SetEncoder(*catalog_, *std::move(encoder)));
  EXPECT_GE(catalog_->memory().encoders, (2 + 4) * 4 + 2 * 32);
  EXPECT_LE(catalog_->memory().encoders, 1000);
}

// Counts the keys that heads will have. The field's keys stay in memory with
// them, because queries no longer read those.
TEST_F(SnapshotPartsTest, AMergeCountsTheKeysThatAModelWillMake) {
  CatalogSchema schema = OneFieldSchema(4);
  schema.key_fields[0].index_kind = IndexKind::kIvf;
  schema.key_fields[0].keys_on_disk = true;
  OpenCatalog(schema);
  Upsert(RandomItems(1000, 4, 1));
  const auto snapshot = catalog_->snapshot();
  const MergePlan plan = {0, snapshot->segments.size(), true};
  const auto bytes = [&](std::optional<AttentionModel> model) {
    NamedModel wanted;
    if (model) wanted.model = std::make_shared<const AttentionModel>(*model);
    return MergeBytes(*snapshot, plan, {wanted});
  };
  const std::int64_t without = bytes(std::nullopt);
  const AttentionModel model = RandomMultiHeadModel(5);
  const std::int64_t head_dim =
      model.multi_head()->key.weight.row_count / model.head_count();
  // The field's floats, and a head's floats before they are on the disk.
  EXPECT_GE(bytes(model) - without, 1000 * (4 + head_dim) * 4 - 1000 * 20);
  EXPECT_GT(bytes(RandomAdditiveModel(5)), without);
}

// With few dimensions this takes more memory than all keys.
TEST_F(SnapshotPartsTest, AMergeCountsWhatTheMassOfListsIsLearnedFrom) {
  CatalogSchema schema = OneFieldSchema(2);
  schema.key_fields[0].index_kind = IndexKind::kIvf;
  OpenCatalog(schema);
  Upsert(RandomItems(1000, 2, 1));
  catalog_->AwaitIndexes();
  const auto snapshot = catalog_->snapshot();
  const auto* index = dynamic_cast<const ListIndex*>(
      snapshot->segments[0].segment->indexes[0].get());
  ASSERT_NE(index, nullptr);
  MergePlan plan = {0, snapshot->segments.size(), true};
  const std::int64_t anew = MergeBytes(*snapshot, plan, {NamedModel()});
  plan.retrains = false;
  const std::int64_t merged = MergeBytes(*snapshot, plan, {NamedModel()});
  EXPECT_GE(anew - merged, UnscoredMass::LearningBytes(index->list_count(), 0));
  EXPECT_GT(anew - merged, 1000 * 2 * 4);
}

}  // namespace
}  // namespace attendant
