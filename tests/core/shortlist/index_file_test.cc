#include "core/shortlist/index_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
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
    auto means = std::make_shared<ListMeans>();
    means->dim = good.means->dim;
    means->means = AlignedBuffer<float>(good.means->means.size());
    std::copy_n(good.means->means.data(), means->means.size(),
                means->means.data());
    means->reaches = good.means->reaches;
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

// What is learned, coded and summed depends on no order of threads.
TEST(IndexFile, IsTheSameByAnyNumberOfThreads) {
  constexpr std::int64_t kRows = 5000;
  const KeyTable table = ClusteredKeys(kRows, 24, 300, /*seed=*/5);
  const auto saved = [&](int thread_count) {
    const auto index =
        IvfIndex::Build(table.keys, 24, ScoreKind::kCosine,
                        {.neighbour_count = 10, .thread_count = thread_count})
            .value();
    StringSink sink;
    SaveIndex(*index, kRows, sink);
    SaveTraining(*index->training(), sink);
    EXPECT_OK(sink.status());
    return sink.bytes;
  };
  const std::string alone = saved(1);
  EXPECT_TRUE(saved(2) == alone);
  EXPECT_TRUE(saved(5) == alone);
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
    means.means = {};
  });
  expect_refused([](IvfTraining& training, ListMeans& means) {
    training.calibration.probe_count = 1;
    means.reaches.pop_back();
  });
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
