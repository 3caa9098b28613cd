#include "core/shortlist/index_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <utility>

#include "core/shortlist/ivf_index.h"
#include "core/shortlist/ivf_training.h"
#include "tests/core/shortlist/scan_fixture.h"
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

  // The training, but for what `damage` does to it, and without what it says of
  // masses.
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

// An index of `keys` and its training, by so many threads.
std::string BuiltAndSaved(const KeyTable& table, std::int64_t dim,
                          ScoreKind score_kind, int thread_count,
                          bool* knows_masses) {
  const auto index =
      IvfIndex::Build(table.keys, dim, score_kind,
                      {.neighbour_count = 10, .thread_count = thread_count})
          .value();
  *knows_masses = index->training()->unscored_mass.usable();
  StringSink sink;
  SaveIndex(*index, static_cast<std::int64_t>(table.keys.size()), sink);
  SaveTraining(*index->training(), sink);
  EXPECT_OK(sink.status());
  return sink.bytes;
}

// What is learned, coded and summed depends on no order of threads.
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

// Keys up to and beyond those that codes reach, by so many threads that each
// tries few sample queries. Where nothing can be learned of masses no thread
// says otherwise, and where there are no codes files hold no bytes that nobody
// wrote.
TEST(IndexFileThreadsTest, TheSameIsMadeWhereCodesEnd) {
  const KeyTable table = ClusteredKeys(1000, 8, 20, /*seed=*/5);
  int unknown_count = 0;
  // At 82.6 a thread of the hundred meets a sample query without codes, at 84
  // all do; at 99 no key has any.
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
        BuiltAndSaved(large, 8, ScoreKind::kDot, 100, &known_by_threads);
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
  // As it is, it is one.
  EXPECT_OK(Loaded(Damaged([](IvfTraining&, ListMeans&) {})));
  // Lists none of which was learned from a key can take none.
  expect_refused([](IvfTraining&, ListMeans& means) {
    std::fill(means.reaches.begin(), means.reaches.end(), -1.0f);
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
  expect_refused([](IvfTraining& training, ListMeans&) {
    training.calibration.recalls.clear();
  });
  expect_refused(
      [](IvfTraining& training, ListMeans&) { training.key_count = 0; });
}

}  // namespace
}  // namespace attendant
