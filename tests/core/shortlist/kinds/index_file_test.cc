#include "core/shortlist/kinds/index_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <initializer_list>
#include <limits>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/config.h"
#include "core/shortlist/ivf/ivf_index.h"
#include "core/shortlist/ivf/ivf_training.h"
#include "core/shortlist/ivf/list_index.h"
#include "core/shortlist/kinds/flat_index.h"
#include "core/shortlist/kinds/hnsw_index.h"
#include "core/shortlist/kinds/lsh_index.h"
#include "core/shortlist/kinds/pq_index.h"
#include "tests/core/shortlist/scan_fixture.h"
#include "tests/support/sanitized.h"
#include "tests/support/status_matchers.h"
#include "tests/support/string_stream.h"

namespace attendant {
namespace {

using ::testing::HasSubstr;

std::string Saved(const IvfTraining& training) {
  StringSink sink;
  SaveTraining(training, sink);
  EXPECT_OK(sink.status());
  return sink.bytes;
}

absl::StatusOr<std::shared_ptr<const IvfTraining>> Loaded(std::string bytes) {
  StringSource source(std::move(bytes));
  return LoadTraining(source);
}

class IndexFileTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const KeyTable table = ClusteredKeys(1000, 8, 20, /*seed=*/3);
    ASSERT_OK_AND_ASSIGN(index_,
                         IvfIndex::Build(table.keys, 8, ScoreKind::kDot, {}));
  }

  // Saves the training with the changes made by `damage`, and without what was
  // learned of masses.
  std::string Damaged(
      const std::function<void(IvfTraining&, ListMeans&)>& damage) const {
    const IvfTraining& good = *index_->training();
    IvfTraining training;
    training.calibration = good.calibration;
    training.score_kind = good.score_kind;
    training.seed = good.seed;
    training.key_count = good.key_count;
    training.square_distance = good.square_distance;
    training.id = good.id;
    training.target_recall = good.target_recall;
    training.mass =
        std::make_unique<LearnedMass>(UnscoredMass(), good.means->dim);
    auto means = std::make_shared<ListMeans>();
    means->dim = good.means->dim;
    means->means = AlignedBuffer<float>(good.means->means.size());
    std::copy_n(good.means->means.data(), means->means.size(),
                means->means.data());
    means->reaches = good.means->reaches;
    means->counts = good.means->counts;
    damage(training, *means);
    training.means = std::move(means);
    return Saved(training);
  }

  std::unique_ptr<IvfIndex> index_;
};

TEST_F(IndexFileTest, ATrainingComesBack) {
  const std::string bytes = Saved(*index_->training());
  ASSERT_OK_AND_ASSIGN(const auto training, Loaded(bytes));
  EXPECT_EQ(training->id, index_->training()->id);
  EXPECT_NE(training->assigner, nullptr);
  EXPECT_EQ(Saved(*training), bytes);
}

// A model may make keys of this many components (ValidateModelFits).
TEST(IndexFileDimensionTest, TheLongestKeysComeBack) {
  constexpr std::int64_t kRows = 60;
  const KeyTable table = ClusteredKeys(kRows, kMaxDimension, 3, /*seed=*/3);
  ASSERT_OK_AND_ASSIGN(
      const auto lists,
      IvfIndex::Build(table.keys, kMaxDimension, ScoreKind::kDot, {}));
  const auto flat = FlatOf(table);
  ASSERT_OK_AND_ASSIGN(const auto training, Loaded(Saved(*lists->training())));
  for (const KeyIndex* index :
       std::initializer_list<const KeyIndex*>{lists.get(), flat.get()}) {
    StringSink sink;
    SaveIndex(*index, kRows, sink);
    StringSource source(sink.bytes);
    ASSERT_OK_AND_ASSIGN(const auto back,
                         LoadIndex(source, kRows, {&training, 1}, nullptr));
    ExpectKeys(*back, table);
  }
}

// Their products overflow a float, or are NaN where infinities of both signs
// meet; nothing that is learned from them may be.
TEST(IndexFileHugeKeysTest, ATrainingOfKeysNearTheGreatestFloatComesBack) {
  constexpr std::int64_t kRows = 600;
  constexpr std::int64_t kDim = 16;
  std::mt19937_64 random(3);
  std::uniform_real_distribution<float> size(2e38f, 3e38f);
  std::vector<float> floats(static_cast<std::size_t>(kRows * kDim));
  for (float& component : floats) {
    component = random() % 2 == 0 ? size(random) : -size(random);
  }
  const KeyTable table = TableOf(kDim, std::move(floats));
  ASSERT_OK_AND_ASSIGN(const auto index,
                       IvfIndex::Build(table.keys, kDim, ScoreKind::kDot,
                                       {.neighbour_count = 10}));
  const Calibration& calibration = index->training()->calibration;
  EXPECT_LE(calibration.far_peak, calibration.near_peak);
  constexpr float kMost = std::numeric_limits<float>::max();
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  for (const double recall : {0.1, 0.5, 0.85, 0.99, 1.0}) {
    const QueryMargin margin = *calibration.MarginFor(recall);
    for (const float peak : {-kInfinity, -kMost, -1e38f, 0.0f, 1e38f, kMost,
                             kInfinity, std::nanf("")}) {
      EXPECT_FALSE(std::isnan(margin.At(peak))) << recall << " at " << peak;
    }
  }
  ASSERT_OK_AND_ASSIGN(const auto training, Loaded(Saved(*index->training())));
  EXPECT_EQ(training->id, index->training()->id);
}

// Builds an index of `table` with the given number of threads, and returns the
// saved index and its training.
std::string BuiltAndSaved(const KeyTable& table, std::int64_t dim,
                          ScoreKind score_kind, int thread_count,
                          bool* knows_masses) {
  const auto index =
      IvfIndex::Build(table.keys, dim, score_kind,
                      {.neighbour_count = 10, .thread_count = thread_count})
          .value();
  *knows_masses = index->training()->mass->Load()->usable();
  StringSink sink;
  SaveIndex(*index, static_cast<std::int64_t>(table.keys.size()), sink);
  SaveTraining(*index->training(), sink);
  EXPECT_OK(sink.status());
  return sink.bytes;
}

// What is learned, coded and summed does not depend on the order of threads.
TEST(IndexFileThreadsTest, AnyNumberOfThreadsMakesTheSame) {
  const KeyTable table = ClusteredKeys(5000, 24, 300, /*seed=*/5);
  bool knows_masses = false;
  const auto saved = [&](int thread_count) {
    return BuiltAndSaved(table, 24, ScoreKind::kCosine, thread_count,
                         &knows_masses);
  };
  const std::string alone = saved(1);
  EXPECT_TRUE(knows_masses);
  EXPECT_TRUE(saved(2) == alone);
  EXPECT_TRUE(saved(5) == alone);
}

// Keys up to and beyond the range of codes, with enough threads that each tries
// few sample queries. If nothing can be learned about masses, no thread claims
// otherwise; if there are no codes, files contain no uninitialised bytes.
TEST(IndexFileThreadsTest, TheSameIsMadeWhereCodesEnd) {
  constexpr int kThreads = kSanitized ? 20 : 100;
  const KeyTable table = ClusteredKeys(1000, 8, 20, /*seed=*/5);
  int unknown_count = 0;
  // At 82.6 one of a hundred threads meets a sample query without codes, at 84
  // all do; at 99 no key has any codes.
  for (const float exponent : {60.0f, 82.6f, 84.0f, 90.0f, 99.0f, 100.0f}) {
    KeyTable large = table;
    for (float& component : large.floats) component *= std::exp2(exponent);
    large.keys.clear();
    for (std::size_t r = 0; r < table.keys.size(); ++r) {
      large.keys.emplace_back(large.floats.data() + 8 * r, 8);
    }
    bool known = false;
    bool known_by_threads = false;
    const std::string alone =
        BuiltAndSaved(large, 8, ScoreKind::kDot, 1, &known);
    const std::string by_threads =
        BuiltAndSaved(large, 8, ScoreKind::kDot, kThreads, &known_by_threads);
    EXPECT_EQ(known_by_threads, known) << exponent;
    EXPECT_TRUE(by_threads == alone) << exponent;
    if (!known) ++unknown_count;
  }
  EXPECT_GT(unknown_count, 0);
}

TEST_F(IndexFileTest, WhatIsNoTrainingIsRefused) {
  const auto expect_refused =
      [this](const std::function<void(IvfTraining&, ListMeans&)>& damage) {
        EXPECT_THAT(Loaded(Damaged(damage)),
                    StatusIs(absl::StatusCode::kDataLoss,
                             HasSubstr("no training of lists")));
      };
  // Undamaged, it loads.
  EXPECT_OK(Loaded(Damaged([](IvfTraining&, ListMeans&) {})));
  // If no list was learned from a key, no list can take a key.
  expect_refused([](IvfTraining&, ListMeans& means) {
    std::ranges::fill(means.reaches, -1.0f);
  });
  expect_refused([](IvfTraining&, ListMeans& means) {
    means.reaches.clear();
    means.counts.clear();
    means.means = {};
  });
  expect_refused([](IvfTraining& training, ListMeans& means) {
    training.calibration.probe_count = 1;
    means.reaches.pop_back();
    means.counts.pop_back();
  });
  expect_refused(
      [](IvfTraining&, ListMeans& means) { means.counts.pop_back(); });
  expect_refused([](IvfTraining& training, ListMeans&) {
    training.calibration.margins.pop_back();
  });
  expect_refused([](IvfTraining& training, ListMeans&) {
    training.calibration.margins[7] = std::numeric_limits<float>::quiet_NaN();
  });
  expect_refused([](IvfTraining& training, ListMeans&) {
    training.calibration.blend_margins.pop_back();
  });
  expect_refused([](IvfTraining& training, ListMeans&) {
    training.calibration.blend_margins[7] =
        std::numeric_limits<float>::quiet_NaN();
  });
  expect_refused([](IvfTraining& training, ListMeans&) {
    training.calibration.far_peak = std::numeric_limits<float>::quiet_NaN();
  });
  expect_refused([](IvfTraining& training, ListMeans&) {
    training.calibration.near_peak = training.calibration.far_peak - 1;
  });
  for (const double recall : {0.0, 1.5, std::nan("")}) {
    expect_refused([recall](IvfTraining& training, ListMeans&) {
      training.target_recall = recall;
    });
  }
  expect_refused([](IvfTraining&, ListMeans& means) { means.dim = 0; });
  expect_refused([](IvfTraining& training, ListMeans&) {
    training.calibration.probe_count = 0;
  });
  expect_refused([](IvfTraining& training, ListMeans& means) {
    training.calibration.probe_count = means.list_count() + 1;
  });
  expect_refused([](IvfTraining& training, ListMeans&) {
    training.calibration.depths.clear();
  });
  for (const ProbeDepth wrong : {ProbeDepth{0, 1}, ProbeDepth{-3, 1},
                                 ProbeDepth{100, 0}, ProbeDepth{100, -1}}) {
    expect_refused([wrong](IvfTraining& training, ListMeans&) {
      training.calibration.depths.front() = wrong;
    });
  }
  expect_refused([](IvfTraining& training, ListMeans&) {
    training.calibration.depths.push_back(training.calibration.depths.back());
  });
  expect_refused([](IvfTraining& training, ListMeans&) {
    training.calibration.recalls.clear();
  });
  expect_refused(
      [](IvfTraining& training, ListMeans&) { training.key_count = 0; });
}

// Loads lists of keys with the changes made by `damage`.
absl::Status LoadDamaged(const IvfIndex& index,
                         const std::function<void(InvertedLists&)>& damage) {
  const IvfTraining& training = *index.training();
  StringSink good;
  static_cast<const ListIndex&>(index).lists().Save(good);
  StringSource good_source(good.bytes);
  absl::StatusOr<InvertedLists> lists =
      InvertedLists::Load(good_source, training.means, training.seed, nullptr);
  EXPECT_OK(lists);
  damage(*lists);
  StringSink sink;
  sink.Put(IndexKind::kIvf);
  sink.Put(training.id);
  lists->Save(sink);
  sink.Put(false);  // no values
  StringSource source(sink.bytes);
  return LoadIndex(source, 1000, {&index.training(), 1}, nullptr).status();
}

TEST_F(IndexFileTest, ListsWithoutWhatIsReadOfThemAreRefused) {
  EXPECT_OK(LoadDamaged(*index_, [](InvertedLists&) {}));
  EXPECT_THAT(
      LoadDamaged(*index_,
                  [](InvertedLists& lists) { lists.codes.DropLowPlane(); }),
      StatusIs(absl::StatusCode::kDataLoss,
               HasSubstr("not those of its keys")));
  EXPECT_THAT(LoadDamaged(*index_,
                          [](InvertedLists& lists) {
                            lists.rows[5] = lists.rows[800];
                          }),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("several keys")));
  EXPECT_THAT(
      LoadDamaged(*index_, [](InvertedLists& lists) { lists.rows[5] = 1000; }),
      StatusIs(absl::StatusCode::kDataLoss, HasSubstr("that there are not")));
}

// Memory is reserved for as many keys as the file claims, so the claim must be
// checked.
TEST_F(IndexFileTest, MoreKeysThanThereAreTakeNoRoom) {
  constexpr std::int64_t kRows = 1000;
  StringSink sink;
  sink.Put(IndexKind::kFlat);
  sink.Put(std::int64_t{8192});
  sink.PutArray(std::span<const std::uint8_t>(
      std::vector<std::uint8_t>(static_cast<std::size_t>(kRows), 1)));
  sink.PutBytes(std::vector<std::byte>(64));
  StringSource source(sink.bytes);
  EXPECT_THAT(LoadIndex(source, kRows, {}, nullptr),
              StatusIs(absl::StatusCode::kDataLoss,
                       HasSubstr("more keys than are left")));
}

// Indexes that are saved as a whole, each over keys of which one row in ten has
// none.
class WholeIndexFileTest : public ::testing::TestWithParam<IndexKind> {
 protected:
  static constexpr std::int64_t kRows = 3000;
  static constexpr std::int64_t kDim = 16;

  static KeyTable Keys(float factor = 1) {
    // Norms differ, so that there are two graphs and buckets have ranges.
    KeyTable table = ClusteredKeys(kRows, kDim, 40, /*seed=*/7, 5);
    for (float& component : table.floats) component *= factor;
    for (std::size_t row = 3; row < kRows; row += 10) table.keys[row] = {};
    return table;
  }

  static std::shared_ptr<const KeyIndex> Built(const KeyTable& table,
                                               ScoreKind score_kind) {
    switch (GetParam()) {
      case IndexKind::kHnsw:
        return *HnswIndex::Build(table.keys, kDim, score_kind, {});
      case IndexKind::kLsh:
        return *LshIndex::Build(table.keys, kDim, score_kind, {});
      case IndexKind::kPq:
        return *PqIndex::Build(table.keys, kDim, score_kind, {});
      default: {
        auto flat = std::make_shared<FlatIndex>(kDim, kRows);
        for (const std::span<const float> key : table.keys) flat->Append(key);
        return flat;
      }
    }
  }

  static std::string Saved(const KeyIndex& index) {
    StringSink sink;
    SaveIndex(index, kRows, sink);
    EXPECT_OK(sink.status());
    return sink.bytes;
  }

  static absl::StatusOr<std::shared_ptr<const KeyIndex>> Loaded(
      std::string bytes, std::int64_t row_count = kRows) {
    StringSource source(std::move(bytes));
    return LoadIndex(source, row_count, {}, nullptr);
  }

  // Returns the best rows and logits, and what was looked at.
  static auto Answer(const KeyIndex& index, const KeyTable& table,
                     std::size_t row, ScoreKind score_kind) {
    ScanQuery query = QueryFor(table.keys[row], kRows);
    query.score_kind = score_kind;
    AttentionState state(20, &kNoIds);
    const auto stats = index.Scan(query, state);
    EXPECT_OK(stats);
    std::vector<std::pair<RowIndex, float>> best;
    for (const Candidate& c : state.top().Sorted()) {
      best.emplace_back(c.row, c.logit);
    }
    return std::pair(best, stats->scored_count);
  }
};

TEST_P(WholeIndexFileTest, AnIndexComesBack) {
  // The greater factor is beyond the keys that any index but FLAT can search.
  for (const float factor : {1.0f, 1e35f}) {
    const KeyTable table = Keys(factor);
    for (const ScoreKind kind : {ScoreKind::kDot, ScoreKind::kCosine}) {
      const auto index = Built(table, kind);
      const std::string bytes = Saved(*index);
      ASSERT_OK_AND_ASSIGN(const auto back, Loaded(bytes));
      EXPECT_EQ(back->kind(), GetParam());
      EXPECT_TRUE(Saved(*back) == bytes);
      EXPECT_EQ(back->tuning().probe_count, index->tuning().probe_count);
      EXPECT_EQ(back->tuning().measured_recall,
                index->tuning().measured_recall);
      EXPECT_EQ(back->memory_bytes(), index->memory_bytes());
      if (factor > 1) continue;
      if (kind == ScoreKind::kDot) ExpectKeys(*back, table);
      for (std::size_t row = 0; row < 30; row += 2) {
        EXPECT_EQ(Answer(*back, table, row, kind),
                  Answer(*index, table, row, kind));
      }
    }
  }
}

TEST_P(WholeIndexFileTest, WhatIsCutIsRefused) {
  const std::string bytes = Saved(*Built(Keys(), ScoreKind::kDot));
  for (std::size_t cut = 0; cut < 64; ++cut) {
    EXPECT_THAT(Loaded(bytes.substr(0, cut * bytes.size() / 64)),
                StatusIs(absl::StatusCode::kDataLoss, ::testing::_));
  }
  EXPECT_THAT(Loaded(bytes, kRows / 2),
              StatusIs(absl::StatusCode::kDataLoss, ::testing::_));
}

// Checksums are the caller's duty. Here wrong bytes are either detected or
// harmless.
TEST_P(WholeIndexFileTest, WrongBytesHarmNobody) {
#ifdef ABSL_HAVE_THREAD_SANITIZER
  GTEST_SKIP() << "two minutes of one thread";
#endif
  const KeyTable table = Keys();
  const std::string bytes = Saved(*Built(table, ScoreKind::kDot));
  std::mt19937_64 random(3);
  int refused_count = 0;
  constexpr int kCount = kSanitized ? 150 : 300;
  for (int i = 0; i < kCount; ++i) {
    std::string wrong = bytes;
    // Sizes lie near the start and the end of the file, floats in between.
    std::size_t at = random() % wrong.size();
    if (i % 3 == 0) at = random() % 200;
    wrong[at] = static_cast<char>(wrong[at] ^ (1 << random() % 8));
    const auto index = Loaded(wrong);
    if (!index.ok()) {
      ++refused_count;
      continue;
    }
    AttentionState state(20, &kNoIds);
    (*index)->Scan(QueryFor(table.keys[0], kRows), state).IgnoreError();
  }
  EXPECT_GT(refused_count, kCount / 30);
}

INSTANTIATE_TEST_SUITE_P(Kinds, WholeIndexFileTest,
                         ::testing::Values(IndexKind::kFlat, IndexKind::kHnsw,
                                           IndexKind::kLsh, IndexKind::kPq));

}  // namespace
}  // namespace attendant
