// Indexes that learn from incoming queries.
#include <gmock/gmock.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <memory>
#include <numeric>
#include <random>
#include <vector>

#include "core/attention/softmax/state.h"
#include "core/shortlist/ivf/ivf_index.h"
#include "core/shortlist/ivf/ivf_training.h"
#include "tests/core/shortlist/scan_fixture.h"
#include "tests/support/status_matchers.h"

namespace attendant {
namespace {

constexpr int kKept = LearnedMass::kKeptQueries;

// Keys that each sum three of many words, as glosses sum more, and queries of a
// single word, which are near to no key.
class Glosses {
 public:
  static constexpr std::int64_t kDim = 64;
  static constexpr std::int64_t kKeys = 8000;

  Glosses() {
    std::normal_distribution<float> normal;
    for (float& component : words_) component = normal(random_);
    std::vector<float> floats;
    for (std::int64_t k = 0; k < kKeys; ++k) {
      for (int& word : words_of_[k]) {
        // Some words are in many keys.
        const double share = std::uniform_real_distribution<>()(random_);
        word = static_cast<int>(share * share * kWords);
      }
      const std::vector<float> key = Sum(k, kWordsOfKey);
      floats.insert(floats.end(), key.begin(), key.end());
    }
    table_ = TableOf(kDim, std::move(floats));
  }

  const KeyTable& table() const { return table_; }
  std::vector<float> DrawQuery() {
    return Sum(static_cast<std::int64_t>(random_() % kKeys), 1);
  }

 private:
  static constexpr int kWords = 3000;
  static constexpr int kWordsOfKey = 3;

  std::vector<float> Sum(std::int64_t key, int word_count) const {
    std::vector<float> sum(kDim);
    for (int w = 0; w < word_count; ++w) {
      const auto word = static_cast<std::size_t>(words_of_[key][w]);
      for (std::size_t d = 0; d < sum.size(); ++d) {
        sum[d] += words_[word * kDim + d];
      }
    }
    const double norm = Norm(sum);
    for (float& component : sum) {
      component = static_cast<float>(component / norm);
    }
    return sum;
  }

  std::mt19937_64 random_{5};
  std::vector<float> words_ = std::vector<float>(kWords * kDim);
  std::vector<std::array<int, kWordsOfKey>> words_of_ =
      std::vector<std::array<int, kWordsOfKey>>(kKeys);
  KeyTable table_;
};

class LearningIndexTest : public ::testing::Test {
 protected:
  LearningIndexTest()
      : index_(*IvfIndex::Build(glosses_.table().keys, Glosses::kDim,
                                ScoreKind::kDot, {})) {}

  // True if the state's interval after a scan at this temperature covers the
  // sum over all keys.
  bool Holds(std::span<const float> vector, double temperature) const {
    ScanQuery query = QueryFor(vector, Glosses::kKeys);
    query.logit_factor = 1 / temperature;
    AttentionState state(100, &kNoIds);
    const auto stats = index_->Scan(query, state);
    EXPECT_OK(stats);
    if (stats->exact || stats->complete) return true;
    EXPECT_TRUE(stats->knows_mass);
    std::vector<double> logits;
    for (const auto key : glosses_.table().keys) {
      logits.push_back(
          std::inner_product(key.begin(), key.end(), vector.begin(), 0.0) /
          temperature);
    }
    const double max = *std::ranges::max_element(logits);
    double sum = 0;
    for (const double logit : logits) sum += std::exp(logit - max);
    const SoftmaxPartition& found = state.partition();
    const double log_found = found.max + std::log(found.sum);
    const double share = std::exp(stats->log_variance / 2 - log_found);
    const double spread = std::log1p(share * share);
    // Plus the error of float logits.
    return std::abs(log_found - (max + std::log(sum))) <=
           1.96 * std::sqrt(spread) + spread / 2 + 2e-6 * std::abs(max);
  }

  double Coverage(double temperature, int count) {
    int held = 0;
    for (int i = 0; i < count; ++i) {
      held += Holds(glosses_.DrawQuery(), temperature) ? 1 : 0;
    }
    return static_cast<double>(held) / count;
  }

  Glosses glosses_;
  const std::unique_ptr<IvfIndex> index_;
  const std::atomic<bool> cancelled_ = false;
};

TEST_F(LearningIndexTest, IntervalsHoldForQueriesLikeThoseThatWereAsked) {
  EXPECT_EQ(index_->learning_bytes(), 0);
  const double before = Coverage(0.02, 600);
  EXPECT_GT(index_->learning_bytes(), 0);
  ASSERT_OK(index_->Learn(cancelled_));
  EXPECT_EQ(index_->learning_bytes(), 0);
  const double after = Coverage(0.02, 600);
  EXPECT_LT(before, 0.9);
  EXPECT_GE(after, 0.93);
  // Four times as sharp as what is measured.
  EXPECT_GE(Coverage(0.001, 600), 0.93);
}

TEST_F(LearningIndexTest, WhatIsCancelledLeavesAllAsItWas) {
  Coverage(0.1, kKept);
  const auto before = index_->training()->mass->Load();
  EXPECT_THAT(index_->Learn(true),
              StatusIs(absl::StatusCode::kCancelled, ::testing::_));
  EXPECT_EQ(index_->training()->mass->Load(), before);
  // The kept queries remain available to the next attempt.
  EXPECT_GT(index_->learning_bytes(), 0);
  EXPECT_THAT(index_->training()->mass->KeptQueries(),
              ::testing::Not(::testing::IsEmpty()));
}

TEST_F(LearningIndexTest, OneQueryAskedForEverPutsNothingOff) {
  const auto before = index_->training()->mass->Load();
  const std::vector<float> query = glosses_.DrawQuery();
  for (int i = 0; i < kKept; ++i) Holds(query, 0.1);
  EXPECT_GT(index_->learning_bytes(), 0);
  ASSERT_OK(index_->Learn(cancelled_));
  EXPECT_EQ(index_->training()->mass->Load(), before);
  EXPECT_EQ(index_->learning_bytes(), 0);
  Coverage(0.1, kKept);
  EXPECT_GT(index_->learning_bytes(), 0);
}

TEST_F(LearningIndexTest, AnIndexOfFewOfTheKeysDoesNotLearn) {
  const auto keys = std::span(glosses_.table().keys);
  const auto half =
      IvfIndex::Build(keys.first(keys.size() / 2), Glosses::kDim,
                      ScoreKind::kDot, {.training = index_->training()});
  ASSERT_OK(half);
  Coverage(0.1, kKept);
  EXPECT_GT(index_->learning_bytes(), 0);
  EXPECT_EQ((*half)->learning_bytes(), 0);
}

}  // namespace
}  // namespace attendant
