#include "client/commands/administration/catalog_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/parse_proto.h"

namespace attendant {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

v1::Catalog Points() {
  return Parse<v1::Catalog>(R"pb(
    name: "points"
    schema { key_fields { name: "key" dimension: 2 } }
    sequence: 5
    create_time { seconds: 1769860800 }
    indexes { key_field: "key" active_kind: INDEX_KIND_FLAT training: true }
    memory { key_bytes: 2048 }
  )pb");
}

TEST(CatalogTextTest, AnIndexInTheMakingSaysHowExactAnswersAre) {
  v1::Catalog catalog = Points();
  EXPECT_THAT(DescribeCatalog(catalog, {}),
              HasSubstr("Index of key: flat, building an index; until it is "
                        "ready answers are exact\n"));
  catalog.mutable_indexes(0)->set_active_kind(v1::INDEX_KIND_IVF);
  EXPECT_THAT(DescribeCatalog(catalog, {}),
              HasSubstr("Index of key: ivf, building another\n"));
}

TEST(CatalogTextTest, CountsWritesAndHasTimesOfRfc3339) {
  EXPECT_THAT(DescribeCatalog(Points(), {}),
              HasSubstr("created 2026-01-31T12:00:00Z, 5 writes, uid "));
}

TEST(CatalogTextTest, MemoryIsToldFromTheFirstWriteOn) {
  v1::Catalog catalog = Points();
  EXPECT_THAT(DescribeCatalog(catalog, {}),
              HasSubstr("keys    2 KiB  100.0 %"));
  catalog.set_sequence(0);
  EXPECT_THAT(DescribeCatalog(catalog, {}), Not(HasSubstr("100.0 %")));
}

}  // namespace
}  // namespace attendant
