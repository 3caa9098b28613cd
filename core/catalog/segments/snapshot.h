// An immutable, readable state of a catalog.
#ifndef ATTENDANT_CORE_CATALOG_SEGMENTS_SNAPSHOT_H_
#define ATTENDANT_CORE_CATALOG_SEGMENTS_SNAPSHOT_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "core/attention/models/model.h"
#include "core/attention/softmax/top_k.h"
#include "core/base/bitmap.h"
#include "core/base/clock.h"
#include "core/catalog/rows/row_table.h"
#include "core/encode/text_encoder.h"
#include "core/shortlist/scan/dead_keys.h"
#include "core/storage/records/item.h"

namespace attendant {

// A segment as one snapshot sees it.
struct SegmentView {
  std::shared_ptr<const Segment> segment;
  RowIndex row_end = 0;
  // Deleted or replaced rows; null: none.
  std::shared_ptr<const Bitmap> dead = nullptr;
  // By key field, the keys of `dead` in the field's own index; null if it has
  // no lists. Empty if no row is dead.
  std::vector<std::shared_ptr<const DeadKeys>> dead_keys = {};
  std::int64_t live_count = 0;
  std::vector<std::int64_t> live_key_counts;  // by key field

  std::int64_t dead_count() const { return row_end - live_count; }
  bool IsLive(RowIndex row) const {
    return row < row_end && (dead == nullptr || !dead->Test(row));
  }
};

// The location of an item.
struct RowAddress {
  std::int32_t segment = -1;
  RowIndex row = -1;

  bool operator==(const RowAddress&) const = default;
};

// Immutable and therefore thread-safe without locks. Keeps its memory alive.
struct Snapshot : IdResolver {
  std::string catalog_uid;
  std::int64_t sequence = 0;
  SteadyTime publish_time;  // when it became visible to queries
  // The clock that queries use as the current time; outlives all snapshots.
  const Clock* clock = &Clock::System();
  std::shared_ptr<const CatalogSchema> schema;
  std::vector<std::shared_ptr<const TextEncoder>> encoders;  // by field or null
  // By field: the models that produced the head_indexes of all segments.
  std::vector<NamedModel> models;
  // By field: the wanted kind, never AUTO, even while it is not built yet.
  std::vector<IndexKind> wanted_indexes;
  std::vector<SegmentView> segments;
  // Knowledge about the masses of all segments' trainings. It grows as queries
  // arrive and determines how far guessed masses are trusted (docs/mass.md).
  // Null: a query uses the newest state.
  std::shared_ptr<const KnownMasses> known_masses;
  // Sets known_masses to the current state.
  void TakeKnownMasses();

  std::int64_t item_count() const;
  std::int64_t key_count(int field) const;
  std::optional<RowAddress> Find(absl::string_view id) const;
  absl::string_view IdOf(std::int32_t segment, RowIndex row) const override;
  // Returns the index that answers queries of a field in a segment; the first
  // if there are several heads.
  const KeyIndex& QueriedIndex(std::size_t segment, int field) const;
  // Returns the training that the keys of a field and head use (head -1: the
  // field's own keys): that of the first IVF index. Null if there is none.
  std::shared_ptr<const IvfTraining> TrainingOf(int field, int head) const;
  // Returns the key of a row in a field; empty if it has none.
  std::span<const float> KeyOf(RowAddress address, int field) const {
    return segments[address.segment].segment->indexes[field]->Key(address.row);
  }
};

}  // namespace attendant

#endif  // ATTENDANT_CORE_CATALOG_SEGMENTS_SNAPSHOT_H_
