// Which of the incoming queries are kept.
#include "core/shortlist/mass/learned_mass.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <numeric>
#include <thread>
#include <vector>

#include "core/shortlist/ivf/ivf_index.h"
#include "core/shortlist/ivf/ivf_training.h"
#include "tests/core/shortlist/scan_fixture.h"
#include "tests/support/status_matchers.h"
#include "tests/support/string_stream.h"

namespace attendant {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAreArray;

constexpr auto kKept = static_cast<std::int64_t>(LearnedMass::kKeptQueries);

// Queries of one component, numbered from `first`.
void AskNumbers(LearnedMass& mass, std::int64_t first, std::int64_t count) {
  for (std::int64_t i = first; i < first + count; ++i) {
    const auto number = static_cast<float>(i);
    mass.Asked({&number, 1});
  }
}

TEST(LearnedMassTest, IsDueAfterEnoughQueriesAndThenAfterMore) {
  LearnedMass mass(UnscoredMass(), 1);
  AskNumbers(mass, 1, kKept - 1);
  EXPECT_FALSE(mass.is_due());
  AskNumbers(mass, kKept, 1);
  EXPECT_TRUE(mass.is_due());
  std::vector<float> all(LearnedMass::kKeptQueries);
  std::iota(all.begin(), all.end(), 1.0f);
  EXPECT_THAT(mass.KeptQueries(), UnorderedElementsAreArray(all));
  EXPECT_TRUE(mass.is_due());
  mass.Store(UnscoredMass());
  mass.KeepOthers();
  EXPECT_FALSE(mass.is_due());
  EXPECT_THAT(mass.KeptQueries(), IsEmpty());
  AskNumbers(mass, 1, LearnedMass::kDueFactor * kKept - 1);
  EXPECT_FALSE(mass.is_due());
  AskNumbers(mass, 1, 1);
  EXPECT_TRUE(mass.is_due());
}

TEST(LearnedMassTest, KeepsAllWithTheSameProbability) {
  LearnedMass mass(UnscoredMass(), 1);
  constexpr std::int64_t kAsked = 100000;
  AskNumbers(mass, 1, kAsked);
  const std::vector<float> kept = mass.KeptQueries();
  ASSERT_THAT(kept, SizeIs(LearnedMass::kKeptQueries));
  const double mean = std::accumulate(kept.begin(), kept.end(), 0.0) /
                      static_cast<double>(kept.size()) / kAsked;
  // Mean of that many uniform numbers; four deviations.
  EXPECT_NEAR(mean, 0.5, 4 * std::sqrt(1.0 / 12 / kKept));
}

TEST(LearnedMassTest, QueriesThatRepeatSayNothing) {
  LearnedMass mass(UnscoredMass(), 1);
  const auto few = static_cast<std::int64_t>(LearnedMass::kMinQueries) - 1;
  for (int i = 0; i < 100; ++i) AskNumbers(mass, 1, few);
  EXPECT_TRUE(mass.is_due());
  EXPECT_THAT(mass.KeptQueries(), IsEmpty());
}

TEST(LearnedMassTest, IsDueAsSoonAgainWhereNothingWasLearned) {
  LearnedMass mass(UnscoredMass(), 1);
  for (int round = 0; round < 3; ++round) {
    for (std::int64_t i = 1; i < kKept; ++i) AskNumbers(mass, 1, 1);
    EXPECT_FALSE(mass.is_due());
    AskNumbers(mass, 1, 1);
    EXPECT_TRUE(mass.is_due());
    EXPECT_THAT(mass.KeptQueries(), IsEmpty());
    mass.KeepOthers();
  }
  AskNumbers(mass, 1, kKept);
  EXPECT_TRUE(mass.is_due());
  EXPECT_THAT(mass.KeptQueries(), SizeIs(kKept));
}

TEST(LearnedMassTest, WhatIsOfNoUseReplacesNothing) {
  const KeyTable table = ClusteredKeys(1000, 8, 20, /*seed=*/3);
  ASSERT_OK_AND_ASSIGN(const auto index,
                       IvfIndex::Build(table.keys, 8, ScoreKind::kDot, {}));
  LearnedMass mass(UnscoredMass(), 8);
  EXPECT_FALSE(mass.Load()->usable());
  StringSink sink;
  index->training()->mass->Load()->Save(sink);
  StringSource source(sink.bytes);
  mass.Store(UnscoredMass::Load(source, index->list_count(), 8, 0));
  ASSERT_OK(source.status());
  const auto stored = mass.Load();
  EXPECT_TRUE(stored->usable());
  mass.Store(UnscoredMass());
  EXPECT_EQ(mass.Load(), stored);
}

TEST(LearnedMassTest, WhatWasKnownIsFoundWhenOtherIsNewer) {
  const KeyTable table = ClusteredKeys(1000, 8, 20, /*seed=*/3);
  ASSERT_OK_AND_ASSIGN(const auto index,
                       IvfIndex::Build(table.keys, 8, ScoreKind::kDot, {}));
  LearnedMass mass(UnscoredMass(), 8);
  const LearnedMass other(UnscoredMass(), 8);
  const auto before = mass.Load();
  KnownMasses known;
  known.Add(mass);
  StringSink sink;
  index->training()->mass->Load()->Save(sink);
  StringSource source(sink.bytes);
  mass.Store(UnscoredMass::Load(source, index->list_count(), 8, 0));
  known.Add(mass);
  EXPECT_NE(mass.Load(), before);
  EXPECT_EQ(mass.Load(&known), before);
  EXPECT_EQ(mass.Load(nullptr), mass.Load());
  EXPECT_EQ(other.Load(&known), other.Load());
  EXPECT_EQ(known.Find(other), nullptr);
}

TEST(LearnedMassTest, QueriesWithoutDirectionAreNotKept) {
  LearnedMass mass(UnscoredMass(), 2);
  const float zeros[] = {0, 0};
  for (std::int64_t i = 0; i < kKept; ++i) mass.Asked(zeros);
  EXPECT_THAT(mass.KeptQueries(), IsEmpty());
}

TEST(LearnedMassTest, ThreadsAskWhileOthersLook) {
  constexpr std::int64_t kDim = 16;
  LearnedMass mass(UnscoredMass(), kDim);
  std::atomic<int> asking = 4;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&mass, &asking, t] {
      for (int i = 1; i <= 20000; ++i) {
        mass.Asked(std::vector<float>(kDim, static_cast<float>(4 * i + t)));
      }
      --asking;
    });
  }
  while (asking > 0) {
    const std::vector<float> kept = mass.KeptQueries();
    mass.KeepOthers();
    mass.Store(UnscoredMass());
    EXPECT_NE(mass.Load(), nullptr);
    for (std::size_t at = 0; at < kept.size(); at += kDim) {
      // Each kept query is whole.
      EXPECT_EQ(
          std::count(kept.begin() + static_cast<std::ptrdiff_t>(at),
                     kept.begin() + static_cast<std::ptrdiff_t>(at) + kDim,
                     kept[at]),
          kDim);
    }
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace attendant
