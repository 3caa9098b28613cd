// Queries that no index can serve: every key is scored, whatever the recall.
#include "tests/core/catalog/catalog_fixture.h"
#include "tests/support/random_model.h"

namespace attendant {
namespace {

class EveryKeyTest : public CatalogFixture {
 protected:
  void SetUp() override {
    CatalogSchema schema = OneFieldSchema(16);
    schema.key_fields[0].index_kind = IndexKind::kIvf;
    schema.attributes.push_back({"boost", AttributeType::kDouble});
    OpenCatalog(schema);
    RandomFloats random(5);
    std::vector<Item> items;
    for (int i = 0; i < 6000; ++i) {
      items.push_back(MakeItem("i" + std::to_string(i), random.Vector(16)));
    }
    items.push_back(MakeItem("far", std::vector<float>(16, -1)));
    items.back().attributes.emplace_back(0, 1000.0);
    Upsert(items);
    catalog_->AwaitIndexes();
  }
};
TEST_F(EveryKeyTest, ABiasIsKnownToNoIndex) {
  AttendQuery query = VectorQuery(std::vector<float>(16, 1));
  query.result_count = 3;
  query.recall = 0.5;
  query.biases.emplace_back().attribute = "boost";
  ASSERT_OK_AND_ASSIGN(const AttendAnswer answer, Ask(query));
  EXPECT_EQ(IdsOf(answer)[0], "far");
  EXPECT_TRUE(answer.results_exact);
  EXPECT_EQ(answer.scored_count, 6001);
}

TEST_F(EveryKeyTest, AllowedItemsAreScoredExactly) {
  AttendQuery query = VectorQuery(std::vector<float>(16, 1));
  query.result_count = 3;
  query.recall = 0.5;
  query.allow_list.emplace();
  for (int i = 0; i < 5500; ++i)
    query.allow_list->push_back("i" + std::to_string(i));
  ASSERT_OK_AND_ASSIGN(const AttendAnswer answer, Ask(query));
  EXPECT_TRUE(answer.results_exact);
  EXPECT_EQ(answer.scored_count, 5500);
}

}  // namespace
}  // namespace attendant
