// Answers a query over three items with the installed library. Exit status 0 if
// the answer is right.
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
  auto answer = attendant::Attend(*created->catalog->snapshot(), query, {});
  if (!answer.ok()) return Fail(answer.status());

  // Logits 1, 0 and -1.
  const double sum = std::exp(1) + 1 + std::exp(-1);
  const double want[] = {std::exp(1) / sum, 1 / sum, std::exp(-1) / sum};
  if (answer->items.size() != 3) return Fail(absl::InternalError("count"));
  for (int i = 0; i < 3; ++i) {
    // The logits are floats of magnitude at most 1.
    if (std::abs(answer->items[i].weight - want[i]) > 1e-6) {
      return Fail(absl::InternalError("weights"));
    }
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) { return argc == 2 ? Run(argv[1]) : 2; }
