// Stores three items in a directory, attends over them with the installed
// library, and prints the answer. The exit status is 0 if the answer is right.
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include "core/catalog/live/catalog_set.h"
#include "core/catalog/query/attend.h"

namespace {

int Fail(const absl::Status& status) {
  std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return 1;
}

int Run(const std::string& directory) {
  auto catalogs = attendant::CatalogSet::Open(directory, {});
  if (!catalogs.ok()) return Fail(catalogs.status());
  attendant::CatalogSchema schema;
  schema.key_fields.resize(1);
  schema.key_fields[0].name = "key";
  schema.key_fields[0].dim = 2;
  auto created = (*catalogs)->Create("shop", schema, {});
  if (!created.ok()) return Fail(created.status());

  std::vector<attendant::Item> items(3);
  items[0].id = "east";
  items[0].keys = {{1, 0}};
  items[1].id = "north";
  items[1].keys = {{0, 1}};
  items[2].id = "west";
  items[2].keys = {{-1, 0}};
  auto written = created->catalog->Upsert(items, "");
  if (!written.ok()) return Fail(written.status());

  attendant::AttendQuery query;
  query.query = std::vector<float>{1, 0};
  const auto snapshot = created->catalog->snapshot();
  auto answer = attendant::Attend(*snapshot, query, {});
  if (!answer.ok()) return Fail(answer.status());

  // Logits 1, 0 and -1.
  const double sum = std::exp(1) + 1 + std::exp(-1);
  const double want[] = {std::exp(1) / sum, 1 / sum, std::exp(-1) / sum};
  if (answer->items.size() != 3) return Fail(absl::InternalError("count"));
  for (int i = 0; i < 3; ++i) {
    const attendant::AttendedItem& item = answer->items[i];
    const std::string id(
        snapshot->IdOf(item.address.segment, item.address.row));
    std::printf("%-5s  weight %.4f  logit %2.0f\n", id.c_str(), item.weight,
                item.logit);
    // The logits are floats of magnitude at most 1.
    if (std::abs(item.weight - want[i]) > 1e-6) {
      return Fail(absl::InternalError("weights"));
    }
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 2) return Run(argv[1]);
  std::fprintf(stderr, "usage: consumer EMPTY_DIRECTORY\n");
  return 2;
}
