// Restores a LiveCatalog from the files of its segments, or from its items.
#include <algorithm>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "core/base/fail_point.h"
#include "core/base/status.h"
#include "core/catalog/live/live_catalog.h"
#include "core/catalog/segments/dead_rows.h"
#include "core/catalog/segments/head_keys.h"
#include "core/catalog/segments/segment_files.h"

namespace attendant {
namespace {

constexpr absl::string_view kKeysInMemory = "keys that can't go to files";

// Loads segments. If files for keys cannot be created, for example on a full
// disk, the keys are kept in memory, provided `memory` (null: unlimited) has
// room, and keys_in_memory says why.
absl::StatusOr<std::optional<SegmentFiles::Loaded>> LoadFiles(
    const Snapshot& empty, MemoryBudget* memory, SegmentFiles& files,
    absl::Status& keys_in_memory) {
  auto loaded = files.Load(empty);
  const auto& fields = empty.schema->key_fields;
  // Other read errors would only occur again.
  if (loaded.ok() || absl::IsDataLoss(loaded.status()) ||
      std::ranges::none_of(fields, [](const KeyFieldSchema& field) {
        return field.keys_on_disk;
      })) {
    return loaded;
  }
  ATTENDANT_ASSIGN_OR_RETURN(
      const MemoryBudget::Account room,
      MemoryBudget::ReserveIn(memory, kKeysInMemory, files.segment_bytes()));
  auto in_memory = files.Load(empty, SegmentFiles::KeyPlace::kMemory);
  if (in_memory.ok()) keys_in_memory = loaded.status();
  return in_memory;
}

}  // namespace

absl::Status LiveCatalog::LoadItems() {
  segment_files_ = std::make_unique<SegmentFiles>(store_->segment_directory(),
                                                  &store_->scratch_files());
  auto next = std::make_shared<Snapshot>(*current_);
  absl::StatusOr<bool> loaded = LoadSegments(*next);
  if (!loaded.ok() || !*loaded) {
    recovery_ = {.files_not_used = loaded.status()};
    growing_ = {};
    // Files that cannot be read now, for lack of file handles or permissions,
    // may be intact. They do no harm until they are written again.
    if (loaded.ok() || absl::IsDataLoss(loaded.status())) {
      if (!loaded.ok()) ATTENDANT_FAIL_POINT("recovery.before_clear");
      // Files that cannot be removed stay too, like those that cannot be read.
      saves_.SetStatus(segment_files_->Clear());
      if (!loaded.ok()) ATTENDANT_FAIL_POINT("recovery.after_clear");
    }
    log_begin_ = store_->sequence();
    logged_change_count_ = 0;
    next = std::make_shared<Snapshot>(*current_);
    absl::Status moved;
    ATTENDANT_RETURN_IF_ERROR(store_->Scan("", [&](const Item& item) {
      mutex_.AssertHeld();
      AppendRow(*next, item);
      moved = MoveLoadedKeys(*next);
      return moved.ok();
    }));
    ATTENDANT_RETURN_IF_ERROR(moved);
  }
  next->sequence = store_->sequence();
  assigned_sequence_ = next->sequence;
  growing_.AssignLists();
  next->TakeKnownMasses();
  Publish(std::move(next));
  if (Plan(/*settled=*/true).needed()) ScheduleMerge(absl::ZeroDuration());
  ScheduleLearning();
  return absl::OkStatus();
}

absl::StatusOr<bool> LiveCatalog::LoadSegments(Snapshot& next) {
  ATTENDANT_ASSIGN_OR_RETURN(
      std::optional<SegmentFiles::Loaded> loaded,
      LoadFiles(*current_, options_.memory, *segment_files_,
                recovery_.keys_in_memory));
  if (!loaded.has_value()) return false;
  if (loaded->sequence > store_->sequence()) {
    return absl::DataLossError(
        absl::StrCat("its segments are of write ", loaded->sequence,
                     ", and its database is of write ", store_->sequence()));
  }
  next.segments = std::move(loaded->segments);
  for (std::size_t f = 0; f < next.wanted_indexes.size(); ++f) {
    if (next.segments.empty()) break;
    // AUTO keeps the existing index.
    next.wanted_indexes[f] = next.QueriedIndex(0, static_cast<int>(f)).kind();
  }
  recovery_.segment_count = static_cast<std::int64_t>(next.segments.size());
  recovery_.row_count = next.item_count();
  ATTENDANT_FAIL_POINT("recovery.before_replay");
  absl::flat_hash_set<std::string> changed;
  ATTENDANT_RETURN_IF_ERROR(
      store_->ScanChanges(loaded->sequence, [&](absl::string_view id) {
        changed.emplace(id);
        return true;
      }));
  DeadRows dead;
  for (const std::string& id : changed) dead.Kill(next, id);
  next.sequence = loaded->sequence + 1;
  constexpr std::size_t kBatchItems = 256;
  const std::vector<absl::string_view> ids(changed.begin(), changed.end());
  for (std::size_t begin = 0; begin < ids.size(); begin += kBatchItems) {
    ATTENDANT_RETURN_IF_ERROR(
        store_->Get(std::span(ids).subspan(
                        begin, std::min(kBatchItems, ids.size() - begin)),
                    [&](std::size_t, const std::optional<StoredItem>& stored) {
                      mutex_.AssertHeld();
                      if (stored.has_value()) AppendRow(next, *stored);
                      return absl::OkStatus();
                    }));
  }
  recovery_.replayed_count = static_cast<std::int64_t>(changed.size());
  logged_change_count_ = recovery_.replayed_count;
  log_begin_ = loaded->sequence;
  ATTENDANT_FAIL_POINT("recovery.after_replay");
  return true;
}

absl::Status LiveCatalog::MoveLoadedKeys(const Snapshot& next) {
  if (!growing_.is_full()) return absl::OkStatus();
  for (std::size_t f = 0; f < next.schema->key_fields.size(); ++f) {
    const KeyFieldSchema& field = next.schema->key_fields[f];
    if (!field.keys_on_disk ||
        next.key_count(static_cast<int>(f)) < options_.auto_ivf_min_count) {
      continue;
    }
    const IndexKind wanted = field.index_kind == IndexKind::kAuto
                                 ? IndexKind::kIvf
                                 : field.index_kind;
    const AttentionModel* model = next.models[f].model.get();
    std::vector<FlatIndex*> indexes;
    if (MayKeepKeysOnDisk(KeyIndexKind(model, wanted))) {
      indexes.push_back(growing_.index(f).get());
    }
    if (MayKeepKeysOnDisk(HeadIndexKind(model, wanted))) {
      for (const auto& index : growing_.head_indexes(f)) {
        indexes.push_back(index.get());
      }
    }
    for (FlatIndex* const index : indexes) {
      const absl::Status status = index->MoveKeys(store_->scratch_files());
      if (status.ok()) continue;
      recovery_.keys_in_memory = status;
      // Reserves for as many keys again, which come next, and twice as many
      // while segments double.
      if (const absl::Status memory =
              MemoryBudget::ReserveIn(options_.memory, kKeysInMemory,
                                      2 * index->memory_bytes())
                  .status();
          !memory.ok()) {
        return PrefixField(memory, absl::StrCat(status.message(), "; "));
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace attendant
