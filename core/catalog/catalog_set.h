// All catalogs of a data directory: what a server serves, and what a process
// that links core opens.
#ifndef ATTENDANT_CORE_CATALOG_CATALOG_SET_H_
#define ATTENDANT_CORE_CATALOG_CATALOG_SET_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/base/clock.h"
#include "core/catalog/live_catalog.h"
#include "core/storage/store.h"

namespace attendant {

inline constexpr int kMaxCatalogs = 1000;

// Thread-safe. A catalog that is handed out stays usable after its deletion
// until the last holder lets go.
//
//   auto catalogs = CatalogSet::Open("/var/lib/attendant", {});
//   auto catalog = (*catalogs)->Create("shop", schema, {});
//   (*catalog).catalog->Upsert(items, "");
//   auto answer = Attend(*(*catalog).catalog->snapshot(), query, {});
class CatalogSet {
 public:
  struct Options {
    LiveCatalogOptions catalog;
    const Clock* clock = &Clock::System();
  };
  struct Created {
    std::shared_ptr<LiveCatalog> catalog;
    bool created = false;
  };
  // A text encoder and the key field it serves.
  struct FieldEncoder {
    std::string key_field;
    TextEncoder encoder;
  };

  // Opens every catalog in `directory`. Errors as Store::Open.
  static absl::StatusOr<std::unique_ptr<CatalogSet>> Open(
      const std::string& directory, const Options& options);
  virtual ~CatalogSet() = default;

  // InvalidArgument on a bad name, schema or encoder; AlreadyExists with
  // another schema; ResourceExhausted past kMaxCatalogs. With the same schema
  // (defaults included) the existing one, its encoders untouched.
  virtual absl::StatusOr<Created> Create(
      absl::string_view name, const CatalogSchema& schema,
      std::vector<FieldEncoder> encoders) = 0;
  // NotFound, naming the catalog.
  virtual absl::StatusOr<std::shared_ptr<LiveCatalog>> Get(
      absl::string_view name) const = 0;
  // By name, the first after `after`, at most `limit`.
  virtual std::vector<std::shared_ptr<LiveCatalog>> List(
      absl::string_view after, std::int64_t limit) const = 0;
  // Stores new defaults (temperature, combine_kind, index_kind of each field).
  virtual absl::Status Update(absl::string_view name,
                              std::vector<KeyFieldSchema> key_fields,
                              std::vector<FieldEncoder> encoders) = 0;
  virtual absl::Status Delete(absl::string_view name) = 0;
};

}  // namespace attendant

#endif  // ATTENDANT_CORE_CATALOG_CATALOG_SET_H_
