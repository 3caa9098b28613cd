// Indexes with floats in a file answer as if these were in memory.
#include <gmock/gmock.h>

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "core/shortlist/ivf/ivf_index.h"
#include "core/shortlist/kinds/flat_index.h"
#include "core/shortlist/kinds/pq_index.h"
#include "tests/core/shortlist/scan_fixture.h"
#include "tests/support/memory_files.h"
#include "tests/support/status_matchers.h"

namespace attendant {
namespace {

using ::testing::HasSubstr;

// Keys of 144 bytes straddle pages.
constexpr std::int64_t kDim = 36;
constexpr std::int64_t kRows = 3000;
constexpr std::int64_t kQueries = 12;
constexpr std::int64_t kShortlist = 50;

template <typename Index, typename Options>
std::unique_ptr<KeyIndex> Build(const KeyTable& table, ScoreKind kind,
                                ScratchFiles* files) {
  Options options;
  options.key_files = files;
  auto index = Index::Build(table.keys, table.dim, kind, options);
  EXPECT_OK(index);
  return *std::move(index);
}

// Returns all results of a scan as bytes.
std::string BytesOf(const ScanStats& stats, const AttentionState& state) {
  std::string bytes;
  const auto add = [&](const auto& value) {
    bytes.append(reinterpret_cast<const char*>(&value), sizeof(value));
  };
  for (const Candidate& c : state.top().Sorted()) {
    add(c.row);
    add(c.logit);
    add(c.similarity);
  }
  add(state.partition().max);
  add(state.partition().sum);
  add(stats.scored_count);
  add(stats.log_variance);
  add(stats.log_drawn_variance);
  add(stats.log_lower);
  add(stats.log_upper);
  if (state.value_dim() > 0) {
    for (const float component : state.PooledValue()) add(component);
  }
  return bytes;
}

struct Question {
  const char* name;
  ScanGoals goals = {};
  bool exhaustive = false;
  bool masked = false;
  bool pools = false;
};

const Question kQuestions[] = {
    {.name = "as built"},
    {.name = "recall", .goals = {.recall = 0.99}},
    {.name = "proven", .goals = {.recall = 1}},
    {.name = "precise", .goals = {.mass_precision = 0.02}},
    {.name = "exhaustive", .exhaustive = true},
    {.name = "pooled", .pools = true},
    {.name = "pooled, precise",
     .goals = {.mass_precision = 0.02},
     .pools = true},
    {.name = "masked", .masked = true},
    {.name = "masked, precise",
     .goals = {.mass_precision = 0.02},
     .masked = true},
    {.name = "masked, exhaustive", .exhaustive = true, .masked = true},
};

void ExpectTheSameAnswers(const KeyTable& table, const KeyIndex& memory,
                          const KeyIndex& disk) {
  Bitmap allowed(kRows);
  for (RowIndex row = 0; row < kRows; row += 7) allowed.Set(row);
  for (const Question& question : kQuestions) {
    for (std::int64_t q = 0; q < kQueries; ++q) {
      ScanQuery query = QueryFor(table.keys[q * 200 + 1], kRows);
      query.goals = question.goals;
      query.exhaustive = question.exhaustive;
      if (question.masked) query.allowed = &allowed;
      const std::int64_t value_dim = question.pools ? kDim : 0;
      AttentionState in_memory(kShortlist, &kNoIds, value_dim);
      AttentionState on_disk(kShortlist, &kNoIds, value_dim);
      ASSERT_OK_AND_ASSIGN(const auto of_memory, memory.Scan(query, in_memory));
      ASSERT_OK_AND_ASSIGN(const auto of_disk, disk.Scan(query, on_disk));
      ASSERT_EQ(BytesOf(of_memory, in_memory), BytesOf(of_disk, on_disk))
          << question.name << ", query " << q;
    }
  }
  for (RowIndex row = 0; row < kRows; ++row) {
    const auto a = memory.Key(row);
    const auto b = disk.Key(row);
    ASSERT_TRUE(std::equal(a.begin(), a.end(), b.begin(), b.end())) << row;
  }
}

void ExpectItsFloatsOnDisk(const KeyTable& table, const KeyIndex& memory,
                           const KeyIndex& disk) {
  std::int64_t float_bytes = 0;
  for (const auto key : table.keys) {
    float_bytes += static_cast<std::int64_t>(key.size_bytes());
  }
  EXPECT_EQ(memory.disk_bytes(), 0);
  EXPECT_EQ(disk.disk_bytes(), float_bytes);
  EXPECT_EQ(memory.memory_bytes() - disk.memory_bytes(), float_bytes);
}

KeyTable TheKeys() {
  KeyTable table = ClusteredKeys(kRows, kDim, 50, 23);
  for (std::size_t row = 0; row < kRows; row += 101) table.keys[row] = {};
  return table;
}

TEST(KeysOnDiskTest, ListsAnswerTheSame) {
  const KeyTable table = TheKeys();
  for (const ScoreKind kind : {ScoreKind::kDot, ScoreKind::kCosine}) {
    MemoryFiles files;
    const auto memory = Build<IvfIndex, IvfOptions>(table, kind, nullptr);
    const auto disk = Build<IvfIndex, IvfOptions>(table, kind, &files);
    EXPECT_EQ(files.mapped_count(), 1);
    ExpectItsFloatsOnDisk(table, *memory, *disk);
    ExpectTheSameAnswers(table, *memory, *disk);
  }
}

TEST(KeysOnDiskTest, ProductCodesAnswerTheSame) {
  const KeyTable table = TheKeys();
  MemoryFiles files;
  const auto memory =
      Build<PqIndex, PqOptions>(table, ScoreKind::kDot, nullptr);
  const auto disk = Build<PqIndex, PqOptions>(table, ScoreKind::kDot, &files);
  EXPECT_EQ(files.mapped_count(), 1);
  ExpectItsFloatsOnDisk(table, *memory, *disk);
  ExpectTheSameAnswers(table, *memory, *disk);
}

// Rows of FLAT, after they are moved.
TEST(KeysOnDiskTest, RowsAnswerTheSame) {
  const KeyTable table = TheKeys();
  const auto flat = [&] {
    auto index = std::make_unique<FlatIndex>(kDim, kRows);
    for (const auto key : table.keys) index->Append(key);
    return index;
  };
  const auto memory = flat();
  const auto disk = flat();
  MemoryFiles files;
  files.FailAfter(1000, absl::ResourceExhaustedError("the disk is full"));
  EXPECT_THAT(disk->MoveKeys(files),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       HasSubstr("the disk is full")));
  EXPECT_EQ(disk->disk_bytes(), 0);
  ExpectTheSameAnswers(table, *memory, *disk);
  files.FailAfter(0, absl::OkStatus());
  ASSERT_OK(disk->MoveKeys(files));
  EXPECT_EQ(disk->disk_bytes(), kRows * kDim * 4);
  EXPECT_EQ(memory->memory_bytes() - disk->memory_bytes(), kRows * kDim * 4);
  ExpectTheSameAnswers(table, *memory, *disk);
}

TEST(KeysOnDiskTest, AFileThatCanNotBeMadeFailsTheBuild) {
  const KeyTable table = TheKeys();
  MemoryFiles files;
  files.FailToCreate(absl::ResourceExhaustedError("the disk is full"));
  IvfOptions options;
  options.key_files = &files;
  EXPECT_THAT(IvfIndex::Build(table.keys, kDim, ScoreKind::kDot, options),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       HasSubstr("the disk is full")));
}

TEST(KeysOnDiskTest, ADiskThatFillsUpFailsTheBuild) {
  const KeyTable table = ClusteredKeys(20000, kDim, 50, 23);
  MemoryFiles files;
  files.FailAfter(1 << 20, absl::ResourceExhaustedError("the disk is full"));
  PqOptions pq;
  pq.key_files = &files;
  IvfOptions ivf;
  ivf.key_files = &files;
  for (const absl::Status& status :
       {PqIndex::Build(table.keys, kDim, ScoreKind::kDot, pq).status(),
        IvfIndex::Build(table.keys, kDim, ScoreKind::kDot, ivf).status()}) {
    EXPECT_THAT(status, StatusIs(absl::StatusCode::kResourceExhausted,
                                 HasSubstr("the disk is full")));
  }
  // In steps: no second copy of all keys was held.
  EXPECT_GT(files.appended_bytes(), 1 << 20);
  EXPECT_LT(files.appended_bytes(), 5 << 20);
  EXPECT_EQ(files.mapped_count(), 0);
}

// Some file systems report the error only at the sync.
TEST(KeysOnDiskTest, AFileThatCanNotBeSyncedFailsTheBuild) {
  const KeyTable table = TheKeys();
  MemoryFiles files;
  files.FailToMap(absl::ResourceExhaustedError("the disk is full"));
  PqOptions pq;
  pq.key_files = &files;
  IvfOptions ivf;
  ivf.key_files = &files;
  for (const absl::Status& status :
       {PqIndex::Build(table.keys, kDim, ScoreKind::kDot, pq).status(),
        IvfIndex::Build(table.keys, kDim, ScoreKind::kDot, ivf).status()}) {
    EXPECT_THAT(status, StatusIs(absl::StatusCode::kResourceExhausted,
                                 HasSubstr("the disk is full")));
  }
  EXPECT_GT(files.appended_bytes(), 0);
}

}  // namespace
}  // namespace attendant
