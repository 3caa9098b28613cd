#include "core/encode/lsi.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "absl/strings/str_cat.h"
#include "tests/support/status_matchers.h"

namespace attendant {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

EventLog MakeLog(int customer_count, int item_count) {
  EventLog log;
  for (int i = 0; i < customer_count; ++i) {
    log.customer_ids.push_back(absl::StrCat("c", i));
  }
  for (int i = 0; i < item_count; ++i) {
    log.item_ids.push_back(absl::StrCat("i", i));
  }
  return log;
}

// Each customer buys only among the 10 items of one of four tastes.
EventLog FourTastes(int customer_count, int events_each) {
  EventLog log = MakeLog(customer_count, 40);
  std::mt19937 engine(3);
  std::uniform_int_distribution<std::int32_t> pick(0, 9);
  for (int event = 0; event < events_each; ++event) {
    for (std::int32_t customer = 0; customer < customer_count; ++customer) {
      log.events.push_back({customer, customer % 4 * 10 + pick(engine), 1});
    }
  }
  return log;
}

std::vector<double> Values(const SparseMatrix& matrix) {
  std::vector<double> values;
  for (const MatrixEntry& entry : matrix.entries) {
    values.push_back(entry.value);
  }
  return values;
}

TEST(EventMatrixTest, CountsOrAveragesTheEventsOfAPlace) {
  EventLog log = MakeLog(2, 3);
  log.events = {{1, 2, 4}, {0, 1, 5}, {1, 2, 1}, {1, 0, 2}, {1, 2, 1}};
  const SparseMatrix counts = EventMatrix(log, RatingKind::kCount);
  EXPECT_EQ(counts.row_count, 2);
  EXPECT_EQ(counts.column_count, 3);
  ASSERT_EQ(counts.entries.size(), 3);
  EXPECT_EQ(counts.entries[0].row, 0);
  EXPECT_EQ(counts.entries[0].column, 1);
  EXPECT_EQ(counts.entries[1].row, 1);
  EXPECT_EQ(counts.entries[1].column, 0);
  EXPECT_EQ(counts.entries[2].row, 1);
  EXPECT_EQ(counts.entries[2].column, 2);
  EXPECT_THAT(Values(counts), ElementsAre(1, 1, 3));
  EXPECT_THAT(Values(EventMatrix(log, RatingKind::kLogCount)),
              ElementsAre(std::log(2), std::log(2), std::log(4)));
  EXPECT_THAT(Values(EventMatrix(log, RatingKind::kExplicit)),
              ElementsAre(5, 2, 2));
}

TEST(FitLsiTest, GivenTemperatureSkipsTheSearch) {
  EventLog log = MakeLog(2, 2);
  log.events = {{0, 0, 1}, {1, 1, 1}, {1, 1, 1}};
  LsiOptions options;
  options.rating_kind = RatingKind::kCount;
  options.temperature = .25;
  std::vector<std::string> steps;
  options.progress = [&](absl::string_view step) { steps.emplace_back(step); };
  ASSERT_OK_AND_ASSIGN(const LsiModel model, FitLsi(log, options));
  EXPECT_EQ(model.dim, 2);  // all the matrix has
  EXPECT_THAT(model.singular_values, ElementsAre(2, 1));
  EXPECT_THAT(model.keys, ElementsAre(0, 1, 1, 0));
  EXPECT_EQ(model.defaults.temperature, .25);
  EXPECT_EQ(model.defaults.score_kind, ScoreKind::kDot);
  EXPECT_EQ(model.defaults.combine_kind, CombineKind::kSum);
  EXPECT_FALSE(model.defaults.negative_log_likelihood.has_value());
  EXPECT_THAT(steps, ElementsAre("decomposing all events"));
}

TEST(FitLsiTest, KeysAreScaledBySingularValues) {
  LsiOptions options;
  options.dim = 4;
  options.temperature = 1;
  const EventLog log = FourTastes(60, 12);
  ASSERT_OK_AND_ASSIGN(const LsiModel plain, FitLsi(log, options));
  options.key_scale = KeyScale::kSingular;
  ASSERT_OK_AND_ASSIGN(const LsiModel singular, FitLsi(log, options));
  options.key_scale = KeyScale::kInverse;
  ASSERT_OK_AND_ASSIGN(const LsiModel inverse, FitLsi(log, options));
  ASSERT_EQ(plain.keys.size(), 160);
  EXPECT_EQ(plain.singular_values, singular.singular_values);
  for (std::size_t i = 0; i < plain.keys.size(); ++i) {
    const double s = plain.singular_values[i % 4];
    EXPECT_DOUBLE_EQ(singular.keys[i], plain.keys[i] * s);
    EXPECT_DOUBLE_EQ(inverse.keys[i], plain.keys[i] / s);
  }
}

TEST(FitLsiTest, HeldOutItemsAreFoundFarBetterThanByChance) {
  LsiOptions options;
  options.dim = 4;
  const EventLog log = FourTastes(400, 12);
  ASSERT_OK_AND_ASSIGN(const LsiModel model, FitLsi(log, options));
  // By then a customer has on average 7 of 10 items. A model that had learned
  // only the taste would leave at most 10 items to guess among.
  EXPECT_LT(*model.defaults.negative_log_likelihood, std::log(10));
  EXPECT_DOUBLE_EQ(*model.defaults.uniform_negative_log_likelihood,
                   std::log(40));
  // 12 draws of 10 give fewer than 5 distinct items once in about 10^4.
  EXPECT_GE(model.defaults.choice_count, 390);
  EXPECT_LE(model.defaults.choice_count, 400);

  // The keys are those learned from all events.
  options.temperature = 1;
  ASSERT_OK_AND_ASSIGN(const LsiModel of_all, FitLsi(log, options));
  EXPECT_EQ(model.keys, of_all.keys);
}

TEST(FitLsiTest, AtMostTwoThousandChoices) {
  LsiOptions options;
  options.dim = 2;
  ASSERT_OK_AND_ASSIGN(const LsiModel model,
                       FitLsi(FourTastes(2400, 12), options));
  EXPECT_EQ(model.defaults.choice_count, 2000);
}

TEST(FitLsiTest, SameEventsGiveTheSameModel) {
  LsiOptions options;
  options.dim = 4;
  const EventLog log = FourTastes(100, 10);
  ASSERT_OK_AND_ASSIGN(const LsiModel first, FitLsi(log, options));
  ASSERT_OK_AND_ASSIGN(const LsiModel second, FitLsi(log, options));
  EXPECT_EQ(first.keys, second.keys);
  EXPECT_EQ(first.defaults.temperature, second.defaults.temperature);
}

TEST(FitLsiTest, NothingToHoldOutIsAnError) {
  // Four items each, and one customer with a fifth item that nobody else has.
  EventLog log = MakeLog(3, 6);
  for (std::int32_t customer = 0; customer < 3; ++customer) {
    for (std::int32_t item = 0; item < 4; ++item) {
      log.events.push_back({customer, item, 1});
    }
  }
  log.events.push_back({0, 4, 1});
  EXPECT_THAT(FitLsi(log, LsiOptions()),
              StatusIs(kInvalid, HasSubstr("or a temperature")));
  log.events.push_back({1, 4, 1});  // now it can be learnt from another
  ASSERT_OK_AND_ASSIGN(const LsiModel model, FitLsi(log, LsiOptions()));
  EXPECT_EQ(model.defaults.choice_count, 1);
}

TEST(FitLsiTest, RefusesBadEventsAndOptions) {
  EXPECT_THAT(FitLsi(MakeLog(1, 1), LsiOptions()),
              StatusIs(kInvalid, HasSubstr("events: got none")));
  EventLog log = MakeLog(2, 2);
  log.events = {{0, 0, 1}, {1, 2, 1}};
  EXPECT_THAT(FitLsi(log, LsiOptions()),
              StatusIs(kInvalid, HasSubstr("events[1]")));
  log.events[1] = {-1, 1, 1};
  EXPECT_THAT(FitLsi(log, LsiOptions()),
              StatusIs(kInvalid, HasSubstr("events[1]")));
  log.events[1] = {1, 1, std::numeric_limits<double>::infinity()};
  EXPECT_THAT(FitLsi(log, LsiOptions()),
              StatusIs(kInvalid, HasSubstr("events[1].rating")));
  log.events[1] = {1, 1, 1};
  LsiOptions options;
  options.dim = 0;
  EXPECT_THAT(FitLsi(log, options), StatusIs(kInvalid, HasSubstr("dim")));
  options.dim = 1;
  options.temperature = 0;
  EXPECT_THAT(FitLsi(log, options),
              StatusIs(kInvalid, HasSubstr("temperature")));
}

}  // namespace
}  // namespace attendant
