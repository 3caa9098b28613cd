#include "service/catalog_metrics.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "core/base/clock.h"
#include "core/base/memory_parts.h"
#include "core/catalog/live/live_catalog.h"
#include "core/catalog/segments/snapshot.h"
#include "core/catalog/segments/snapshot_memory.h"
#include "core/storage/records/store.h"

namespace attendant {
namespace {

void AddMemory(const MemoryParts& parts, const std::string& catalog,
               MetricPage& page) {
  const std::pair<absl::string_view, std::int64_t> kParts[] = {
      {"keys", parts.keys},
      {"codes", parts.codes},
      {"index", parts.index},
      {"attributes", parts.attributes},
      {"values", parts.values},
      {"ids", parts.ids},
      {"tombstones", parts.tombstones},
      {"encoders", parts.encoders},
      {"database", parts.database}};
  for (const auto& [part, bytes] : kParts) {
    page.AddGauge("attendant_catalog_memory_bytes",
                  "Memory used by a catalog, by purpose, in bytes.",
                  static_cast<double>(bytes),
                  {{"catalog", catalog}, {"part", std::string(part)}});
  }
  page.AddGauge("attendant_catalog_mapped_bytes",
                "Size of the keys a catalog maps from files, in bytes; the "
                "kernel caches them in free memory.",
                static_cast<double>(parts.mapped), {{"catalog", catalog}});
}

void AddStore(const StoreFigures& figures, const std::string& catalog,
              MetricPage& page) {
  const auto gauge = [&](absl::string_view metric, absl::string_view help,
                         std::int64_t value) {
    page.AddGauge(metric, help, static_cast<double>(value),
                  {{"catalog", catalog}});
  };
  gauge("attendant_rocksdb_table_bytes",
        "Size of the tables of a catalog's database on disk, in bytes.",
        figures.table_bytes);
  gauge("attendant_rocksdb_level0_tables",
        "Level-0 tables of a catalog's database: flushed, not yet compacted.",
        figures.level0_table_count);
  gauge("attendant_rocksdb_compaction_backlog_bytes",
        "Estimated bytes that compactions of a catalog's database have yet to "
        "rewrite.",
        figures.compaction_backlog_bytes);
  gauge("attendant_rocksdb_background_errors",
        "Failed flushes and compactions of a catalog's database since it was "
        "opened.",
        figures.background_error_count);
  gauge("attendant_rocksdb_writes_stopped",
        "1 while writes to a catalog's database wait for a flush or "
        "compaction.",
        figures.writes_stopped);
}

void AddCatalog(const LiveCatalog& catalog, MetricPage& page) {
  const std::string name = catalog.name();
  const auto gauge = [&](absl::string_view metric, absl::string_view help,
                         double value) {
    page.AddGauge(metric, help, value, {{"catalog", name}});
  };
  const auto snapshot = catalog.snapshot();
  std::int64_t row_count = 0;
  std::int64_t dead_count = 0;
  for (const SegmentView& view : snapshot->segments) {
    row_count += view.row_end;
    dead_count += view.dead_count();
  }
  gauge("attendant_catalog_items", "Items in a catalog.",
        static_cast<double>(snapshot->item_count()));
  gauge("attendant_catalog_segments", "Segments in a catalog.",
        static_cast<double>(snapshot->segments.size()));
  gauge("attendant_catalog_tombstone_ratio",
        "Share of a catalog's rows that are deleted or replaced and await a "
        "merge.",
        row_count == 0
            ? 0
            : static_cast<double>(dead_count) / static_cast<double>(row_count));
  gauge("attendant_catalog_sequence",
        "Sequence number of the last write visible to queries of a catalog.",
        static_cast<double>(snapshot->sequence));
  gauge("attendant_catalog_waiting_writes",
        "Writes of a catalog that wait or are being synced.",
        catalog.waiting_write_count());
  const std::vector<IndexState> indexes = catalog.index_states();
  gauge("attendant_catalog_index_training",
        "1 while an index of a catalog is being built or waits to be built.",
        std::ranges::any_of(
            indexes, [](const IndexState& index) { return index.training; }));
  gauge("attendant_catalog_index_build_failed",
        "1 if the last index build of a catalog failed or was postponed.",
        !catalog.merge_status().ok());
  gauge("attendant_catalog_snapshot_age_seconds",
        "Time since a catalog's items or indexes last changed, in seconds.",
        absl::ToDoubleSeconds(TimeSince(snapshot->publish_time)));
  const StoreFigures figures = catalog.store_figures();
  MemoryParts parts = SnapshotMemory(*snapshot);
  parts.database = figures.memory_bytes();
  AddMemory(parts, name, page);
  AddStore(figures, name, page);
}

}  // namespace

void AddCatalogMetrics(const CatalogSet& catalogs,
                       const absl::StatusOr<std::uint64_t>& free_disk_bytes,
                       MetricPage& page) {
  const auto list = catalogs.List("", kMaxCatalogs);
  page.AddGauge("attendant_catalogs", "Catalogs served.",
                static_cast<double>(list.size()));
  page.AddGauge("attendant_damaged",
                "Catalogs and aliases that can't be served because they are "
                "damaged or could not be opened.",
                static_cast<double>(catalogs.damages().size()));
  const CatalogSet::MemoryUse memory = catalogs.memory_use();
  const auto bytes = [&](absl::string_view name, absl::string_view help,
                         std::int64_t value) {
    page.AddGauge(name, help, static_cast<double>(value));
  };
  bytes("attendant_memory_limit_bytes",
        "Memory limit of the process (--memory-limit), in bytes; 0: unlimited.",
        memory.budget.limit_bytes);
  bytes("attendant_memory_used_bytes",
        "Memory compared with the limit, in bytes: the greater of the memory "
        "counted by catalogs and models and the memory held by the process.",
        memory.budget.used_bytes);
  bytes("attendant_memory_counted_bytes",
        "Memory counted by catalogs and models, in bytes.",
        memory.budget.counted_bytes);
  bytes("attendant_rocksdb_block_cache_bytes",
        "Size of the block cache shared by all catalogs, in bytes.",
        memory.cache_bytes);
  bytes("attendant_rocksdb_write_buffer_bytes",
        "Size of the write buffers of all catalogs, in bytes.",
        memory.write_buffer_bytes);
  if (free_disk_bytes.ok()) {
    page.AddGauge("attendant_data_disk_free_bytes",
                  "Space available to the server on the disk of the data "
                  "directory, in bytes; near 0 writes are refused.",
                  static_cast<double>(*free_disk_bytes));
  }
  for (const auto& catalog : list) AddCatalog(*catalog, page);
}

}  // namespace attendant
