#include "core/encode/temperature.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "tests/support/status_matchers.h"

namespace attendant {
namespace {

using ::testing::HasSubstr;

struct World {
  std::int64_t dim = 0;
  std::vector<float> keys;
  std::vector<Choice> choices;

  MatrixView Keys() const {
    return {.data = keys.data(),
            .row_count = static_cast<std::int64_t>(keys.size()) / dim,
            .dim = dim};
  }
};

struct Model {
  ScoreKind score_kind = ScoreKind::kDot;
  CombineKind combine_kind = CombineKind::kSum;
  double temperature = 1;
};

// Returns the logits of all keys, -infinity for the history, by plain loops in
// doubles.
std::vector<double> Logits(const MatrixView& keys, const Choice& choice,
                           const Model& model) {
  const auto dim = static_cast<std::size_t>(keys.dim);
  std::vector<float> query(dim);
  for (std::size_t i = 0; i < choice.history.size(); ++i) {
    for (std::size_t d = 0; d < dim; ++d) {
      query[d] += static_cast<float>(choice.history_weights.empty()
                                         ? 1
                                         : choice.history_weights[i]) *
                  keys.Row(choice.history[i])[d];
    }
  }
  Combine(model.combine_kind, static_cast<std::int64_t>(choice.history.size()),
          query);
  if (!choice.query.empty()) query = choice.query;
  std::vector<double> logits;
  for (std::int64_t row = 0; row < keys.row_count; ++row) {
    double similarity = 0;
    for (std::size_t d = 0; d < dim; ++d) {
      similarity += static_cast<double>(query[d]) * keys.Row(row)[d];
    }
    if (model.score_kind == ScoreKind::kCosine) {
      similarity /= Norm(query) * Norm(keys.Row(row));
    }
    logits.push_back(similarity * LogitFactor(model.score_kind, keys.dim,
                                              model.temperature));
  }
  for (const std::int32_t row : choice.history) {
    logits[row] = -std::numeric_limits<double>::infinity();
  }
  return logits;
}

std::vector<double> Weights(std::vector<double> logits) {
  const double max = *std::ranges::max_element(logits);
  double sum = 0;
  for (double& logit : logits) sum += logit = std::exp(logit - max);
  for (double& weight : logits) weight /= sum;
  return logits;
}

double NegativeLogLikelihood(const World& world, const Model& model) {
  double sum = 0;
  for (const Choice& choice : world.choices) {
    const std::vector<double> weights =
        Weights(Logits(world.Keys(), choice, model));
    sum -= std::log(weights[choice.target]);
  }
  return sum / static_cast<double>(world.choices.size());
}

// The mean negative log likelihood of any unmasked item.
double NegativeLogLikelihoodOfAny(const World& world, const Model& model) {
  double sum = 0;
  for (const Choice& choice : world.choices) {
    double sum_of_any = 0;
    int count = 0;
    for (const double weight : Weights(Logits(world.Keys(), choice, model))) {
      if (weight == 0) continue;
      sum_of_any -= std::log(weight);
      ++count;
    }
    sum += sum_of_any / count;
  }
  return sum / static_cast<double>(world.choices.size());
}

// Returns histories of 1 to 12 random items, and targets drawn by the model's
// weights.
World MakeWorld(const Model& model, int choice_count) {
  std::mt19937 engine(11);
  std::normal_distribution<float> normal;
  std::uniform_int_distribution<std::int32_t> item(0, 199);
  std::uniform_int_distribution<int> length(1, 12);
  World world{.dim = 8, .keys = {}, .choices = {}};
  for (int row = 0; row < 200; ++row) {
    const float norm = std::exp(normal(engine) / 2);  // norms vary
    for (int d = 0; d < 8; ++d) world.keys.push_back(norm * normal(engine));
  }
  for (int i = 0; i < choice_count; ++i) {
    Choice choice;
    for (int left = length(engine); left > 0; --left) {
      choice.history.push_back(item(engine));
    }
    const std::vector<double> weights =
        Weights(Logits(world.Keys(), choice, model));
    choice.target = std::discrete_distribution<std::int32_t>(
        weights.begin(), weights.end())(engine);
    world.choices.push_back(choice);
  }
  return world;
}

// Standard error of the log temperature at its maximum likelihood: one over the
// root of the Fisher information, which is the sum of the logits' variances.
double StandardError(const World& world, const Model& model) {
  double information = 0;
  for (const Choice& choice : world.choices) {
    const std::vector<double> logits = Logits(world.Keys(), choice, model);
    const std::vector<double> weights = Weights(logits);
    double mean = 0;
    double square = 0;
    for (std::size_t i = 0; i < logits.size(); ++i) {
      if (weights[i] == 0) continue;
      mean += weights[i] * logits[i];
      square += weights[i] * logits[i] * logits[i];
    }
    information += square - mean * mean;
  }
  return 1 / std::sqrt(information);
}

class RecoveryTest : public ::testing::TestWithParam<Model> {};

TEST_P(RecoveryTest, FindsTheModelThatMadeTheChoices) {
  const Model& model = GetParam();
  const World world = MakeWorld(model, 1500);
  ASSERT_OK_AND_ASSIGN(
      const AttentionDefaults defaults,
      FitDefaults(world.Keys(), world.choices, DefaultsSearch()));
  EXPECT_EQ(defaults.score_kind, model.score_kind);
  EXPECT_EQ(defaults.combine_kind, model.combine_kind);
  // Four standard errors, and the 1 % to which the search is exact.
  EXPECT_NEAR(std::log(defaults.temperature), std::log(model.temperature),
              4 * StandardError(world, model) + .01);
  EXPECT_EQ(defaults.choice_count, 1500);
  EXPECT_DOUBLE_EQ(defaults.uniform_negative_log_likelihood.value(),
                   std::log(200));
  // Single-precision logits of up to a few hundred: absolute errors of 1e-5.
  EXPECT_NEAR(
      defaults.negative_log_likelihood.value(),
      NegativeLogLikelihood(world, {.score_kind = defaults.score_kind,
                                    .combine_kind = defaults.combine_kind,
                                    .temperature = defaults.temperature}),
      1e-4);
}

INSTANTIATE_TEST_SUITE_P(
    Models, RecoveryTest,
    ::testing::Values(Model{ScoreKind::kDot, CombineKind::kSum, 8},
                      Model{ScoreKind::kDot, CombineKind::kSum, 40},
                      Model{ScoreKind::kDot, CombineKind::kSumOverSqrtCount, 4},
                      Model{ScoreKind::kDot, CombineKind::kUnit, 1},
                      Model{ScoreKind::kCosine, CombineKind::kSum, .2}));

TEST(FitDefaultsTest, NoTemperatureNearByIsBetter) {
  const Model model{ScoreKind::kDot, CombineKind::kSum, 8};
  const World world = MakeWorld(model, 300);
  ASSERT_OK_AND_ASSIGN(const AttentionDefaults defaults,
                       FitDefaults(world.Keys(), world.choices,
                                   {.score_kind = ScoreKind::kDot,
                                    .combine_kind = CombineKind::kSum}));
  const auto at = [&](double factor) {
    const Model near{ScoreKind::kDot, CombineKind::kSum,
                     defaults.temperature * factor};
    return 300 * NegativeLogLikelihood(world, near) +
           NegativeLogLikelihoodOfAny(world, near);
  };
  for (const double factor : {.5, .9, .98, 1.02, 1.1, 2.}) {
    EXPECT_GT(at(factor), at(1)) << factor;
  }
}

// Of two items, the target is nearer by 2. Likelihood alone would accept any
// temperature that is small enough.
TEST(FitDefaultsTest, NothingIsSurerThanTheNumberOfChoicesAllows) {
  const std::vector<float> keys = {1, 0, -1, 0};
  const Choice choice{
      .history = {}, .history_weights = {}, .query = {1, 0}, .target = 0};
  for (const std::size_t count : {1u, 2u, 71u, 2000u}) {
    ASSERT_OK_AND_ASSIGN(
        const AttentionDefaults defaults,
        FitDefaults({keys.data(), 2, 2}, std::vector<Choice>(count, choice),
                    {.score_kind = ScoreKind::kDot, .combine_kind = {}}));
    // The other item is given half of one more choice: its weight is .5 /
    // (count + 1), and the logits lie log(2 count + 1) apart.
    const auto n = static_cast<double>(count);
    EXPECT_NEAR(defaults.temperature * std::log(2 * n + 1), 2, .02) << count;
    // About that weight, of which 1 % of the temperature is log(2 n + 1) %.
    EXPECT_NEAR(*defaults.negative_log_likelihood, std::log((n + 1) / (n + .5)),
                .1 / n)
        << count;
  }
}

TEST(FitDefaultsTest, ScaledDotIsDotAtAnotherTemperature) {
  const World world = MakeWorld({}, 300);
  ASSERT_OK_AND_ASSIGN(
      const AttentionDefaults dot,
      FitDefaults(world.Keys(), world.choices,
                  {.score_kind = ScoreKind::kDot, .combine_kind = {}}));
  ASSERT_OK_AND_ASSIGN(
      const AttentionDefaults scaled,
      FitDefaults(world.Keys(), world.choices,
                  {.score_kind = ScoreKind::kScaledDot, .combine_kind = {}}));
  EXPECT_EQ(scaled.score_kind, ScoreKind::kScaledDot);
  EXPECT_NEAR(scaled.temperature * std::sqrt(8), dot.temperature,
              .01 * dot.temperature);
  EXPECT_NEAR(*scaled.negative_log_likelihood, *dot.negative_log_likelihood,
              1e-4);
}

TEST(FitDefaultsTest, HistoryIsMasked) {
  // Unmasked, the history's own key would beat the target at any temperature;
  // masked, only the target is left.
  const std::vector<float> keys = {10, 0, 1, 0};
  const std::vector<Choice> choices = {
      {.history = {0}, .history_weights = {}, .query = {}, .target = 1}};
  ASSERT_OK_AND_ASSIGN(const AttentionDefaults defaults,
                       FitDefaults({keys.data(), 2, 2}, choices, {}));
  EXPECT_EQ(defaults.negative_log_likelihood, 0);
  EXPECT_DOUBLE_EQ(*defaults.uniform_negative_log_likelihood, std::log(2));
}

TEST(FitDefaultsTest, WeightsOfTheHistoryCount) {
  // With a weight of -1 the history points at the target, with 1 away from it.
  const std::vector<float> keys = {1, 0, -1, 0, 1, 0};
  Choice choice{
      .history = {0}, .history_weights = {-1}, .query = {}, .target = 1};
  ASSERT_OK_AND_ASSIGN(
      const AttentionDefaults towards,
      FitDefaults({keys.data(), 3, 2}, std::vector<Choice>{choice}, {}));
  // As certain as one choice can be: half of one more random choice would give
  // this.
  EXPECT_NEAR(*towards.negative_log_likelihood, std::log(4. / 3), .01);
  choice.history_weights = {1};
  ASSERT_OK_AND_ASSIGN(
      const AttentionDefaults away,
      FitDefaults({keys.data(), 3, 2}, std::vector<Choice>{choice}, {}));
  // No attention at all fits best: at the grid's end, 32 times the greatest
  // similarity, the target is 2 / 32 behind the other item.
  EXPECT_NEAR(*away.negative_log_likelihood, std::log1p(std::exp(2. / 32)),
              1e-6);
}

TEST(FitDefaultsTest, QueryStandsInForTheHistory) {
  const std::vector<float> keys = {1, 0, 0, 1, -1, 0};
  const std::vector<Choice> choices = {
      {.history = {0}, .history_weights = {}, .query = {0, 1}, .target = 1}};
  ASSERT_OK_AND_ASSIGN(const AttentionDefaults defaults,
                       FitDefaults({keys.data(), 3, 2}, choices, {}));
  // As certain as one choice can be: half of one more random choice would give
  // this.
  EXPECT_NEAR(*defaults.negative_log_likelihood, std::log(4. / 3), .01);
}

TEST(FitDefaultsTest, ZeroNormsRuleOutCosineOnly) {
  World world = MakeWorld({ScoreKind::kCosine, CombineKind::kSum, .2}, 200);
  world.keys.insert(world.keys.end(), 8, 0);  // one more key, of norm 0
  EXPECT_THAT(
      FitDefaults(world.Keys(), world.choices,
                  {.score_kind = ScoreKind::kCosine, .combine_kind = {}}),
      StatusIs(kInvalid, HasSubstr("keys[200]: got norm 0")));
  ASSERT_OK_AND_ASSIGN(const AttentionDefaults defaults,
                       FitDefaults(world.Keys(), world.choices, {}));
  EXPECT_EQ(defaults.score_kind, ScoreKind::kDot);

  const std::vector<float> keys = {1, 0, 0, 1};
  const std::vector<Choice> choices = {
      {.history = {}, .history_weights = {}, .query = {0, 0}, .target = 1}};
  EXPECT_THAT(
      FitDefaults({keys.data(), 2, 2}, choices,
                  {.score_kind = ScoreKind::kCosine, .combine_kind = {}}),
      StatusIs(kInvalid, HasSubstr("choices[0].query: got norm 0")));
  ASSERT_OK_AND_ASSIGN(const AttentionDefaults uniform,
                       FitDefaults({keys.data(), 2, 2}, choices, {}));
  EXPECT_NEAR(*uniform.negative_log_likelihood, std::log(2), 1e-6);
}

TEST(FitDefaultsTest, RefusesChoicesThatBreakTheRules) {
  const std::vector<float> keys = {1, 0, 0, 1, -1, 0};
  const MatrixView view{keys.data(), 3, 2};
  const Choice good{
      .history = {0}, .history_weights = {}, .query = {}, .target = 1};
  const auto fit = [&](const Choice& choice) {
    return FitDefaults(view, std::vector<Choice>{good, choice}, {});
  };
  EXPECT_OK(fit(good));
  EXPECT_THAT(FitDefaults(view, {}, {}),
              StatusIs(kInvalid, HasSubstr("choices: got none")));
  EXPECT_THAT(FitDefaults({keys.data(), 0, 2}, std::vector<Choice>{good}, {}),
              StatusIs(kInvalid, HasSubstr("keys")));
  Choice bad = good;
  bad.target = 3;
  EXPECT_THAT(fit(bad), StatusIs(kInvalid, HasSubstr("choices[1].target")));
  bad.target = 0;
  EXPECT_THAT(fit(bad), StatusIs(kInvalid, HasSubstr("in the history")));
  bad = good;
  bad.history = {0, -1};
  EXPECT_THAT(fit(bad), StatusIs(kInvalid, HasSubstr("choices[1].history")));
  bad = good;
  bad.history_weights = {1, 2};
  EXPECT_THAT(fit(bad), StatusIs(kInvalid, HasSubstr("history_weights")));
  bad.history_weights = {std::nan("")};
  EXPECT_THAT(fit(bad), StatusIs(kInvalid, HasSubstr("history_weights")));
  bad = good;
  bad.query = {1};
  EXPECT_THAT(fit(bad), StatusIs(kInvalid, HasSubstr("choices[1].query")));
  bad.query = {1, std::numeric_limits<float>::infinity()};
  EXPECT_THAT(fit(bad), StatusIs(kInvalid, HasSubstr("choices[1].query")));
  bad.query = {3e38f, 0};
  EXPECT_THAT(fit(bad), StatusIs(kInvalid, HasSubstr("overflow")));
  const std::vector<float> not_finite = {1, 0, 0, std::nanf(""), -1, 0};
  EXPECT_THAT(
      FitDefaults({not_finite.data(), 3, 2}, std::vector<Choice>{good}, {}),
      StatusIs(kInvalid, HasSubstr("keys[1]")));
}

}  // namespace
}  // namespace attendant
