// Writes the data directory of golden_test: make_golden DIRECTORY. Run it once
// for each format that a release writes.
#include <cstdio>

#include "core/base/long_work.h"
#include "core/base/status.h"
#include "tests/durability/golden.h"

namespace attendant {
namespace {

absl::Status WriteGolden(const std::string& directory) {
  {
    ATTENDANT_ASSIGN_OR_RETURN(const auto set, CatalogSet::Open(directory, {}));
    ATTENDANT_ASSIGN_OR_RETURN(
        const auto created,
        set->Create(kGoldenCatalog, TestRecord().schema, {}));
    ATTENDANT_RETURN_IF_ERROR(
        created.catalog->Upsert(GoldenItems(0, kGoldenItems / 2), "first")
            .status());
    for (const int version : {1, 2}) {
      ATTENDANT_RETURN_IF_ERROR(
          set->models()
              .Create(kGoldenModel, TestModel("", version).model, {})
              .status());
    }
    ATTENDANT_RETURN_IF_ERROR(set->DeleteModel({kGoldenModel, 1}));
  }
  ATTENDANT_ASSIGN_OR_RETURN(const auto set, CatalogSet::Open(directory, {}));
  ATTENDANT_ASSIGN_OR_RETURN(const auto catalog, set->Get(kGoldenCatalog));
  ATTENDANT_RETURN_IF_ERROR(
      catalog->Upsert(GoldenItems(kGoldenItems / 2, kGoldenItems), "second")
          .status());
  // Writes the segments' files, which do not contain the third write.
  catalog->AwaitIndexes();
  ATTENDANT_RETURN_IF_ERROR(catalog->save_status());
  ATTENDANT_RETURN_IF_ERROR(catalog->Delete(GoldenDeletes(), "third").status());
  ATTENDANT_RETURN_IF_ERROR(
      set->SetAlias(kGoldenAlias, kGoldenCatalog, std::nullopt).status());
  LongWork work;
  return set->CreateSnapshot(kGoldenCatalog, kGoldenSnapshot, work).status();
}

}  // namespace
}  // namespace attendant

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const absl::Status status = attendant::WriteGolden(argv[1]);
  if (!status.ok()) fprintf(stderr, "%s\n", status.ToString().c_str());
  return status.ok() ? 0 : 1;
}
