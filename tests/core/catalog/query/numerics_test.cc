// How far rounding may move an answer, for each kind of score, compared with
// the same formula in doubles. Run once at each kernel level (CMakeLists.txt).
#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "core/kernels/kernels.h"
#include "tests/core/catalog/catalog_fixture.h"
#include "tests/core/catalog/model_twin.h"
#include "tests/support/random_model.h"

namespace attendant {
namespace {

// 2^-24 and 2^-53: the relative errors of one rounding to float and to double.
constexpr double kEpsilon = 0x1p-24;
constexpr double kDoubleEpsilon = 0x1p-53;

constexpr ScoreKind kKinds[] = {ScoreKind::kDot, ScoreKind::kScaledDot,
                                ScoreKind::kCosine};

// The most roundings to float that a term of a dot product passes, in the order
// in which the active kernels add (kernels.h): `width` parallel sums with one
// fused rounding a step; after 64 steps a tree over them, then the sum of such
// blocks. The scalar kernel adds in doubles.
std::int64_t DotRoundings(std::int64_t dim) {
  const KernelLevel level = ActiveKernelLevel();
  if (level == KernelLevel::kScalar) return 1;
  const std::int64_t width = level == KernelLevel::kAvx2 ? 8 : 16;
  const std::int64_t tree = level == KernelLevel::kAvx2 ? 3 : 4;
  const std::int64_t steps = (dim + width - 1) / width;
  return std::min<std::int64_t>(steps, 64) + tree + (steps + 63) / 64;
}

// Returns c(d): a log weight is off by at most c(d) x 2^-24 x |q||k| scale /
// temperature, for the greatest |k| of its scope.
//
// The terms of a dot product sum to at most |q||k| (Cauchy, Schwarz), and each
// passes DotRoundings. The factor scale / temperature is rounded, and so is its
// product: 2 more. COSINE rounds a component of the query, an inverse norm and
// their product: 3 more. A log weight is a logit less log sum exp, which moves
// by at most as much as the logit that moves most: twice. m roundings of 2^-24
// multiply by at most 1 + 1.001 m 2^-24 here.
double C(ScoreKind kind, std::int64_t dim) {
  const std::int64_t roundings =
      DotRoundings(dim) + 2 + (kind == ScoreKind::kCosine ? 3 : 0);
  return 2 * 1.001 * static_cast<double>(roundings);
}

// Error that summing exps in floats adds to a catalog's log partition: each exp
// is off by 2^-21 and by its gap to the greatest logit x 2^-24 (kernels.h), and
// the weighted mean of gaps is at most the entropy, so at most log n.
double CatalogError(std::size_t item_count) {
  return 0x1p-21 + std::log(static_cast<double>(item_count)) * kEpsilon;
}

// Error of logits, their log partition and sums of n exps in doubles.
double DoubleError(std::size_t item_count, double greatest_logit) {
  return 4 * (static_cast<double>(item_count) + greatest_logit) *
         kDoubleEpsilon;
}

double NormOf(const std::vector<float>& vector) { return Norm(vector); }

class NumericsTest : public CatalogFixture {
 protected:
  void Open(ScoreKind kind, const std::vector<Item>& items) {
    disk_ = std::make_shared<FakeDisk>();
    const auto dim = static_cast<std::int64_t>(items[0].keys[0].size());
    OpenCatalog(OneFieldSchema(dim, kind));
    Upsert(items);
  }

  // Returns a query for all items, with weights over `scope`.
  AttendQuery AllOf(const std::vector<float>& vector, double temperature,
                    WeightScope scope = WeightScope::kShortlist) {
    AttendQuery query = VectorQuery(vector);
    query.temperature = temperature;
    query.result_count = 1000;
    query.shortlist_count = 1000;
    query.weight_scope = scope;
    return query;
  }

  std::map<std::string, AttendedItem> ByIdOf(const AttendQuery& query) {
    const auto answer = Ask(query);
    EXPECT_OK(answer);
    std::map<std::string, AttendedItem> by_id;
    if (!answer.ok()) return by_id;
    const std::vector<std::string> ids = IdsOf(*answer);
    for (std::size_t i = 0; i < ids.size(); ++i)
      by_id[ids[i]] = answer->items[i];
    return by_id;
  }

  static ReferenceAnswer Twin(const std::vector<float>& vector,
                              const std::vector<Item>& items, ScoreKind kind,
                              double temperature) {
    ReferenceMatrix keys;
    keys.row_count = static_cast<std::int64_t>(items.size());
    keys.dim = static_cast<std::int64_t>(vector.size());
    for (const Item& item : items) {
      keys.data.insert(keys.data.end(), item.keys[0].begin(),
                       item.keys[0].end());
    }
    return AttendReference(ToDoubles(vector), keys, keys, kind, temperature);
  }

  // |q||k| scale / temperature, for the greatest |k|.
  static double Magnitude(const std::vector<float>& vector,
                          const std::vector<Item>& items, ScoreKind kind,
                          double temperature) {
    double norms = 1;
    if (kind != ScoreKind::kCosine) {
      double greatest = 0;
      for (const Item& item : items) {
        greatest = std::max(greatest, NormOf(item.keys[0]));
      }
      norms = NormOf(vector) * greatest;
    }
    return norms * LogitFactor(kind, static_cast<std::int64_t>(vector.size()),
                               temperature);
  }
};

TEST_F(NumericsTest, LogWeightsAreWithinTheirBound) {
  for (const int dim : {1, 7, 8, 16, 33, 100, 513, 2500}) {
    const std::vector<Item> items = RandomItems(100, dim, 3);
    const std::vector<float> vector = RandomItems(1, dim, 4)[0].keys[0];
    for (const ScoreKind kind : kKinds) {
      Open(kind, items);
      for (const double temperature : {.07, 1., 5.}) {
        const ReferenceAnswer twin = Twin(vector, items, kind, temperature);
        const double magnitude = Magnitude(vector, items, kind, temperature);
        const double bound = C(kind, dim) * kEpsilon * magnitude +
                             DoubleError(items.size(), magnitude);
        for (const WeightScope scope :
             {WeightScope::kShortlist, WeightScope::kCatalog}) {
          SCOPED_TRACE(absl::StrCat(Name(kind), ", dim ", dim, ", temperature ",
                                    temperature, ", scope ",
                                    static_cast<int>(scope)));
          const auto got = ByIdOf(AllOf(vector, temperature, scope));
          ASSERT_EQ(got.size(), items.size());
          for (std::size_t i = 0; i < items.size(); ++i) {
            const double log_weight = twin.logits[i] - twin.log_partition;
            const double weight = got.at(items[i].id).weight;
            if (log_weight < -700) {
              EXPECT_LT(weight, 1e-300);
              continue;
            }
            EXPECT_NEAR(std::log(weight), log_weight,
                        bound + (scope == WeightScope::kCatalog
                                     ? CatalogError(items.size())
                                     : 0));
          }
        }
      }
    }
  }
}

TEST_F(NumericsTest, WeightsAreRightToOneInAHundredThousandWithinTwenty) {
  // Logits of 20 are floats rounded by 2^-20, three times; the rest is for the
  // dot product, at any length.
  for (const int dim : {2, 64, 384, 1024, 2048, 8192}) {
    const std::vector<Item> items = RandomItems(100, dim, 5);
    const std::vector<float> vector = RandomItems(1, dim, 6)[0].keys[0];
    for (const ScoreKind kind : kKinds) {
      Open(kind, items);
      // Scales the greatest logit to 20.
      double greatest = 0;
      for (const double logit : Twin(vector, items, kind, 1).logits) {
        greatest = std::max(greatest, std::abs(logit));
      }
      const double temperature = greatest / 20;
      const ReferenceAnswer twin = Twin(vector, items, kind, temperature);
      for (const WeightScope scope :
           {WeightScope::kShortlist, WeightScope::kCatalog}) {
        SCOPED_TRACE(absl::StrCat(Name(kind), ", dim ", dim));
        const auto got = ByIdOf(AllOf(vector, temperature, scope));
        for (std::size_t i = 0; i < items.size(); ++i) {
          EXPECT_NEAR(got.at(items[i].id).weight, twin.weights[i],
                      1e-5 * twin.weights[i]);
        }
      }
    }
  }
}

TEST_F(NumericsTest, LogitsOfTenThousandGiveFiniteAnswers) {
  // Along the query, against it, and between.
  const std::vector<Item> items = {
      MakeItem("same", {2, 0}), MakeItem("as same", {2, 0}),
      MakeItem("opposite", {-2, 0}), MakeItem("across", {0, 2}),
      MakeItem("near", {1.9f, .2f})};
  for (const ScoreKind kind : kKinds) {
    SCOPED_TRACE(Name(kind));
    Open(kind, items);
    const double norms = kind == ScoreKind::kCosine ? 1 : 4;
    const double temperature = norms * LogitFactor(kind, 2, 1) / 1e4;
    const ReferenceAnswer twin = Twin({2, 0}, items, kind, temperature);
    ASSERT_NEAR(twin.logits[0], 1e4, 1e-6);
    ASSERT_NEAR(twin.logits[2], -1e4, 1e-6);
    for (const WeightScope scope :
         {WeightScope::kShortlist, WeightScope::kReturned,
          WeightScope::kCatalog}) {
      AttendQuery query = AllOf({2, 0}, temperature, scope);
      query.pool_scope = scope;
      ASSERT_OK_AND_ASSIGN(const AttendAnswer answer, Ask(query));
      double sum = 0;
      for (const AttendedItem& item : answer.items) {
        EXPECT_TRUE(std::isfinite(item.logit));
        EXPECT_TRUE(std::isfinite(item.weight));
        sum += item.weight;
      }
      // exp's own error, plus the rounding of logits to floats that the
      // partition and the weight share.
      EXPECT_NEAR(sum, 1, 2 * CatalogError(items.size()));
      EXPECT_NEAR(answer.items[0].weight, .5, 2 * CatalogError(items.size()));
      EXPECT_NEAR(*answer.log_partition, twin.log_partition,
                  C(kind, 2) * kEpsilon * 1e4);
      EXPECT_NEAR(*answer.entropy, std::log(2), 1e-5);
      EXPECT_NEAR(*answer.effective_item_count, 2, 1e-5);
      EXPECT_NEAR(answer.shortlist_mass.value, 1, 1e-5);
      for (const float component : answer.pooled_value->values) {
        EXPECT_TRUE(std::isfinite(component));
      }
      EXPECT_NEAR(answer.pooled_value->values[0], 2, 1e-5);
    }
  }
}

TEST_F(NumericsTest, AllLogitsAtMinusTenThousandAreUniform) {
  // No weight is lost, although exp(-1e4) underflows.
  Open(ScoreKind::kDot, {MakeItem("a", {-100}), MakeItem("b", {-100}),
                         MakeItem("c", {-100}), MakeItem("d", {-100})});
  ASSERT_OK_AND_ASSIGN(const AttendAnswer answer,
                       Ask(AllOf({100}, 1, WeightScope::kCatalog)));
  for (const AttendedItem& item : answer.items) {
    EXPECT_EQ(item.logit, -1e4f);
    // log 4 is rounded at a size of 1e4.
    EXPECT_NEAR(item.weight, .25, .25 * 1e4 * 4 * kDoubleEpsilon);
  }
}

TEST_F(NumericsTest, WeightsSumToOneOverTheirScope) {
  constexpr int kDim = 24;
  constexpr int kCount = 500;
  const std::vector<Item> items = RandomItems(kCount, kDim, 8);
  const std::vector<float> vector = RandomItems(1, kDim, 9)[0].keys[0];
  for (const ScoreKind kind : kKinds) {
    Open(kind, items);
    for (const double temperature : {.01, .3, 1., 100.}) {
      struct Case {
        WeightScope scope;
        std::int64_t shortlist_count;
        std::int64_t result_count;
        double tolerance;
      };
      const double magnitude = Magnitude(vector, items, kind, temperature);
      const double tolerance = DoubleError(kCount, magnitude);
      const Case cases[] = {
          {WeightScope::kReturned, 100, 7, tolerance},
          {WeightScope::kShortlist, 100, 100, tolerance},
          {WeightScope::kCatalog, kCount, kCount,
           tolerance + CatalogError(kCount)},
      };
      for (const Case& test : cases) {
        AttendQuery query = AllOf(vector, temperature, test.scope);
        query.shortlist_count = test.shortlist_count;
        query.result_count = test.result_count;
        ASSERT_OK_AND_ASSIGN(const AttendAnswer answer, Ask(query));
        ASSERT_EQ(answer.items.size(),
                  static_cast<std::size_t>(test.result_count));
        double sum = 0;
        for (const AttendedItem& item : answer.items) sum += item.weight;
        EXPECT_NEAR(sum, 1, test.tolerance)
            << Name(kind) << ", temperature " << temperature << ", scope "
            << static_cast<int>(test.scope);
      }
    }
  }
}

TEST_F(NumericsTest, TwoTemperaturesGiveTwoAnswers) {
  constexpr int kDim = 12;
  const std::vector<Item> items = RandomItems(50, kDim, 10);
  const std::vector<float> vector = RandomItems(1, kDim, 11)[0].keys[0];
  for (const ScoreKind kind : kKinds) {
    SCOPED_TRACE(Name(kind));
    Open(kind, items);
    const auto warm = ByIdOf(AllOf(vector, 2));
    const auto cold = ByIdOf(AllOf(vector, .5));
    const double bound =
        2 * (C(kind, kDim) * kEpsilon * Magnitude(vector, items, kind, .5) +
             DoubleError(items.size(), 1e3));
    double greatest_change = 0;
    for (std::size_t i = 1; i < items.size(); ++i) {
      // At a quarter of the temperature, log weights are four times as far
      // apart.
      const auto gap = [&](const auto& by_id) {
        return std::log(by_id.at(items[i].id).weight /
                        by_id.at(items[0].id).weight);
      };
      EXPECT_NEAR(gap(cold), 4 * gap(warm), 4 * bound);
      greatest_change = std::max(
          greatest_change,
          std::abs(cold.at(items[i].id).weight - warm.at(items[i].id).weight));
    }
    EXPECT_GT(greatest_change, .01);
  }
}

TEST_F(NumericsTest, ShiftingAllLogitsChangesNothing) {
  // Keys of signs all have the same norm, so one more component that is equal
  // in all keys adds the same to every logit, also under COSINE.
  constexpr int kDim = 15;
  std::mt19937 random(12);
  std::vector<Item> items;
  std::vector<Item> longer_items;
  for (int i = 0; i < 60; ++i) {
    std::vector<float> key(kDim);
    for (float& component : key) component = random() % 2 == 0 ? 1 : -1;
    items.push_back(MakeItem(absl::StrCat("item", i), key));
    key.push_back(1);
    longer_items.push_back(MakeItem(absl::StrCat("item", i), key));
  }
  const std::vector<float> vector = RandomItems(1, kDim, 13)[0].keys[0];
  for (const float shift : {-50.f, .5f, 8.f, 1000.f}) {
    std::vector<float> shifted = vector;
    shifted.push_back(shift);
    for (const ScoreKind kind : kKinds) {
      SCOPED_TRACE(absl::StrCat(Name(kind), " by ", shift));
      // The temperature at which the other components keep the same logits.
      double temperature = 1;
      if (kind == ScoreKind::kScaledDot) temperature = std::sqrt(15. / 16);
      if (kind == ScoreKind::kCosine) {
        temperature = NormOf(vector) * std::sqrt(15.) / (NormOf(shifted) * 4);
      }
      const double bound =
          kEpsilon * (C(kind, 15) * Magnitude(vector, items, kind, 1) +
                      C(kind, 16) *
                          Magnitude(shifted, longer_items, kind, temperature)) +
          2 * DoubleError(items.size(), 2e4);
      Open(kind, items);
      const auto before = ByIdOf(AllOf(vector, 1));
      Open(kind, longer_items);
      const auto after = ByIdOf(AllOf(shifted, temperature));
      for (const Item& item : items) {
        EXPECT_NEAR(std::log(after.at(item.id).weight),
                    std::log(before.at(item.id).weight), bound);
      }
    }
  }
}

TEST_F(NumericsTest, PermutingItemsPermutesWeights) {
  constexpr int kDim = 19;
  std::vector<Item> items = RandomItems(300, kDim, 14);
  const std::vector<float> vector = RandomItems(1, kDim, 15)[0].keys[0];
  std::mt19937 random(16);
  for (const ScoreKind kind : kKinds) {
    SCOPED_TRACE(Name(kind));
    Open(kind, items);
    const auto before = ByIdOf(AllOf(vector, .5));
    const auto before_all = ByIdOf(AllOf(vector, .5, WeightScope::kCatalog));
    std::ranges::shuffle(items, random);
    Open(kind, items);
    const auto after = ByIdOf(AllOf(vector, .5));
    const auto after_all = ByIdOf(AllOf(vector, .5, WeightScope::kCatalog));
    for (const Item& item : items) {
      EXPECT_EQ(after.at(item.id).weight, before.at(item.id).weight);
      EXPECT_EQ(after.at(item.id).logit, before.at(item.id).logit);
      // The same exps, summed in another order (see Kernels::SumExps).
      EXPECT_NEAR(after_all.at(item.id).weight, before_all.at(item.id).weight,
                  2.001 * 8 * kEpsilon * before_all.at(item.id).weight);
    }
  }
}

// Weights from models, biases and several heads, compared with doubles.
class ModelNumericsTest : public NumericsTest {
 protected:
  void OpenWith(ScoreKind kind, const AttentionModel& model,
                const std::vector<Item>& items) {
    disk_ = std::make_shared<FakeDisk>();
    CatalogSchema schema = OneFieldSchema(
        static_cast<std::int64_t>(items[0].keys[0].size()), kind);
    schema.key_fields[0].model = {"model", 1};
    models_ = {{{"model", 1}, std::make_shared<const AttentionModel>(model)}};
    OpenCatalog(schema);
    Upsert(items);
  }

  static std::vector<double> TwinLogits(const AttentionModel& model,
                                        ScoreKind kind, std::int64_t head,
                                        const std::vector<float>& vector,
                                        const std::vector<Item>& items,
                                        double factor) {
    std::vector<double> logits;
    for (const Item& item : items) {
      logits.push_back(factor * TwinSimilarity(model, kind, head,
                                               ToDoubles(vector),
                                               ToDoubles(item.keys[0])));
    }
    return logits;
  }

  // Expects the log weights of `query` to be those of `logits`, each of which
  // may be off by `logit_error`.
  void ExpectLogWeights(const AttendQuery& query,
                        const std::vector<Item>& items,
                        const std::vector<double>& logits, double logit_error) {
    const auto got = ByIdOf(query);
    ASSERT_EQ(got.size(), items.size());
    const double log_partition = TwinLogSumExp(logits);
    double greatest = 0;
    for (const double logit : logits) {
      greatest = std::max(greatest, std::abs(logit));
    }
    const double tolerance = 2 * logit_error +
                             DoubleError(items.size(), greatest) +
                             (query.weight_scope == WeightScope::kCatalog
                                  ? CatalogError(items.size())
                                  : 0);
    for (std::size_t i = 0; i < items.size(); ++i) {
      const double log_weight = logits[i] - log_partition;
      if (log_weight < -700) continue;
      EXPECT_NEAR(std::log(got.at(items[i].id).weight), log_weight, tolerance);
    }
  }
};

// Returns the sum of |weight x component|, row by row.
std::vector<double> Sizes(const Matrix& weight,
                          const std::vector<float>& input) {
  std::vector<double> sizes;
  for (std::int64_t r = 0; r < weight.row_count; ++r) {
    double size = 0;
    for (std::int64_t c = 0; c < weight.column_count; ++c) {
      size +=
          std::abs(double{weight.data[r * weight.column_count + c]} * input[c]);
    }
    sizes.push_back(size);
  }
  return sizes;
}

TEST_F(ModelNumericsTest, BilinearLogWeightsAreWithinTheirBound) {
  constexpr int kQueryDim = 24;
  constexpr int kKeyDim = 40;
  RandomFloats random(21);
  const BilinearForm form = {random.Matrix(kQueryDim, kKeyDim)};
  const std::vector<float> vector = random.Vector(kQueryDim);
  const std::vector<Item> items = RandomItems(100, kKeyDim, 22);
  OpenWith(ScoreKind::kBilinear, {form}, items);
  // q W is summed in doubles and rounded once; the rest is a dot product.
  double magnitude = 0;
  for (const Item& item : items) {
    const std::vector<double> sizes = Sizes(form.weight, item.keys[0]);
    double sum = 0;
    for (int i = 0; i < kQueryDim; ++i) sum += std::abs(vector[i]) * sizes[i];
    magnitude = std::max(magnitude, sum);
  }
  const auto roundings = static_cast<double>(1 + DotRoundings(kKeyDim) + 2);
  for (const double temperature : {.2, 1., 4.}) {
    for (const WeightScope scope :
         {WeightScope::kShortlist, WeightScope::kCatalog}) {
      ExpectLogWeights(AllOf(vector, temperature, scope), items,
                       TwinLogits({form}, ScoreKind::kBilinear, 0, vector,
                                  items, 1 / temperature),
                       1.001 * roundings * kEpsilon * magnitude / temperature);
    }
  }
}

TEST_F(ModelNumericsTest, AdditiveLogWeightsAreWithinTheirBound) {
  constexpr int kQueryDim = 24;
  constexpr int kKeyDim = 40;
  for (const int hidden : {1, 37, 1100}) {
    RandomFloats random(23);
    AdditiveNetwork network;
    network.query_weight = random.Matrix(hidden, kQueryDim);
    network.key_weight = random.Matrix(hidden, kKeyDim);
    network.output_weight = random.Vector(hidden);
    const std::vector<float> vector = random.Vector(kQueryDim);
    const std::vector<Item> items = RandomItems(60, kKeyDim, 24);
    OpenWith(ScoreKind::kAdditive, {network}, items);
    // W q and U k are dot products. tanh changes by no more than its argument;
    // it has an error of 2^-21 of its own (kernels.h), and so has its weighted
    // sum with v.
    const std::vector<double> query_sizes = Sizes(network.query_weight, vector);
    double norm = 0;
    for (const float v : network.output_weight) norm += std::abs(v);
    double greatest = 0;
    for (const Item& item : items) {
      const std::vector<double> key_sizes =
          Sizes(network.key_weight, item.keys[0]);
      double sum = 0;
      for (std::size_t j = 0; j < key_sizes.size(); ++j) {
        sum += std::abs(network.output_weight[j]) *
               (static_cast<double>(DotRoundings(kQueryDim)) * query_sizes[j] +
                static_cast<double>(DotRoundings(kKeyDim)) * key_sizes[j]);
      }
      greatest = std::max(greatest, sum);
    }
    const double similarity_error =
        greatest + (8 + static_cast<double>(DotRoundings(hidden)) + 2) * norm;
    for (const double temperature : {.1, 1.}) {
      const std::vector<double> logits = TwinLogits(
          {network}, ScoreKind::kAdditive, 0, vector, items, 1 / temperature);
      for (const WeightScope scope :
           {WeightScope::kShortlist, WeightScope::kCatalog}) {
        ExpectLogWeights(AllOf(vector, temperature, scope), items, logits,
                         1.001 * kEpsilon * similarity_error / temperature);
      }
    }
  }
}

TEST_F(ModelNumericsTest, WeightsAreRightToOneInAHundredThousandWithinTwenty) {
  RandomFloats random(27);
  AdditiveNetwork network;
  network.query_weight = random.Matrix(128, 64);
  network.key_weight = random.Matrix(128, 96);
  network.output_weight = random.Vector(128);
  const std::pair<ScoreKind, AttentionModel> models[] = {
      {ScoreKind::kBilinear, {BilinearForm{random.Matrix(64, 96)}}},
      {ScoreKind::kAdditive, {network}}};
  const std::vector<float> vector = random.Vector(64);
  const std::vector<Item> items = RandomItems(100, 96, 28);
  for (const auto& [kind, model] : models) {
    SCOPED_TRACE(Name(kind));
    OpenWith(kind, model, items);
    double greatest = 0;
    for (const double logit : TwinLogits(model, kind, 0, vector, items, 1)) {
      greatest = std::max(greatest, std::abs(logit));
    }
    const double temperature = greatest / 20;
    const std::vector<double> weights =
        TwinSoftmax(TwinLogits(model, kind, 0, vector, items, 1 / temperature));
    for (const WeightScope scope :
         {WeightScope::kShortlist, WeightScope::kCatalog}) {
      const auto got = ByIdOf(AllOf(vector, temperature, scope));
      for (std::size_t i = 0; i < items.size(); ++i) {
        EXPECT_NEAR(got.at(items[i].id).weight, weights[i], 1e-5 * weights[i]);
      }
    }
  }
}

TEST_F(ModelNumericsTest, MultiHeadWeightsAreWithinTheirBound) {
  RandomFloats random(25);
  MultiHeadProjections heads;
  heads.head_count = 3;
  heads.query = random.Projection(3 * 16, 20);
  heads.key = random.Projection(3 * 16, 28);
  const AttentionModel model = {heads};
  const std::vector<float> vector = random.Vector(20);
  const std::vector<Item> items = RandomItems(80, 28, 26);
  OpenWith(ScoreKind::kScaledDot, model, items);
  // Components of a projection are dot products with a bias added.
  const std::vector<double> query_sizes = Sizes(heads.query.weight, vector);
  double magnitude = 0;
  for (const Item& item : items) {
    const std::vector<double> key_sizes = Sizes(heads.key.weight, item.keys[0]);
    for (std::size_t h = 0; h < 3; ++h) {
      double sum = 0;
      for (std::size_t d = h * 16; d < (h + 1) * 16; ++d) {
        sum += (query_sizes[d] + std::abs(heads.query.bias[d])) *
               (key_sizes[d] + std::abs(heads.key.bias[d]));
      }
      magnitude = std::max(magnitude, sum);
    }
  }
  const auto roundings = static_cast<double>(
      DotRoundings(20) + 1 + DotRoundings(28) + 1 + DotRoundings(16) + 2);
  for (const double temperature : {.5, 3.}) {
    const double factor = LogitFactor(ScoreKind::kScaledDot, 16, temperature);
    std::vector<double> weights(items.size());
    for (std::int64_t h = 0; h < 3; ++h) {
      const std::vector<double> head_weights = TwinSoftmax(
          TwinLogits(model, ScoreKind::kScaledDot, h, vector, items, factor));
      for (std::size_t i = 0; i < items.size(); ++i) {
        weights[i] += head_weights[i] / 3;
      }
    }
    // A mean of weights has at most the relative error of the worst of them.
    const double error =
        std::expm1(2 * 1.001 * roundings * kEpsilon * magnitude * factor +
                   CatalogError(items.size()) + 1e-12);
    const auto got = ByIdOf(AllOf(vector, temperature, WeightScope::kCatalog));
    double sum = 0;
    for (std::size_t i = 0; i < items.size(); ++i) {
      EXPECT_NEAR(got.at(items[i].id).weight, weights[i], error * weights[i]);
      sum += got.at(items[i].id).weight;
    }
    EXPECT_NEAR(sum, 1, CatalogError(items.size()) + 1e-12);
  }
}

class BiasNumericsTest : public NumericsTest {
 protected:
  void OpenBiased(ScoreKind kind, const std::vector<Item>& items) {
    disk_ = std::make_shared<FakeDisk>();
    CatalogSchema schema = OneFieldSchema(
        static_cast<std::int64_t>(items[0].keys[0].size()), kind);
    schema.attributes = {{"bias", AttributeType::kDouble}};
    OpenCatalog(schema);
    Upsert(items);
  }

  AttendQuery Biased(AttendQuery query) {
    query.biases = {{"bias", std::nullopt, std::nullopt}};
    return query;
  }
};

TEST_F(BiasNumericsTest, BiasesAddAnErrorOfTheirSize) {
  constexpr int kDim = 33;
  std::vector<Item> items = RandomItems(100, kDim, 31);
  const std::vector<float> vector = RandomItems(1, kDim, 32)[0].keys[0];
  std::mt19937 random(33);
  for (const double size : {.1, 30., 1e4}) {
    std::uniform_real_distribution<double> bias(-size, size);
    for (Item& item : items) item.attributes = {{0, bias(random)}};
    for (const ScoreKind kind : kKinds) {
      SCOPED_TRACE(absl::StrCat(Name(kind), ", biases to ", size));
      OpenBiased(kind, items);
      std::vector<double> logits = Twin(vector, items, kind, 1).logits;
      for (std::size_t i = 0; i < items.size(); ++i) {
        logits[i] += std::get<double>(items[i].attributes[0].second);
      }
      const double log_partition = TwinLogSumExp(logits);
      const auto got = ByIdOf(Biased(AllOf(vector, 1)));
      // One more rounding, of the sum: proportional to the size of both parts.
      const double magnitude = Magnitude(vector, items, kind, 1);
      const double bound =
          kEpsilon * ((C(kind, kDim) + 2.002) * magnitude + 2.002 * size) +
          DoubleError(items.size(), magnitude + size);
      for (std::size_t i = 0; i < items.size(); ++i) {
        const double weight = got.at(items[i].id).weight;
        EXPECT_TRUE(std::isfinite(weight));
        const double log_weight = logits[i] - log_partition;
        if (log_weight < -700) continue;
        EXPECT_NEAR(std::log(weight), log_weight, bound);
      }
    }
  }
}

TEST_F(BiasNumericsTest, OneBiasForAllChangesNothing) {
  constexpr int kDim = 12;
  std::vector<Item> items = RandomItems(70, kDim, 34);
  const std::vector<float> vector = RandomItems(1, kDim, 35)[0].keys[0];
  for (const double shift : {-1e4, -.3, 200.}) {
    for (Item& item : items) item.attributes = {{0, shift}};
    for (const ScoreKind kind : kKinds) {
      SCOPED_TRACE(absl::StrCat(Name(kind), " by ", shift));
      OpenBiased(kind, items);
      const auto before = ByIdOf(AllOf(vector, 1));
      const auto after = ByIdOf(Biased(AllOf(vector, 1)));
      const double magnitude = Magnitude(vector, items, kind, 1);
      // The two differ only by the rounding of the shifted sums.
      const double bound =
          2.002 * kEpsilon * (magnitude + std::abs(shift)) +
          2 * DoubleError(items.size(), magnitude + std::abs(shift));
      for (const Item& item : items) {
        EXPECT_NE(after.at(item.id).logit, before.at(item.id).logit);
        EXPECT_NEAR(std::log(after.at(item.id).weight),
                    std::log(before.at(item.id).weight), bound);
      }
    }
  }
}

TEST_F(NumericsTest, ProbabilitiesOfASampleAreTheDefinitions) {
  constexpr int kDim = 33;
  constexpr int kDraws = 12;
  const std::vector<Item> items = RandomItems(50, kDim, 36);
  const std::vector<float> vector = RandomItems(1, kDim, 37)[0].keys[0];
  for (const ScoreKind kind : kKinds) {
    Open(kind, items);
    const double temperature = kind == ScoreKind::kCosine ? .2 : 2;
    const ReferenceAnswer twin = Twin(vector, items, kind, temperature);
    std::map<std::string, double> logits;
    for (std::size_t i = 0; i < items.size(); ++i) {
      logits[items[i].id] = twin.logits[i];
    }
    const double magnitude = Magnitude(vector, items, kind, temperature);
    const double bound = C(kind, kDim) * kEpsilon * magnitude +
                         2 * DoubleError(items.size(), magnitude);
    for (const bool with_replacement : {false, true}) {
      SCOPED_TRACE(
          absl::StrCat(Name(kind), ", with replacement ", with_replacement));
      AttendQuery query = AllOf(vector, temperature, WeightScope::kCatalog);
      query.select_kind = SelectKind::kSample;
      query.result_count = kDraws;
      query.with_replacement = with_replacement;
      query.seed = 5;
      ASSERT_OK_AND_ASSIGN(const AttendAnswer answer, Ask(query));
      ASSERT_EQ(answer.items.size(), kDraws);
      const std::vector<std::string> ids = IdsOf(answer);
      std::map<std::string, double> left = logits;
      double log_probability = 0;
      for (int d = 0; d < kDraws; ++d) {
        std::vector<double> left_logits;
        for (const auto& [id, logit] : left) left_logits.push_back(logit);
        const double log_weight =
            logits.at(ids[d]) - TwinLogSumExp(left_logits);
        log_probability += log_weight;
        const AttendedItem& item = answer.items[d];
        EXPECT_NEAR(*item.log_weight, log_weight, bound);
        EXPECT_EQ(item.log_inclusion_given_threshold.has_value(),
                  !with_replacement);
        if (with_replacement) continue;
        ASSERT_EQ(left.erase(ids[d]), 1u) << "drawn twice";
        // The slope of 1 - exp(-exp(x)) is below .37.
        EXPECT_NEAR(
            std::exp(*item.log_inclusion_given_threshold),
            -std::expm1(-std::exp(logits.at(ids[d]) - twin.log_partition -
                                  *answer.slate->kappa)),
            bound + 1e-12);
      }
      EXPECT_NEAR(answer.slate->log_probability, log_probability,
                  kDraws * bound);
    }
  }
}

}  // namespace
}  // namespace attendant
