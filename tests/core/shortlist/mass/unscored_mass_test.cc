// A scan's estimate for the lists that it did not visit, compared with exact
// sums in double precision.
#include "core/shortlist/mass/unscored_mass.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <numeric>
#include <random>
#include <utility>
#include <vector>

#include "core/attention/softmax/log_add.h"
#include "core/base/bitmap.h"
#include "core/shortlist/ivf/ivf_index.h"
#include "core/shortlist/ivf/ivf_training.h"
#include "core/shortlist/passes/float_visit.h"
#include "tests/core/shortlist/scan_fixture.h"
#include "tests/support/status_matchers.h"
#include "tests/support/string_stream.h"

namespace attendant {
namespace {

constexpr std::int64_t kDim = 32;
constexpr std::int64_t kRows = 8000;
constexpr std::int64_t kLists = 80;
constexpr std::int64_t kProbes = 6;
constexpr std::int64_t kQueries = 200;
constexpr std::uint64_t kCodeSeed = 3;

UnscoredMassOptions OptionsFor(std::int64_t probe_count) {
  UnscoredMassOptions options;
  options.probe_counts = {probe_count, 3 * probe_count, 6 * probe_count};
  options.seed = kCodeSeed;
  options.square_distance = 1;
  return options;
}

// Keys of norm 1 around centres, in lists by centre, and queries like them.
struct Data {
  Data() {
    std::mt19937_64 random(11);
    std::normal_distribution<float> normal;
    std::vector<float> centres(kLists * kDim);
    for (float& component : centres) component = normal(random);
    const auto draw = [&](std::int64_t centre, float* to) {
      for (std::int64_t d = 0; d < kDim; ++d) {
        to[d] = centres[centre * kDim + d] + normal(random);
      }
      const double norm = Norm({to, static_cast<std::size_t>(kDim)});
      for (std::int64_t d = 0; d < kDim; ++d) {
        to[d] = static_cast<float>(to[d] / norm);
      }
    };
    lists.dim = kDim;
    AlignedBuffer<float> keys(kRows * kDim);
    lists.offsets = {0};
    for (std::int64_t p = 0; p < kRows; ++p) {
      draw(p * kLists / kRows, keys.data() + p * kDim);
      lists.inverse_norms.push_back(1);
      lists.rows.push_back(static_cast<RowIndex>((p * 7919) % kRows));
    }
    lists.keys = KeyFloats(std::move(keys));
    for (std::int64_t l = 1; l <= kLists; ++l) {
      lists.offsets.push_back(l * kRows / kLists);
    }
    lists.Summarise(lists.SumKeys(false, 1), 5);
    lists.Encode(false, kCodeSeed, 1);
    queries.resize(kQueries * kDim);
    for (std::int64_t q = 0; q < kQueries; ++q) {
      draw(q % kLists, queries.data() + q * kDim);
    }
    mass = *UnscoredMass::Learn(lists, OptionsFor(kProbes));
  }

  std::span<const float> Query(std::int64_t q) const {
    return {queries.data() + q * kDim, static_cast<std::size_t>(kDim)};
  }

  InvertedLists lists;
  std::vector<float> queries;
  UnscoredMass mass;
};

const Data& Keys() {
  static const Data* const data = new Data;
  return *data;
}

// Returns part p of three of the keys: most of them, but none of every fifth
// list; a sixteenth; and the rest.
InvertedLists PartOfKeys(int p) {
  const InvertedLists& all = Keys().lists;
  InvertedLists part;
  part.dim = kDim;
  part.means = all.means;
  part.offsets = {0};
  std::vector<std::int64_t> positions;
  for (std::int64_t l = 0; l < kLists; ++l) {
    const auto at = static_cast<std::size_t>(l);
    for (std::int64_t i = all.offsets[at]; i < all.offsets[at + 1]; ++i) {
      const int of = i % 16 == 0 ? 1 : (l % 5 == 0 ? 2 : 0);
      if (of != p) continue;
      positions.push_back(i);
      part.rows.push_back(all.rows[i]);
      part.inverse_norms.push_back(1);
    }
    part.offsets.push_back(static_cast<std::int64_t>(positions.size()));
  }
  part.keys = *KeyFloats::Gather(
      part.key_count(), kDim, nullptr,
      [&](std::int64_t i) { return all.key_view().Row(positions[i]); });
  part.Encode(false, kCodeSeed, 1);
  return part;
}

// The keys that are not allowed, as dead ones.
DeadKeys DeadKeysBut(const Bitmap& allowed) {
  const InvertedLists& lists = Keys().lists;
  DeadKeys dead = {Bitmap(kRows), lists.counts};
  for (std::int64_t p = 0; p < kRows; ++p) {
    if (allowed.Test(lists.rows[p])) continue;
    dead.positions.Set(p);
    --dead.live_counts[lists.ListAt(p)];
  }
  return dead;
}

// A query that has visited its best lists, and the exact results.
struct Case {
  Case(std::int64_t q, double temperature, const Bitmap* allowed = nullptr,
       std::int64_t probe_count = kProbes) {
    const InvertedLists& lists = Keys().lists;
    scan = QueryFor(Keys().Query(q), kRows);
    scan.logit_factor = 1 / temperature;
    scan.allowed = allowed;
    eligible = std::make_unique<EligibleRows>(scan);
    EXPECT_TRUE(coded.Encode(lists.codes, scan.query, scan.logit_factor));
    lists.means->ScoreLists(scan.query, scores);
    std::vector<std::int32_t> order(kLists);
    std::iota(order.begin(), order.end(), 0);
    std::ranges::sort(order, [&](std::int32_t a, std::int32_t b) {
      return scores[a] > scores[b];
    });
    for (std::int64_t i = 0; i < kLists; ++i) {
      const std::int32_t list = order[i];
      const bool is_visited = i < probe_count;
      if (is_visited) chosen.push_back(list);
      const auto l = static_cast<std::size_t>(list);
      for (std::int64_t p = lists.offsets[l]; p < lists.offsets[l + 1]; ++p) {
        if (eligible->Bit(lists.rows[p]) == 0) {
          continue;
        }
        double product = 0;
        for (std::size_t d = 0; d < kDim; ++d) {
          product += double{scan.query[d]} *
                     lists.keys.data()[static_cast<std::size_t>(p * kDim) + d];
        }
        const double logit = product * scan.logit_factor;
        ++eligible_count;
        if (!is_visited) {
          ++rest_count;
          log_rest = LogAdd(log_rest, logit);
          continue;
        }
        log_visited = LogAdd(log_visited, logit);
        if (i >= probe_count / 2) log_farther = LogAdd(log_farther, logit);
      }
    }
  }

  std::vector<ListPart> parts() const {
    return {
        {&Keys().lists, scan.allowed == nullptr ? nullptr : eligible.get()}};
  }
  VisitedMass visited() const {
    return {.query = scan.query,
            .logit_factor = scan.logit_factor,
            .coded = &coded,
            .scores = scores,
            .lists = chosen,
            .log_sum = log_visited,
            .log_farther_sum = log_farther,
            .masked = scan.allowed != nullptr,
            .eligible_rate = static_cast<double>(eligible_count) / kRows,
            .rest_count = rest_count};
  }

  static constexpr double kMinusInfinity =
      -std::numeric_limits<double>::infinity();

  ScanQuery scan;
  std::unique_ptr<EligibleRows> eligible;
  CodedQuery coded;
  std::vector<float> scores;
  std::vector<std::int32_t> chosen;
  std::int64_t eligible_count = 0;
  std::int64_t rest_count = 0;
  double log_visited = kMinusInfinity;
  double log_farther = kMinusInfinity;
  double log_rest = kMinusInfinity;
};

struct Tally {
  double held = 0;
  double mean_square_error = 0;
  double error_p95 = 0;
  double median_width = 0;
};

double Percentile(std::vector<double> numbers, double share) {
  const auto nth = static_cast<std::ptrdiff_t>(
      share * static_cast<double>(numbers.size() - 1));
  std::nth_element(numbers.begin(), numbers.begin() + nth, numbers.end());
  return numbers[nth];
}

// Counts over all queries those whose log partition lies within 1.96
// deviations. `parts`: the indexes of the keys that are allowed, if they are
// not in one index, or those that are not allowed are not there or known as
// dead.
Tally Count(double temperature, const Bitmap* allowed = nullptr,
            std::int64_t probe_count = kProbes,
            std::span<const ListPart> parts = {}) {
  Tally tally;
  std::vector<double> errors;
  std::vector<double> widths;
  for (std::int64_t q = 0; q < kQueries; ++q) {
    const Case c(q, temperature, allowed, probe_count);
    UnscoredGuess guess;
    const std::vector<ListPart> of_case = c.parts();
    VisitedMass visited = c.visited();
    if (!parts.empty()) {
      visited.masked = std::ranges::any_of(parts, &ListPart::masked);
    }
    EXPECT_TRUE(
        Keys().mass.Guess(parts.empty() ? of_case : parts, visited, guess));
    const double log_guess = LogAdd(c.log_visited, guess.log_sum);
    const double error = log_guess - LogAdd(c.log_visited, c.log_rest);
    const double share = std::exp(guess.log_variance / 2 - log_guess);
    const double spread = std::log1p(share * share);
    const double distance = 1.96 * std::sqrt(spread) + spread / 2;
    if (std::abs(error) <= distance) ++tally.held;
    tally.mean_square_error += error * error;
    errors.push_back(std::abs(error));
    widths.push_back(2 * distance);
  }
  tally.held /= kQueries;
  tally.mean_square_error /= kQueries;
  tally.error_p95 = Percentile(std::move(errors), 0.95);
  tally.median_width = Percentile(std::move(widths), 0.5);
  return tally;
}

// Of 200 intervals that each hold with 95 %, fewer than 181 hold once in 375
// times.
constexpr double kMinHeld = 0.905;

constexpr double kTemperatures[] = {1.0, 0.2, 0.1, 0.05, 0.02};
// A filtered query visits more lists; this many for the third that the mask
// leaves.
constexpr std::int64_t kMaskedProbes = 15;

Bitmap ThirdOfRows() {
  Bitmap allowed(kRows);
  std::mt19937_64 random(2);
  for (RowIndex row = 0; row < kRows; ++row) {
    if (random() % 3 == 0) allowed.Set(row);
  }
  return allowed;
}

TEST(UnscoredMassTest, IntervalsHoldAndAreNotTooWide) {
  for (const double temperature : kTemperatures) {
    const Tally tally = Count(temperature);
    EXPECT_GE(tally.held, kMinHeld) << temperature;
    // At a flatter temperature everything is known to a hundredth or less.
    if (temperature == 1.0) continue;
    EXPECT_LE(tally.median_width, 4 * tally.error_p95) << temperature;
  }
}

TEST(UnscoredMassTest, SoDoThoseWhereSomeKeysAreEligible) {
  const Bitmap allowed = ThirdOfRows();
  for (const double temperature : kTemperatures) {
    const Tally tally = Count(temperature, &allowed, kMaskedProbes);
    EXPECT_GE(tally.held, kMinHeld) << temperature;
    EXPECT_LE(tally.median_width, 4 * tally.error_p95) << temperature;
  }
}

TEST(UnscoredMassTest, SoDoThoseOfKeysInSeveralIndexes) {
  const InvertedLists lists[] = {PartOfKeys(0), PartOfKeys(1), PartOfKeys(2)};
  const ListPart parts[] = {{&lists[0]}, {&lists[1]}, {&lists[2]}};
  const Bitmap allowed = ThirdOfRows();
  ScanQuery mask;
  mask.row_end = kRows;
  mask.allowed = &allowed;
  const EligibleRows eligible(mask);
  const ListPart masked_parts[] = {
      {&lists[0], &eligible}, {&lists[1], &eligible}, {&lists[2], &eligible}};
  for (const double temperature : kTemperatures) {
    const Tally whole = Count(temperature);
    const Tally all = Count(temperature, nullptr, kProbes, parts);
    EXPECT_GE(all.held, kMinHeld) << temperature;
    EXPECT_LE(all.median_width, 1.5 * whole.median_width) << temperature;
    const Tally masked =
        Count(temperature, &allowed, kMaskedProbes, masked_parts);
    EXPECT_GE(masked.held, kMinHeld) << temperature;
  }
}

enum class Dead { kAnyKeys, kOneSideOfLists, kWholeLists };

// The rows that are left if this share of the keys is dead.
Bitmap LiveRows(Dead which, double dead_share) {
  const InvertedLists& lists = Keys().lists;
  std::mt19937_64 random(4);
  std::normal_distribution<float> normal;
  std::uniform_real_distribution<double> uniform;
  std::vector<float> direction(kDim);
  for (float& component : direction) component = normal(random);
  Bitmap live(kRows);
  for (std::int64_t l = 0; l < kLists; ++l) {
    const auto at = static_cast<std::size_t>(l);
    std::vector<std::pair<double, std::int64_t>> order;
    for (std::int64_t p = lists.offsets[at]; p < lists.offsets[at + 1]; ++p) {
      const std::span<const float> key = lists.key_view().Row(p);
      order.emplace_back(which == Dead::kOneSideOfLists
                             ? std::inner_product(key.begin(), key.end(),
                                                  direction.begin(), 0.0)
                             : uniform(random),
                         p);
    }
    std::ranges::sort(order);
    const double share = which != Dead::kWholeLists     ? dead_share
                         : uniform(random) < dead_share ? 1
                                                        : 0;
    const auto dead_count =
        static_cast<std::size_t>(share * static_cast<double>(order.size()));
    for (std::size_t i = dead_count; i < order.size(); ++i) {
      live.Set(lists.rows[order[i].second]);
    }
  }
  return live;
}

Tally CountWithDead(Dead which, double dead_share, double temperature) {
  const Bitmap live = LiveRows(which, dead_share);
  const DeadKeys dead = DeadKeysBut(live);
  ScanQuery mask;
  mask.row_end = kRows;
  mask.allowed = &live;
  const EligibleRows eligible(mask);
  const ListPart part = {&Keys().lists, &eligible, &dead};
  return Count(temperature, &live, kProbes, {&part, 1});
}

TEST(UnscoredMassTest, IntervalsHoldWhereKeysHaveDied) {
  for (const double temperature : {1.0, 0.2, 0.05}) {
    SCOPED_TRACE(temperature);
    const auto held = [&](Dead which, double dead_share) {
      return CountWithDead(which, dead_share, temperature).held;
    };
    EXPECT_GE(held(Dead::kAnyKeys, 0.08), kMinHeld);
    EXPECT_GE(held(Dead::kOneSideOfLists, 0.08), kMinHeld);
    EXPECT_GE(held(Dead::kOneSideOfLists, 0.3), kMinHeld);
    EXPECT_GE(held(Dead::kWholeLists, 0.3), kMinHeld);
  }
}

// What is left of each list is known, so draws are not needed.
TEST(UnscoredMassTest, FewDeadKeysLeaveIntervalsNarrow) {
  const Bitmap live = LiveRows(Dead::kAnyKeys, 0.05);
  const Tally masked = Count(0.2, &live);
  const Tally tally = CountWithDead(Dead::kAnyKeys, 0.05, 0.2);
  EXPECT_LE(tally.median_width, 0.75 * masked.median_width);
  EXPECT_LE(tally.error_p95, masked.error_p95);
}

TEST(UnscoredMassTest, GuessesAreNearWhereKeysWeighAlike) {
  // Nine blocks of 16 keys, whose terms deviate by less than a fifth at
  // temperature 1, give the rest a deviation of at most 0.2 / sqrt(9 x 16).
  EXPECT_LE(std::sqrt(Count(1).mean_square_error), 0.017);
  // Ignoring the rest would be off by log(kLists / kProbes).
  EXPECT_LE(std::sqrt(Count(0.2).mean_square_error), 0.1);
}

TEST(UnscoredMassTest, CountsTheRest) {
  const Case c(0, 0.1);
  UnscoredGuess guess;
  ASSERT_TRUE(Keys().mass.Guess(c.parts(), c.visited(), guess));
  EXPECT_EQ(guess.count, c.rest_count);
  const SoftmaxPartition partition = guess.partition();
  EXPECT_EQ(partition.count, c.rest_count);
  EXPECT_NEAR(*partition.LogPartition(), guess.log_sum, 1e-12);
}

TEST(UnscoredMassTest, OneQueryHasOneGuess) {
  const Case c(1, 0.1);
  const Case other(2, 0.02);
  UnscoredGuess first;
  UnscoredGuess between;
  UnscoredGuess second;
  ASSERT_TRUE(Keys().mass.Guess(c.parts(), c.visited(), first));
  ASSERT_TRUE(Keys().mass.Guess(other.parts(), other.visited(), between));
  ASSERT_TRUE(Keys().mass.Guess(c.parts(), c.visited(), second));
  EXPECT_EQ(
      std::memcmp(&first.log_variance, &second.log_variance, sizeof(double)),
      0);
  EXPECT_EQ(std::memcmp(&first.log_sum, &second.log_sum, sizeof(double)), 0);
  EXPECT_NE(first.log_sum, between.log_sum);
}

TEST(UnscoredMassTest, WhatWasSavedGuessesTheSame) {
  StringSink sink;
  Keys().mass.Save(sink);
  StringSource source(sink.bytes);
  const UnscoredMass loaded =
      UnscoredMass::Load(source, kLists, kDim, kCodeSeed);
  ASSERT_OK(source.status());
  const Case c(6, 0.2);
  VisitedMass visited = c.visited();
  for (const double square_distance : {0.5, 1.0, 1.4}) {
    visited.square_distance = square_distance;
    UnscoredGuess before;
    UnscoredGuess after;
    ASSERT_TRUE(Keys().mass.Guess(c.parts(), visited, before));
    ASSERT_TRUE(loaded.Guess(c.parts(), visited, after));
    EXPECT_EQ(after.log_sum, before.log_sum) << square_distance;
    EXPECT_EQ(after.log_variance, before.log_variance) << square_distance;
  }
}

// At .2 predictions are off by hundredths and draws by tenths, as they state.
TEST(UnscoredMassTest, KeysThatLieOtherwiseAreDrawnFrom) {
  const Case c(6, 0.2);
  VisitedMass visited = c.visited();
  UnscoredGuess alike;
  ASSERT_TRUE(Keys().mass.Guess(c.parts(), visited, alike));
  visited.square_distance = 1.05;
  UnscoredGuess nearly_alike;
  ASSERT_TRUE(Keys().mass.Guess(c.parts(), visited, nearly_alike));
  EXPECT_EQ(nearly_alike.log_sum, alike.log_sum);
  for (const double square_distance : {0.5, 1.4}) {
    visited.square_distance = square_distance;
    UnscoredGuess drawn;
    ASSERT_TRUE(Keys().mass.Guess(c.parts(), visited, drawn));
    EXPECT_NE(drawn.log_sum, alike.log_sum);
    EXPECT_NEAR(drawn.log_sum, c.log_rest, 0.5);
    EXPECT_GT(drawn.log_variance, alike.log_variance + std::log(2));
  }
}

TEST(UnscoredMassTest, KeysThatAreNotEligibleWeighNothing) {
  Bitmap allowed(kRows);
  for (RowIndex row = 0; row < kRows; ++row) allowed.Set(row);
  const Case same(3, 0.2, &allowed);
  UnscoredGuess guess_same;
  ASSERT_TRUE(Keys().mass.Guess(same.parts(), same.visited(), guess_same));
  for (RowIndex row = 0; row < kRows; row += 2) allowed.Clear(row);
  const Case half(3, 0.2, &allowed);
  UnscoredGuess guess_half;
  ASSERT_TRUE(Keys().mass.Guess(half.parts(), half.visited(), guess_half));
  EXPECT_NEAR(guess_half.log_sum - guess_same.log_sum, std::log(0.5), 0.3);
}

TEST(UnscoredMassTest, TooFewEligibleKeysSayNothing) {
  Bitmap allowed(kRows);
  for (RowIndex row = 0; row < 20; ++row) allowed.Set(row * 400);
  const Case c(4, 0.2, &allowed);
  UnscoredGuess guess;
  EXPECT_FALSE(Keys().mass.Guess(c.parts(), c.visited(), guess));
}

TEST(UnscoredMassTest, NothingLeftIsNothing) {
  const Case c(5, 0.2);
  VisitedMass visited = c.visited();
  visited.rest_count = 0;
  UnscoredGuess guess;
  ASSERT_TRUE(Keys().mass.Guess(c.parts(), visited, guess));
  EXPECT_EQ(guess.count, 0);
  EXPECT_EQ(guess.log_variance, -std::numeric_limits<double>::infinity());
}

TEST(UnscoredMassTest, AllListsVisitedNeedNoGuess) {
  const auto mass = UnscoredMass::Learn(Keys().lists, OptionsFor(kLists));
  ASSERT_OK(mass);
  EXPECT_FALSE(mass->usable());
}

TEST(UnscoredMassTest, LearningStopsWhenCancelled) {
  const std::atomic<bool> cancelled = true;
  UnscoredMassOptions options = OptionsFor(1);
  options.cancelled = &cancelled;
  EXPECT_THAT(UnscoredMass::Learn(Keys().lists, options).status(),
              StatusIs(absl::StatusCode::kCancelled, ::testing::_));
}

TEST(UnscoredMassTest, TheFartherHalfScoresLess) {
  const std::vector<float> scores = {5, 1, 4, 2, 3};
  const auto farther = [&](std::vector<std::int32_t> lists) {
    return FartherScore(scores, lists);
  };
  EXPECT_EQ(farther({0}), 5);
  EXPECT_EQ(farther({0, 2}), 4);
  EXPECT_EQ(farther({1, 2, 0}), 4);
  EXPECT_EQ(farther({0, 1, 2, 3}), 2);
}

TEST(FloatVisitTest, SumsAreThoseOfTheLists) {
  const Case c(6, 0.1);
  AttentionState state(10, &kNoIds);
  FloatVisit visit(Keys().lists, c.scan, c.scores, true, state);
  ASSERT_OK(visit.Visit(c.chosen));
  EXPECT_THAT(visit.lists(), ::testing::ElementsAreArray(c.chosen));
  EXPECT_EQ(visit.scored_count(), kProbes * kRows / kLists);
  // Logits are floats of at most 10, with exps accurate to 2^-20.
  EXPECT_NEAR(visit.log_sum(), c.log_visited, 1e-5);
  EXPECT_NEAR(visit.log_farther_sum(), c.log_farther, 1e-5);
}

TEST(IvfIndexTest, ScansSayWhatTheyDidNotVisit) {
  const KeyTable table = ClusteredKeys(20000, 16, 50, 4);
  const auto index =
      IvfIndex::Build(table.keys, 16, ScoreKind::kCosine, {.list_count = 128});
  ASSERT_OK(index);
  const auto flat = FlatOf(table);
  constexpr std::int64_t kCount = 60;
  std::vector<std::int64_t> list_counts;
  // Sharp queries are scored from floats.
  for (const double factor : {10.0, 20000.0}) {
    std::int64_t held = 0;
    for (std::int64_t q = 0; q < kCount; ++q) {
      std::vector<float> key(table.keys[q * 300].begin(),
                             table.keys[q * 300].end());
      const double norm = Norm(key);
      for (float& component : key) {
        component = static_cast<float>(component / norm);
      }
      ScanQuery query = QueryFor(key, 20000);
      query.score_kind = ScoreKind::kCosine;
      query.logit_factor = factor;
      AttentionState state(10, &kNoIds);
      const auto stats = (*index)->Scan(query, state);
      ASSERT_OK(stats);
      ASSERT_FALSE(stats->complete);
      ASSERT_TRUE(stats->knows_mass);
      AttentionState exact(10, &kNoIds);
      query.exhaustive = true;
      ASSERT_OK(flat->Scan(query, exact));
      const double guess = *state.partition().LogPartition();
      const double error = guess - *exact.partition().LogPartition();
      const double share = std::exp(stats->log_variance / 2 - guess);
      const double spread = std::log1p(share * share);
      if (std::abs(error) <= 1.96 * std::sqrt(spread) + spread / 2) ++held;
      EXPECT_EQ(state.partition().count, 20000);
      list_counts.push_back(stats->visited_list_count);
    }
    EXPECT_GE(held, 52) << factor;
  }
  // The margin is the same at any temperature. Codes, of which the first read
  // has 4 bits, may place a query that is almost far from all keys farther.
  constexpr float kCodesErr = 0.05F;
  const IvfTraining& training = *(*index)->training();
  int compared_count = 0;
  for (std::size_t q = 0; q < kCount; ++q) {
    std::vector<float> scores;
    training.means->ScoreLists(table.keys[q * 300], scores);
    if (*std::ranges::max_element(scores) <
        training.calibration.near_peak + kCodesErr) {
      continue;
    }
    EXPECT_NEAR(list_counts[q], list_counts[q + kCount], 3);
    ++compared_count;
  }
  EXPECT_GT(compared_count, 10);
}

// Far beyond the measured range, errors outgrow a double; only their logs are
// representable.
TEST(IvfIndexTest, SharpestScansKnowHowLittleTheyKnow) {
  constexpr std::int64_t kCount = 6000;
  constexpr std::int64_t kFewDims = 16;
  std::mt19937_64 random(5);
  std::normal_distribution<float> normal;
  std::vector<float> floats(kCount * kFewDims);
  for (float& component : floats) component = normal(random);
  const KeyTable table = TableOf(kFewDims, std::move(floats));
  const auto index = IvfIndex::Build(table.keys, kFewDims, ScoreKind::kDot, {});
  ASSERT_OK(index);
  for (const double factor : {1e4, 1e6}) {
    for (int q = 0; q < 20; ++q) {
      std::vector<float> vector(kFewDims);
      for (float& component : vector) component = normal(random);
      ScanQuery query = QueryFor(vector, kCount);
      query.logit_factor = factor;
      AttentionState state(10, &kNoIds);
      const auto stats = (*index)->Scan(query, state);
      ASSERT_OK(stats);
      ASSERT_TRUE(stats->knows_mass) << factor;
      EXPECT_TRUE(std::isfinite(stats->log_variance)) << factor;
    }
  }
}

// Keys that each occur several times, and queries of half their size.
struct RepeatedKeys {
  static constexpr std::int64_t kCount = 6000;

  explicit RepeatedKeys(std::int64_t distinct_count) {
    std::normal_distribution<float> normal;
    std::vector<float> distinct(
        static_cast<std::size_t>(distinct_count * kDim));
    for (float& component : distinct) component = normal(random);
    std::vector<float> floats;
    for (std::int64_t i = 0; i < kCount; ++i) {
      const auto first = distinct.begin() + i % distinct_count * kDim;
      floats.insert(floats.end(), first, first + kDim);
    }
    table = TableOf(kDim, std::move(floats));
  }

  std::vector<float> Query() {
    std::normal_distribution<float> normal(0, .5f);
    std::vector<float> query;
    for (std::int64_t d = 0; d < kDim; ++d) query.push_back(normal(random));
    return query;
  }

  std::mt19937_64 random{21};
  KeyTable table;
};

// Codes of equal keys err alike, and a few lists hold nearly everything. With
// 20 and 200 different keys, .14 and .56 of the intervals held when neither
// effect was accounted for, and .15 and .5 when all codes are read.
TEST(IvfIndexTest, IntervalsOfEqualKeysHold) {
  for (const std::int64_t distinct_count : {20, 200}) {
    RepeatedKeys keys(distinct_count);
    const auto index =
        IvfIndex::Build(keys.table.keys, kDim, ScoreKind::kDot, {});
    ASSERT_OK(index);
    const auto flat = FlatOf(keys.table);
    for (const double recall : {0.0, 0.5, 1.0}) {
      constexpr int kCount = 200;
      int held = 0;
      for (int q = 0; q < kCount; ++q) {
        const std::vector<float> vector = keys.Query();
        ScanQuery query = QueryFor(vector, RepeatedKeys::kCount);
        query.goals.recall = recall;
        AttentionState state(100, &kNoIds);
        const auto stats = (*index)->Scan(query, state);
        ASSERT_OK(stats);
        ASSERT_TRUE(stats->knows_mass);
        AttentionState exact(100, &kNoIds);
        query.exhaustive = true;
        ASSERT_OK(flat->Scan(query, exact));
        const double guess = *state.partition().LogPartition();
        const double error = guess - *exact.partition().LogPartition();
        const double share = std::exp(stats->log_variance / 2 - guess);
        const double spread = std::log1p(share * share);
        // Logits of about 10 are floats themselves.
        held += std::abs(error) <= 1.96 * std::sqrt(spread) + spread / 2 + 2e-6;
      }
      // .95 of them, less three deviations.
      EXPECT_GE(held, 181) << distinct_count << " at " << recall;
    }
  }
}

// The key's margin exceeds everything that is summed, but the logits scored
// from floats remain.
TEST(IvfIndexTest, BoundsBesideAKeyOfGreatNormAreNumbers) {
  KeyTable table = ClusteredKeys(3000, 16, 20, 4);
  for (std::int64_t d = 0; d < 16; ++d) {
    table.floats[d] *= 1e7f;
  }
  const auto index = IvfIndex::Build(table.keys, 16, ScoreKind::kDot, {});
  ASSERT_OK(index);
  const auto flat = FlatOf(table);
  int certified_count = 0;
  for (std::size_t q = 1; q < 40; ++q) {
    ScanQuery query = QueryFor(table.keys[q], 3000);
    query.goals.certified = true;
    AttentionState state(10, &kNoIds);
    const auto stats = (*index)->Scan(query, state);
    ASSERT_OK(stats);
    AttentionState exact(10, &kNoIds);
    query.exhaustive = true;
    ASSERT_OK(flat->Scan(query, exact));
    const double truth = *exact.partition().LogPartition();
    if (!stats->certified) continue;  // scored from floats
    ++certified_count;
    EXPECT_TRUE(std::isfinite(stats->log_lower)) << q;
    EXPECT_LE(stats->log_lower, truth + 1e-5 * std::abs(truth)) << q;
    EXPECT_GE(stats->log_upper, truth - 1e-5 * std::abs(truth)) << q;
  }
  EXPECT_GT(certified_count, 0);
}

}  // namespace
}  // namespace attendant
