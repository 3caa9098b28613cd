// Choosing what is returned: by mass, or at random.
#include <cmath>
#include <map>

#include "tests/core/catalog/catalog_fixture.h"

namespace attendant {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

class SelectTest : public CatalogFixture {
 protected:
  // For the query {1}, item n has the logit log(n + 1), so weights are as 1 : 2
  // : ... : count.
  void OpenLogs(int count) {
    OpenCatalog(OneFieldSchema(1));
    std::vector<Item> items;
    for (int n = 0; n < count; ++n) items.push_back(LogItem(n));
    Upsert(items);
  }

  static Item LogItem(int n) {
    return MakeItem("item" + std::to_string(n),
                    {static_cast<float>(std::log(n + 1.0))});
  }

  static AttendQuery SampleQuery(std::int64_t count, std::int64_t seed) {
    AttendQuery query = VectorQuery({1});
    query.select_kind = SelectKind::kSample;
    query.result_count = count;
    query.seed = seed;
    return query;
  }
};

TEST_F(SelectTest, MinMassIsTheSmallestSet) {
  OpenLogs(4);  // weights .1, .2, .3, .4
  const std::map<double, std::size_t> sizes = {
      {0.05, 1}, {0.39, 1}, {0.41, 2}, {0.69, 2}, {0.71, 3}, {0.91, 4}, {1, 4}};
  for (const auto& [mass, size] : sizes) {
    AttendQuery query = VectorQuery({1});
    query.min_mass = mass;
    ASSERT_OK_AND_ASSIGN(const AttendAnswer answer, Ask(query));
    EXPECT_THAT(answer.items, SizeIs(size)) << mass;
    // Logits are rounded to floats.
    EXPECT_GE(answer.returned_mass.value, std::min(mass, 1 - 1e-12));
    EXPECT_EQ(answer.limit_reason, LimitReason::kNone);
  }
}

// Floats blur a sum of exps, but if everything is returned the mass is exactly
// 1.
TEST_F(SelectTest, AllThereIsHasAllTheMass) {
  OpenLogs(30);
  for (const std::int64_t count : {30, 1}) {
    AttendQuery query = VectorQuery({1});
    query.temperature = 0.7;
    query.result_count = count;
    query.shortlist_count = 30;
    query.weight_scope = WeightScope::kCatalog;
    ASSERT_OK_AND_ASSIGN(const AttendAnswer answer, Ask(query));
    double sum = 0;
    for (const AttendedItem& item : answer.items) sum += item.weight;
    EXPECT_EQ(answer.shortlist_mass.value, 1);
    EXPECT_EQ(answer.shortlist_mass.method, MassMethod::kExact);
    EXPECT_NEAR(answer.returned_mass.value, sum, 1e-14);
    if (count == 30) {
      EXPECT_NEAR(sum, 1, 1e-14);
    }
  }
}

TEST_F(SelectTest, ResultCapEndsMinMassAndIsSaid) {
  OpenLogs(4);
  AttendQuery query = VectorQuery({1});
  query.min_mass = 0.9;
  query.result_count = 2;
  ASSERT_OK_AND_ASSIGN(const AttendAnswer answer, Ask(query));
  EXPECT_THAT(answer.items, SizeIs(2));
  EXPECT_EQ(answer.limit_reason, LimitReason::kResultCap);
  EXPECT_NEAR(answer.returned_mass.value, 0.7, 1e-6);
  query.result_count = 4;
  ASSERT_OK_AND_ASSIGN(const AttendAnswer whole, Ask(query));
  EXPECT_EQ(whole.limit_reason, LimitReason::kNone);
}

TEST_F(SelectTest, AnIndexThatFindsFewerItemsSaysSo) {
  CatalogSchema schema = OneFieldSchema(8);
  schema.key_fields[0].index_kind = IndexKind::kIvf;
  OpenCatalog(schema);
  Upsert(RandomItems(6000, 8, 1));
  catalog_->AwaitIndexes();
  AttendQuery query = VectorQuery(std::vector<float>(8, 0.5F));
  query.result_count = 2000;
  query.shortlist_count = 2000;
  query.probe_count = 1;
  query.scan_mode = ScanMode::kIndex;
  ASSERT_OK_AND_ASSIGN(const AttendAnswer few, Ask(query));
  EXPECT_LT(few.items.size(), 2000U);
  EXPECT_EQ(few.limit_reason, LimitReason::kIndex);
  query.probe_count = std::nullopt;
  query.scan_mode = ScanMode::kExact;
  ASSERT_OK_AND_ASSIGN(const AttendAnswer all, Ask(query));
  EXPECT_THAT(all.items, SizeIs(2000));
  EXPECT_EQ(all.limit_reason, LimitReason::kNone);
  // No more are eligible.
  query.result_count = 7000;
  query.shortlist_count = 7000;
  ASSERT_OK_AND_ASSIGN(const AttendAnswer whole, Ask(query));
  EXPECT_THAT(whole.items, SizeIs(6000));
  EXPECT_EQ(whole.limit_reason, LimitReason::kNone);
}

TEST_F(SelectTest, MinMassOutOfRangeIsRefused) {
  OpenLogs(4);
  for (const double mass : {0.0, -0.5, 1.01, std::nan("")}) {
    AttendQuery query = VectorQuery({1});
    query.min_mass = mass;
    EXPECT_THAT(Ask(query), StatusIs(absl::StatusCode::kInvalidArgument,
                                     HasSubstr("min_mass")));
  }
  AttendQuery beyond = VectorQuery({1});
  beyond.min_mass = 1.0000001;
  EXPECT_THAT(Ask(beyond), StatusIs(absl::StatusCode::kInvalidArgument,
                                    HasSubstr("got 1.0000001, want")));
  AttendQuery query = SampleQuery(2, 1);
  query.min_mass = 0.5;
  EXPECT_THAT(Ask(query), StatusIs(absl::StatusCode::kInvalidArgument,
                                   HasSubstr("min_mass")));
}

TEST_F(SelectTest, SampleDrawsInProportionToTheCatalogsAttention) {
  OpenLogs(4);
  AttendQuery query = SampleQuery(10000, 7);
  query.with_replacement = true;
  // More draws than the shortlist has items.
  ASSERT_OK_AND_ASSIGN(const AttendAnswer answer, Ask(query));
  ASSERT_THAT(answer.items, SizeIs(10000));
  std::map<std::string, int> counts;
  double log_probability = 0;
  const std::vector<std::string> ids = IdsOf(answer);
  for (std::size_t i = 0; i < ids.size(); ++i) {
    ++counts[ids[i]];
    const double weight = (std::stoi(ids[i].substr(4)) + 1) / 10.0;
    EXPECT_NEAR(*answer.items[i].log_weight, std::log(weight), 1e-6);
    EXPECT_NEAR(answer.items[i].weight, weight, 1e-6);
    EXPECT_FALSE(answer.items[i].log_inclusion_given_threshold.has_value());
    log_probability += *answer.items[i].log_weight;
  }
  // Chi-square with 3 degrees of freedom: beyond 16.3 with probability 0.001.
  double chi_square = 0;
  for (int n = 0; n < 4; ++n) {
    const double expected = 1000.0 * (n + 1);
    const double off = counts["item" + std::to_string(n)] - expected;
    chi_square += off * off / expected;
  }
  EXPECT_LT(chi_square, 16.3);
  EXPECT_NEAR(answer.slate->log_probability, log_probability, 1e-6);
  // Each item is returned once.
  EXPECT_NEAR(answer.returned_mass.value, 1, 1e-6);
  EXPECT_EQ(answer.slate->scope, WeightScope::kCatalog);
}

TEST_F(SelectTest, WithoutReplacementProbabilitiesAreConditional) {
  OpenLogs(4);
  std::map<std::string, int> first;
  constexpr int kSlates = 4000;
  for (int seed = 0; seed < kSlates; ++seed) {
    ASSERT_OK_AND_ASSIGN(const AttendAnswer answer, Ask(SampleQuery(2, seed)));
    const std::vector<std::string> ids = IdsOf(answer);
    ASSERT_THAT(ids, SizeIs(2));
    EXPECT_NE(ids[0], ids[1]);
    ++first[ids[0]];
    const double p0 = (std::stoi(ids[0].substr(4)) + 1) / 10.0;
    const double p1 = (std::stoi(ids[1].substr(4)) + 1) / 10.0;
    ASSERT_NEAR(*answer.items[0].log_weight, std::log(p0), 1e-6);
    ASSERT_NEAR(*answer.items[1].log_weight, std::log(p1 / (1 - p0)), 1e-6);
    ASSERT_NEAR(answer.slate->log_probability, std::log(p0 * p1 / (1 - p0)),
                1e-6);
    ASSERT_TRUE(answer.slate->kappa.has_value());
    const double kappa = *answer.slate->kappa;
    ASSERT_NEAR(*answer.items[1].log_inclusion_given_threshold,
                std::log(1 - std::exp(-p1 * std::exp(-kappa))), 1e-5);
  }
  double chi_square = 0;
  for (int n = 0; n < 4; ++n) {
    const double expected = kSlates * (n + 1) / 10.0;
    const double off = first["item" + std::to_string(n)] - expected;
    chi_square += off * off / expected;
  }
  EXPECT_LT(chi_square, 16.3);
}

TEST_F(SelectTest, SampleOfAllHasNothingLeft) {
  OpenLogs(3);
  ASSERT_OK_AND_ASSIGN(const AttendAnswer answer, Ask(SampleQuery(10, 1)));
  EXPECT_THAT(IdsOf(answer), UnorderedElementsAre("item0", "item1", "item2"));
  EXPECT_FALSE(answer.slate->kappa.has_value());
  EXPECT_EQ(*answer.items[2].log_weight, 0);
}

TEST_F(SelectTest, SeedRepeatsADrawWhereverTheRowsLie) {
  OpenLogs(3000);
  const AttendQuery query = SampleQuery(20, 5);
  ASSERT_OK_AND_ASSIGN(const AttendAnswer before, Ask(query));
  const std::vector<std::string> ids = IdsOf(before);
  // Rewritten rows move; a restart orders all rows by id.
  Upsert({LogItem(7), LogItem(2999)});
  ASSERT_OK_AND_ASSIGN(const AttendAnswer rewritten, Ask(query));
  EXPECT_EQ(IdsOf(rewritten), ids);
  Restart();
  ASSERT_OK_AND_ASSIGN(const AttendAnswer restarted, Ask(query));
  EXPECT_EQ(IdsOf(restarted), ids);
  AttendQuery other = query;
  other.seed = 6;
  ASSERT_OK_AND_ASSIGN(const AttendAnswer others, Ask(other));
  EXPECT_NE(IdsOf(others), ids);
}

TEST_F(SelectTest, SeedIsChosenAndReturned) {
  OpenLogs(3000);
  AttendQuery query = SampleQuery(5, 0);
  query.seed = std::nullopt;
  ASSERT_OK_AND_ASSIGN(const AttendAnswer answer, Ask(query));
  const std::vector<std::string> ids = IdsOf(answer);
  query.seed = answer.slate->seed;
  ASSERT_OK_AND_ASSIGN(const AttendAnswer again, Ask(query));
  EXPECT_EQ(IdsOf(again), ids);
}

TEST_F(SelectTest, SampleOfTheShortlistDrawsFromItAlone) {
  OpenLogs(100);
  AttendQuery query = SampleQuery(2, 3);
  query.weight_scope = WeightScope::kShortlist;
  query.shortlist_count = 2;
  ASSERT_OK_AND_ASSIGN(const AttendAnswer answer, Ask(query));
  EXPECT_THAT(IdsOf(answer), UnorderedElementsAre("item99", "item98"));
  EXPECT_NEAR(answer.items[0].weight + answer.items[1].weight, 1, 1e-6);
  EXPECT_EQ(answer.slate->scope, WeightScope::kShortlist);
}

TEST_F(SelectTest, MaskedItemsAreNeverDrawn) {
  OpenLogs(4);
  AttendQuery query = SampleQuery(10, 3);
  query.deny_list = {"item3"};
  ASSERT_OK_AND_ASSIGN(const AttendAnswer answer, Ask(query));
  EXPECT_THAT(IdsOf(answer), UnorderedElementsAre("item0", "item1", "item2"));
  query.allow_list.emplace();
  ASSERT_OK_AND_ASSIGN(const AttendAnswer none, Ask(query));
  EXPECT_THAT(none.items, SizeIs(0));
  EXPECT_EQ(none.slate->log_probability, 0);
}

TEST_F(SelectTest, DrawsArePooledOverThemselvesUnlessMoreIsAskedFor) {
  OpenLogs(4);
  AttendQuery query = SampleQuery(2, 1);
  ASSERT_OK_AND_ASSIGN(const AttendAnswer drawn, Ask(query));
  EXPECT_EQ(drawn.pooled_value->scope, WeightScope::kReturned);
  EXPECT_EQ(drawn.weight_scope, WeightScope::kCatalog);
  query.pool_scope = WeightScope::kCatalog;
  ASSERT_OK_AND_ASSIGN(const AttendAnswer all, Ask(query));
  EXPECT_EQ(all.pooled_value->scope, WeightScope::kCatalog);
}

TEST_F(SelectTest, ChoicesOfSampleAreForSampleAlone) {
  OpenLogs(4);
  AttendQuery query = VectorQuery({1});
  query.seed = 1;
  EXPECT_THAT(Ask(query),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "seed: got 1, want nothing without select_kind SAMPLE"));
  query.seed = std::nullopt;
  query.with_replacement = true;
  EXPECT_THAT(Ask(query), StatusIs(absl::StatusCode::kInvalidArgument,
                                   HasSubstr("with_replacement: got true")));
  query = SampleQuery(1, 1);
  query.weight_scope = WeightScope::kReturned;
  EXPECT_THAT(Ask(query), StatusIs(absl::StatusCode::kInvalidArgument,
                                   HasSubstr("weight_scope")));
}

}  // namespace
}  // namespace attendant
