// Live catalogs whose item ids and merges a test inspects.
#ifndef ATTENDANT_TESTS_CORE_CATALOG_LIVE_LIVE_CATALOG_FIXTURE_H_
#define ATTENDANT_TESTS_CORE_CATALOG_LIVE_LIVE_CATALOG_FIXTURE_H_

#include <set>
#include <string>

#include "absl/time/time.h"
#include "tests/core/catalog/catalog_fixture.h"

namespace attendant {

class LiveCatalogTest : public CatalogFixture {
 protected:
  // Item ids of the snapshot, each repeated once per live row.
  std::multiset<std::string> LiveIds() {
    std::multiset<std::string> ids;
    const auto snapshot = catalog_->snapshot();
    for (const SegmentView& view : snapshot->segments) {
      for (RowIndex row = 0; row < view.row_end; ++row) {
        if (view.IsLive(row)) ids.emplace(view.segment->rows->Id(row));
      }
    }
    return ids;
  }
};

class LiveCatalogMergeTest : public LiveCatalogTest {
 protected:
  void OpenIvf() {
    CatalogSchema schema = OneFieldSchema(4);
    schema.key_fields[0].index_kind = IndexKind::kIvf;
    LiveCatalogOptions options;
    // Merges run only when a test waits for them.
    options.settle_time = absl::Hours(1);
    OpenCatalog(schema, options);
  }
};

}  // namespace attendant

#endif  // ATTENDANT_TESTS_CORE_CATALOG_LIVE_LIVE_CATALOG_FIXTURE_H_
