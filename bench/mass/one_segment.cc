#include "bench/mass/one_segment.h"

#include <utility>

namespace attendant {

Snapshot MakeSnapshot(std::shared_ptr<RowTable> rows,
                      std::unique_ptr<KeyIndex> index,
                      std::vector<AttributeSchema> attributes) {
  const auto row_count = static_cast<RowIndex>(rows->row_count());
  Snapshot snapshot;
  snapshot.catalog_uid = "0123456789abcdef";
  auto schema = std::make_shared<CatalogSchema>();
  // Not AUTO, which would aim for a recall of .99.
  schema->key_fields.push_back(
      {.name = "key", .dim = index->dim(), .index_kind = index->kind()});
  schema->attributes = std::move(attributes);
  snapshot.schema = std::move(schema);
  snapshot.encoders.resize(1);
  snapshot.models.resize(1);
  snapshot.wanted_indexes = {index->kind()};
  auto segment = std::make_shared<Segment>();
  segment->rows = std::move(rows);
  segment->indexes.push_back(std::move(index));
  segment->head_indexes.resize(1);
  snapshot.segments.push_back({.segment = std::move(segment),
                               .row_end = row_count,
                               .live_count = row_count,
                               .live_key_counts = {row_count}});
  return snapshot;
}

}  // namespace attendant
