// A catalog whose keys are projected by the heads of a model, and a slow twin
// of its answers.
#ifndef ATTENDANT_TESTS_CORE_CATALOG_QUERY_HEADS_FIXTURE_H_
#define ATTENDANT_TESTS_CORE_CATALOG_QUERY_HEADS_FIXTURE_H_

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/core/catalog/catalog_fixture.h"
#include "tests/core/catalog/model_twin.h"
#include "tests/support/random_model.h"

namespace attendant {

class ModelHeadsTest : public CatalogFixture {
 protected:
  static NamedModel Named(AttentionModel model, std::int64_t version = 1) {
    const float key_limit = KeyLimit(model);
    return {{"model", version},
            std::make_shared<const AttentionModel>(std::move(model)),
            key_limit};
  }

  // Items with keys [4] and values [6], as RandomMultiHeadModel takes them.
  static std::vector<Item> ItemsForModel(int count) {
    RandomFloats random(99);
    std::vector<Item> items;
    for (int i = 0; i < count; ++i) {
      items.push_back(MakeItem("item" + std::to_string(i), random.Vector(4),
                               random.Vector(6)));
    }
    return items;
  }

  void Open(ScoreKind kind, int item_count = 40) {
    CatalogSchema schema = OneFieldSchema(4, kind);
    schema.value_dim = 6;
    models_ = {model_};
    schema.key_fields[0].model = model_.name;
    OpenCatalog(schema);
    items_ = ItemsForModel(item_count);
    Upsert(items_);
  }

  AttendQuery Query() const {
    AttendQuery query = VectorQuery(vector_);
    query.result_count = 10;
    query.temperature = 0.3;
    query.include_head_weights = true;
    return query;
  }

  // Returns each head's softmax over `items`.
  std::vector<Doubles> TwinWeights(ScoreKind kind,
                                   const std::vector<Item>& items,
                                   double temperature = 0.3) const {
    const double scale = kind == ScoreKind::kScaledDot ? 1 / std::sqrt(3.0) : 1;
    std::vector<Doubles> weights;
    for (std::int64_t h = 0; h < 2; ++h) {
      Doubles logits;
      for (const Item& item : items) {
        logits.push_back(TwinSimilarity(*model_.model, kind, h,
                                        ToDoubles(vector_),
                                        ToDoubles(item.keys[0])) *
                         scale / temperature);
      }
      weights.push_back(TwinSoftmax(logits));
    }
    return weights;
  }

  // Concatenates each head's W_V (sum of weight x value) + b_V and applies W_O.
  Doubles TwinOutput(const std::vector<Doubles>& weights,
                     const std::vector<Item>& items) const {
    const MultiHeadProjections& heads = *model_.model->multi_head();
    Doubles joined;
    for (std::int64_t h = 0; h < heads.head_count; ++h) {
      Doubles pooled(2);
      for (std::size_t i = 0; i < items.size(); ++i) {
        // The twin applies W_V before pooling, the engine after it; the result
        // is the same.
        const Doubles value =
            TwinPart(TwinProject(*heads.value, ToDoubles(items[i].value)),
                     heads.head_count, h);
        for (std::size_t d = 0; d < 2; ++d) {
          pooled[d] += weights[h][i] * value[d];
        }
      }
      joined.insert(joined.end(), pooled.begin(), pooled.end());
    }
    return TwinProject(*heads.output, joined);
  }

  int IndexOf(const std::string& id) const { return std::stoi(id.substr(4)); }

  NamedModel model_ = Named(RandomMultiHeadModel(5));
  std::vector<float> vector_ = RandomFloats(17).Vector(5);
  std::vector<Item> items_;
};

}  // namespace attendant

#endif  // ATTENDANT_TESTS_CORE_CATALOG_QUERY_HEADS_FIXTURE_H_
