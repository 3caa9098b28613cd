// Writes of a LiveCatalog: their checks, and how concurrent writes share one
// synced write of the store.
#include <algorithm>
#include <exception>
#include <new>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "core/base/fail_point.h"
#include "core/base/status.h"
#include "core/catalog/live/live_catalog.h"
#include "core/catalog/segments/dead_rows.h"
#include "core/catalog/segments/segment_files.h"
#include "core/catalog/segments/snapshot_memory.h"
#include "core/catalog/writes/matching_ids.h"
#include "core/catalog/writes/write_checks.h"
#include "core/catalog/writes/write_fingerprint.h"

namespace attendant {
namespace {

// The limit of the items of writes that share one store write, unless the first
// alone exceeds it: later writes wait as long as the disk takes.
constexpr std::size_t kMaxGroupBytes = 16 << 20;
// A delete that takes at most this much memory does not reserve it.
constexpr std::int64_t kSmallDeleteBytes = 16 << 20;
// How often a delete by filter searches while other writes go on. If it is
// outdated each time, it searches once more while they wait, so that it ends.
constexpr int kMaxSearches = 3;

// Returns the stored items in the order of `ids`; nullopt for missing ones.
absl::StatusOr<std::vector<std::optional<StoredItem>>> StoredOf(
    const CatalogStore& store, std::span<const absl::string_view> ids) {
  std::vector<std::optional<StoredItem>> items(ids.size());
  ATTENDANT_RETURN_IF_ERROR(
      store.Get(ids, [&](std::size_t i, std::optional<StoredItem> item) {
        items[i] = std::move(item);
        return absl::OkStatus();
      }));
  return items;
}

std::size_t ByteCount(const Item& item) {
  std::size_t floats = item.value.size();
  for (const std::vector<float>& key : item.keys) floats += key.size();
  return floats * sizeof(float) + item.opaque_value.size() + item.id.size() +
         static_cast<std::size_t>(AttributeBytes(item));
}

// Returns the memory needed while these ids are deleted (see DeleteMatching).
std::int64_t DeleteBytes(std::span<const absl::string_view> ids) {
  constexpr std::size_t kEach = 200;
  constexpr std::size_t kCopies = 5;
  std::size_t bytes = 0;
  for (const absl::string_view id : ids) bytes += kEach + kCopies * id.size();
  return static_cast<std::int64_t>(bytes);
}

// Returns `no_memory` if there is no memory to describe the exception.
absl::Status UnexpectedError(const std::exception& exception,
                             const absl::Status& no_memory) {
  try {
    return absl::InternalError(
        absl::StrCat("unexpected exception: ", exception.what()));
  } catch (const std::bad_alloc&) {
    return no_memory;
  }
}

std::vector<absl::string_view> IdsOf(std::span<const Item> items) {
  std::vector<absl::string_view> ids;
  ids.reserve(items.size());
  for (const Item& item : items) ids.emplace_back(item.id);
  return ids;
}

}  // namespace

// A queued write. The objects it refers to live until Submit returns.
struct LiveCatalog::PendingWrite {
  absl::string_view request_id;
  std::uint64_t fingerprint = 0;  // used with a request_id
  std::size_t byte_count = 0;
  // If it ends before the write has its turn, the write is refused. It has no
  // yielder: all other writes wait meanwhile.
  Interrupt interrupt;
  // The write is in no group with others, since its plan takes long.
  bool is_alone = false;
  // Items whose stored records `plan` reads. No write of the same group may
  // have changed them.
  std::span<const absl::string_view> read_ids;
  // Fills in what is written to `state`, or refuses the write. Runs under the
  // mutex. Returns false if there is nothing to write.
  std::function<absl::StatusOr<bool>(const Snapshot& state, StoreWrite& write)>
      plan;
  StoreWrite write = {};
  absl::Status status = {};
  bool planned = false;   // plan ran on the state of its group
  bool in_group = false;  // planned, to be committed
};

// The next snapshot, while writes are being added to it.
struct LiveCatalog::NextState {
  std::shared_ptr<Snapshot> snapshot;
  DeadRows dead;  // of all these writes
  // Reserved for the writes until their memory is counted.
  std::vector<MemoryBudget::Account> rooms;
};

LiveCatalog::PendingWrite LiveCatalog::NewWrite(absl::string_view request_id,
                                                std::uint64_t fingerprint,
                                                const Interrupt& interrupt) {
  PendingWrite pending;
  pending.request_id = request_id;
  pending.fingerprint = fingerprint;
  pending.interrupt = interrupt;
  pending.interrupt.yielder = nullptr;
  return pending;
}

absl::StatusOr<std::optional<WriteOutcome>> LiveCatalog::FindRepeat(
    absl::string_view request_id, std::uint64_t fingerprint) const {
  if (request_id.empty()) return std::optional<WriteOutcome>();
  ATTENDANT_ASSIGN_OR_RETURN(const std::optional<WriteOutcome> found,
                             store_->FindRequest(request_id));
  // A failed write can be read until it is taken back.
  if (found && found->sequence > current_->sequence) return std::nullopt;
  if (found && found->fingerprint != fingerprint) {
    return InvalidField("request_id",
                        absl::StrCat("'", request_id, "' with other content"),
                        "a new id for a new write");
  }
  return found;
}

absl::Status LiveCatalog::CheckConditions(
    const Snapshot& state, std::span<const absl::string_view> ids,
    std::span<const WriteCondition> conditions, absl::string_view field) const {
  std::vector<std::optional<StoredItem>> stored;
  if (ReadsSequences(conditions)) {
    ATTENDANT_ASSIGN_OR_RETURN(stored, StoredOf(*store_, ids));
  }
  for (std::size_t i = 0; i < conditions.size(); ++i) {
    if (conditions[i].absent && state.Find(ids[i])) {
      return ItemExists(PathOf(field, i), ids[i]);
    }
    if (!conditions[i].sequence) continue;
    ATTENDANT_RETURN_IF_ERROR(CheckSequence(stored[i] ? &*stored[i] : nullptr,
                                            *conditions[i].sequence,
                                            PathOf(field, i)));
  }
  return absl::OkStatus();
}

absl::StatusOr<WriteOutcome> LiveCatalog::Upsert(
    std::span<const Item> items, absl::string_view request_id,
    std::span<const WriteCondition> conditions, const Interrupt& interrupt) {
  if (items.empty()) return InvalidField("items", "none", "at least one");
  const std::vector<absl::string_view> ids = IdsOf(items);
  ATTENDANT_RETURN_IF_ERROR(ValidateDistinct(ids, "items", ".id"));
  ATTENDANT_RETURN_IF_ERROR(
      ValidateConditions(conditions, items.size(), /*may_insert=*/true));
  WriteFingerprint fingerprint("upsert");
  std::size_t byte_count = 0;
  std::vector<const Item*> upserts;
  const auto schema = snapshot()->schema;
  for (std::size_t i = 0; i < items.size(); ++i) {
    ATTENDANT_RETURN_IF_ERROR(InItem(ValidateItem(items[i], *schema), i));
    if (!request_id.empty()) fingerprint.Add(items[i]);
    byte_count += ByteCount(items[i]);
    upserts.push_back(&items[i]);
  }
  fingerprint.Add(conditions);
  PendingWrite pending = NewWrite(request_id, fingerprint.value(), interrupt);
  pending.byte_count = byte_count;
  if (ReadsSequences(conditions)) pending.read_ids = ids;
  pending.plan = [&](const Snapshot& state,
                     StoreWrite& write) -> absl::StatusOr<bool> {
    mutex_.AssertHeld();
    for (std::size_t i = 0; i < items.size(); ++i) {
      ATTENDANT_RETURN_IF_ERROR(InItem(CheckKeyLimits(items[i]), i));
    }
    ATTENDANT_RETURN_IF_ERROR(CheckConditions(state, ids, conditions, "items"));
    write.upserts = upserts;
    for (const absl::string_view id : ids) {
      ++(state.Find(id) ? write.outcome.updated_count
                        : write.outcome.inserted_count);
    }
    return true;
  };
  return Submit(pending);
}

absl::StatusOr<WriteOutcome> LiveCatalog::Update(
    std::span<const ItemPatch> patches, absl::string_view request_id,
    std::span<const WriteCondition> conditions,
    std::int64_t most_attribute_bytes, const Interrupt& interrupt) {
  if (patches.empty()) return InvalidField("items", "none", "at least one");
  std::vector<absl::string_view> ids;
  WriteFingerprint fingerprint("update");
  for (const ItemPatch& patch : patches) {
    ids.emplace_back(patch.id);
    if (!request_id.empty()) fingerprint.Add(patch);
  }
  fingerprint.Add(conditions);
  ATTENDANT_RETURN_IF_ERROR(ValidateDistinct(ids, "items", ".id"));
  ATTENDANT_RETURN_IF_ERROR(
      ValidateConditions(conditions, patches.size(), /*may_insert=*/false));
  const auto schema = snapshot()->schema;
  for (std::size_t i = 0; i < patches.size(); ++i) {
    if (patches[i].empty()) {
      return InvalidField(PathOf("items", i), "nothing to update",
                          "a key, value, attribute or opaque value");
    }
    const std::size_t key_count = patches[i].keys.size();
    if (key_count != 0 && key_count != schema->key_fields.size()) {
      return InvalidField(absl::StrCat(PathOf("items", i), ".keys"),
                          absl::StrCat(key_count, " fields"),
                          absl::StrCat(schema->key_fields.size(), " fields"));
    }
  }
  std::vector<Item> items;
  std::vector<const Item*> upserts;
  PendingWrite pending = NewWrite(request_id, fingerprint.value(), interrupt);
  pending.read_ids = ids;
  pending.plan = [&](const Snapshot& state,
                     StoreWrite& write) -> absl::StatusOr<bool> {
    mutex_.AssertHeld();
    ATTENDANT_ASSIGN_OR_RETURN(auto stored, StoredOf(*store_, ids));
    items.reserve(ids.size());
    for (std::size_t i = 0; i < ids.size(); ++i) {
      if (!conditions.empty() && conditions[i].sequence) {
        ATTENDANT_RETURN_IF_ERROR(
            CheckSequence(stored[i] ? &*stored[i] : nullptr,
                          *conditions[i].sequence, PathOf("items", i)));
      }
      if (!stored[i]) {
        return FieldError(absl::StatusCode::kNotFound, "ITEM_NOT_FOUND",
                          PathOf("items", i),
                          absl::StrCat("'", ids[i], "', which does not exist"),
                          "an item that does");
      }
      Item item = Patched(std::move(*stored[i]), patches[i]);
      absl::Status valid =
          ValidateItem(item, *state.schema,
                       patches[i].attributes.empty() ? kMaxAttributeBytes
                                                     : most_attribute_bytes);
      if (valid.ok()) valid = CheckKeyLimits(item);
      ATTENDANT_RETURN_IF_ERROR(InItem(valid, i));
      items.push_back(std::move(item));
    }
    for (const Item& item : items) upserts.push_back(&item);
    write.upserts = upserts;
    write.outcome.updated_count = static_cast<std::int64_t>(items.size());
    ATTENDANT_FAIL_POINT_OR_RETURN("update.before_log");
    return true;
  };
  return Submit(pending);
}

absl::StatusOr<WriteOutcome> LiveCatalog::Delete(
    std::span<const std::string> ids, absl::string_view request_id,
    std::span<const WriteCondition> conditions, const Interrupt& interrupt) {
  if (ids.empty()) return InvalidField("ids", "none", "at least one");
  const std::vector<absl::string_view> views(ids.begin(), ids.end());
  ATTENDANT_RETURN_IF_ERROR(ValidateDistinct(views, "ids", ""));
  ATTENDANT_RETURN_IF_ERROR(
      ValidateConditions(conditions, ids.size(), /*may_insert=*/false));
  WriteFingerprint fingerprint("delete");
  for (const std::string& id : ids) fingerprint.Add(id);
  fingerprint.Add(conditions);
  std::vector<absl::string_view> deletes;
  PendingWrite pending = NewWrite(request_id, fingerprint.value(), interrupt);
  if (ReadsSequences(conditions)) pending.read_ids = views;
  pending.plan = [&](const Snapshot& state,
                     StoreWrite& write) -> absl::StatusOr<bool> {
    mutex_.AssertHeld();
    ATTENDANT_RETURN_IF_ERROR(CheckConditions(state, views, conditions, "ids"));
    for (const absl::string_view id : views) {
      if (state.Find(id)) deletes.push_back(id);
    }
    write.deletes = deletes;
    write.outcome.deleted_count = static_cast<std::int64_t>(deletes.size());
    write.outcome.missing_count =
        static_cast<std::int64_t>(ids.size() - deletes.size());
    return true;
  };
  return Submit(pending);
}

absl::StatusOr<WriteOutcome> LiveCatalog::DeleteMatching(
    const Filter& filter, absl::string_view request_id,
    const Interrupt& interrupt) {
  ATTENDANT_RETURN_IF_ERROR(
      ValidateFilter(filter, *snapshot()->schema, "filter_expression"));
  WriteFingerprint fingerprint("delete matching");
  fingerprint.Add(filter);
  {
    MutexLock lock(&mutex_);
    ATTENDANT_RETURN_IF_ERROR(CheckOpen());
    // A repeat need not search.
    ATTENDANT_ASSIGN_OR_RETURN(const std::optional<WriteOutcome> repeat,
                               FindRepeat(request_id, fingerprint.value()));
    if (repeat) return *repeat;
  }
  for (int search = 1;; ++search) {
    ATTENDANT_ASSIGN_OR_RETURN(
        const std::optional<WriteOutcome> outcome,
        TryDeleteMatching(filter, request_id, fingerprint.value(), interrupt,
                          /*is_last=*/search == kMaxSearches));
    if (outcome) return *outcome;
  }
}

absl::StatusOr<std::optional<WriteOutcome>> LiveCatalog::TryDeleteMatching(
    const Filter& filter, absl::string_view request_id,
    std::uint64_t fingerprint, const Interrupt& interrupt, bool is_last) {
  // Other writes go on while most of the items are found.
  const std::shared_ptr<const Snapshot> seen = snapshot();
  ATTENDANT_ASSIGN_OR_RETURN(IdViews seen_ids,
                             MatchingIds(*seen, filter, nullptr, interrupt));
  ATTENDANT_FAIL_POINT_OR_RETURN("delete_matching.before_turn");
  IdViews deletes;
  bool is_outdated = false;
  MemoryBudget::Account room;  // until the write is done
  PendingWrite pending = NewWrite(request_id, fingerprint, interrupt);
  pending.is_alone = true;
  pending.plan = [&](const Snapshot& state,
                     StoreWrite& write) -> absl::StatusOr<bool> {
    mutex_.AssertHeld();
    std::optional<IdViews> matching;
    if (state.sequence == seen->sequence) {
      matching = std::move(seen_ids);
    } else if (seen->sequence >= log_begin_) {  // else the log was cut
      ATTENDANT_ASSIGN_OR_RETURN(
          matching, MatchingIdsSince(*seen, std::move(seen_ids), state, *store_,
                                     options_.max_reviewed_changes, filter,
                                     pending.interrupt));
    }
    if (!matching && !is_last) {
      is_outdated = true;
      return false;
    }
    if (!matching) {
      ATTENDANT_ASSIGN_OR_RETURN(
          matching, MatchingIds(state, filter, nullptr, pending.interrupt));
    }
    deletes = *std::move(matching);
    // Small deletes are always possible, because they free memory.
    const std::int64_t bytes = DeleteBytes(deletes);
    if (bytes > kSmallDeleteBytes) {
      ATTENDANT_ASSIGN_OR_RETURN(
          room,
          MemoryBudget::ReserveIn(options_.memory, "so large a delete", bytes));
    }
    write.deletes = deletes;
    write.outcome.deleted_count = static_cast<std::int64_t>(deletes.size());
    ATTENDANT_FAIL_POINT_OR_RETURN("delete_matching.before_log");
    return true;
  };
  ATTENDANT_ASSIGN_OR_RETURN(const WriteOutcome outcome, Submit(pending));
  if (is_outdated) return std::nullopt;
  return outcome;
}

absl::StatusOr<ImportOutcome> LiveCatalog::Import(std::span<const Item> items,
                                                  bool if_absent) {
  ImportOutcome outcome;
  PendingWrite pending;
  const auto schema = snapshot()->schema;
  for (const Item& item : items) {
    outcome.statuses.push_back(ValidateItem(item, *schema));
    if (outcome.statuses.back().ok()) pending.byte_count += ByteCount(item);
  }
  std::vector<const Item*> upserts;
  pending.plan = [&](const Snapshot& state,
                     StoreWrite& write) -> absl::StatusOr<bool> {
    mutex_.AssertHeld();
    // By id, among the valid items.
    absl::flat_hash_map<absl::string_view, std::size_t> winners;
    winners.reserve(items.size());
    for (std::size_t i = 0; i < items.size(); ++i) {
      const absl::string_view id = items[i].id;
      absl::Status& status = outcome.statuses[i];
      if (status.ok()) status = CheckKeyLimits(items[i]);
      if (!status.ok()) continue;
      if (!if_absent) {
        winners[id] = i;
      } else if (state.Find(id) || !winners.emplace(id, i).second) {
        status = ItemExists("id", id);
      }
    }
    for (std::size_t i = 0; i < items.size(); ++i) {
      if (outcome.statuses[i].ok() && winners.at(items[i].id) == i) {
        upserts.push_back(&items[i]);
      }
    }
    write.upserts = upserts;
    return !upserts.empty();
  };
  ATTENDANT_ASSIGN_OR_RETURN(const WriteOutcome written, Submit(pending));
  outcome.sequence = written.sequence;
  return outcome;
}

absl::StatusOr<WriteOutcome> LiveCatalog::Submit(PendingWrite& pending) {
  write_queue_.Run(pending, [this](std::span<PendingWrite* const> line) {
    return CommitGroup(line);
  });
  if (!pending.status.ok()) return pending.status;
  return pending.write.outcome;
}

bool LiveCatalog::MayJoin(const PendingWrite& pending,
                          std::span<PendingWrite* const> group,
                          const Snapshot& state) const {
  std::size_t byte_count = pending.byte_count;
  if (pending.is_alone && !group.empty()) return false;
  for (const PendingWrite* member : group) {
    if (member->is_alone) return false;
    if (!member->in_group) continue;
    byte_count += member->byte_count;
    if (byte_count > kMaxGroupBytes) return false;
    // The second write with a request_id must see the outcome of the first.
    if (!pending.request_id.empty() &&
        pending.request_id == member->request_id) {
      return false;
    }
  }
  return std::ranges::all_of(pending.read_ids, [&](absl::string_view id) {
    mutex_.AssertHeld();
    return state.Find(id) == current_->Find(id);
  });
}

absl::Status LiveCatalog::CheckRowCount(const Snapshot& state,
                                        std::size_t added_count) const {
  auto row_count = static_cast<std::int64_t>(added_count);
  for (const SegmentView& view : state.segments) row_count += view.row_end;
  if (row_count <= options_.max_row_count) return absl::OkStatus();
  return StatusWithReason(
      absl::StatusCode::kResourceExhausted,
      absl::StrCat("the write would bring catalog '", record_.name, "' to ",
                   row_count, " rows, of which it may have ",
                   options_.max_row_count,
                   "; deleted and replaced items count until a merge of "
                   "segments leaves them out"),
      kOverLimit);
}

absl::Status LiveCatalog::AddToGroup(PendingWrite& pending, NextState& next) {
  ATTENDANT_RETURN_IF_ERROR(pending.interrupt.Check());
  ATTENDANT_ASSIGN_OR_RETURN(
      const std::optional<WriteOutcome> repeat,
      FindRepeat(pending.request_id, pending.fingerprint));
  StoreWrite& write = pending.write;
  if (repeat) {
    write.outcome = *repeat;
    return absl::OkStatus();
  }
  pending.planned = true;
  ATTENDANT_ASSIGN_OR_RETURN(const bool writes,
                             pending.plan(*next.snapshot, write));
  if (!writes) {
    // The outcome refers to this state.
    write.outcome.sequence = next.snapshot->sequence;
    return absl::OkStatus();
  }
  // The size of an update is known only after planning.
  if (pending.byte_count == 0) {
    for (const Item* item : write.upserts)
      pending.byte_count += ByteCount(*item);
  }
  if (!write.upserts.empty()) {
    ATTENDANT_RETURN_IF_ERROR(
        CheckRowCount(*next.snapshot, write.upserts.size()));
    ATTENDANT_ASSIGN_OR_RETURN(
        MemoryBudget::Account room,
        MemoryBudget::ReserveIn(
            options_.memory, "the write",
            WriteBytes(write.upserts, next.snapshot->models)));
    next.rooms.push_back(std::move(room));
  }
  pending.in_group = true;
  write.request_id = pending.request_id;
  write.outcome.fingerprint = pending.fingerprint;
  write.outcome.sequence = next.snapshot->sequence + 1;
  Apply(write, next);
  return absl::OkStatus();
}

void LiveCatalog::Apply(const StoreWrite& write, NextState& next) {
  Snapshot& state = *next.snapshot;
  for (const absl::string_view id : write.deletes) next.dead.Kill(state, id);
  for (const Item* item : write.upserts) next.dead.Kill(state, item->id);
  state.sequence = write.outcome.sequence;
  for (const Item* item : write.upserts) AppendRow(state, *item);
}

std::size_t LiveCatalog::CommitGroup(std::span<PendingWrite* const> line) {
  // Created while there is memory, so that nothing can throw later.
  const absl::Status no_memory = absl::ResourceExhaustedError(
      "out of memory for the write; nothing was written");
  MutexLock lock(&mutex_);
  // Everything that may run out of memory happens before the store is written,
  // so that memory and disk agree.
  NextState next;
  std::size_t count = 1;  // to be taken out of the line
  absl::Status status;
  try {
    absl::Status ready = CheckOpen();
    // An earlier failed write must not become the base of these.
    if (ready.ok()) ready = store_->TakeBackFailed();
    if (!ready.ok()) {
      for (PendingWrite* pending : line) pending->status = ready;
      return line.size();
    }
    next.snapshot = std::make_shared<Snapshot>(*current_);
    std::vector<StoreWrite> writes;
    for (std::size_t i = 0; i < line.size(); ++i) {
      PendingWrite& pending = *line[i];
      if (!MayJoin(pending, line.first(i), *next.snapshot)) break;
      count = i + 1;
      pending.status = AddToGroup(pending, next);
      if (pending.in_group) writes.push_back(pending.write);
    }
    if (writes.empty()) return count;
    growing_.AssignLists();
    assigned_sequence_ = next.snapshot->sequence;
    if (!ATTENDANT_PLANTED_BUG("acknowledge_before_commit")) {
      status = store_->WriteGroup(writes);
    }
  } catch (const std::bad_alloc&) {
    status = no_memory;
    line[count - 1]->planned = line[count - 1]->in_group = true;
  } catch (const std::exception& exception) {
    // Caught, because the writes in line must not wait forever.
    status = UnexpectedError(exception, no_memory);
    line[count - 1]->planned = line[count - 1]->in_group = true;
  }
  if (!status.ok()) {
    // Rows may have been appended beyond what any snapshot shows, so the
    // segment is abandoned.
    growing_ = {};
    assigned_sequence_ = current_->sequence;
    // Also fails writes that were planned on a state that was never published.
    bool after_write = false;
    for (PendingWrite* pending : line.first(count)) {
      after_write |= pending->in_group;
      if (after_write && pending->planned) pending->status = status;
    }
    return count;
  }
  ATTENDANT_FAIL_POINT("write.before_publish");
  Publish(std::move(next.snapshot));
  ATTENDANT_FAIL_POINT("write.after_publish");
  last_write_ = SteadyNow();
  for (const PendingWrite* pending : line.first(count)) {
    if (!pending->in_group) continue;
    logged_change_count_ += static_cast<std::int64_t>(
        pending->write.upserts.size() + pending->write.deletes.size());
  }
  try {
    ScheduleDue();
  } catch (const std::bad_alloc&) {
    // The next write schedules what is missing; this one is done.
  }
  return count;
}

}  // namespace attendant
