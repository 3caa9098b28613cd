#include "core/catalog/live_catalog.h"

#include <malloc.h>

#include <algorithm>
#include <cmath>
#include <new>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "core/base/fail_point.h"
#include "core/base/status.h"
#include "core/catalog/dead_rows.h"
#include "core/catalog/head_keys.h"
#include "core/catalog/rebuild.h"
#include "core/catalog/segment_files.h"
#include "core/catalog/snapshot_memory.h"

namespace attendant {
namespace {

// Segments double up to this, so that a small catalog costs little memory.
constexpr std::int64_t kFirstCapacity = 1024;
constexpr std::int64_t kMaxCapacity = 65536;
// Changes that a restart may have to replay, if no merge saves segments before.
constexpr std::int64_t kMaxLoggedChanges = 65536;
// Of merges that leave this many rows, freed memory is given back.
constexpr std::int64_t kTrimCount = 100000;

// True if no component is greater than `limit` in size.
bool Within(std::span<const float> key, float limit) {
  return std::all_of(key.begin(), key.end(), [limit](float component) {
    return std::abs(component) <= limit;
  });
}

// True if changing one model for the other takes keys to be projected.
bool Projects(const NamedModel& a, const NamedModel& b) {
  return StoredHeadCount(a.model.get()) > 0 ||
         StoredHeadCount(b.model.get()) > 0;
}

absl::Status NoSuchItem(std::size_t i, absl::string_view id) {
  return StatusWithReason(absl::StatusCode::kNotFound,
                          absl::StrCat("ids[", i, "]: no item '", id, "'"),
                          "ITEM_NOT_FOUND");
}

}  // namespace

absl::StatusOr<std::unique_ptr<LiveCatalog>> LiveCatalog::Open(
    CatalogRecord record, std::vector<NamedModel> models,
    std::unique_ptr<CatalogStore> store, BackgroundWorker* background,
    const LiveCatalogOptions& options) {
  auto empty = std::make_shared<Snapshot>();
  empty->catalog_uid = record.uid;
  empty->schema = std::make_shared<CatalogSchema>(record.schema);
  empty->models = models;
  for (const KeyFieldSchema& field : record.schema.key_fields) {
    ATTENDANT_ASSIGN_OR_RETURN(const std::string bytes,
                               store->GetEncoder(field.name));
    std::shared_ptr<const TextEncoder> encoder;
    if (!bytes.empty()) {
      ATTENDANT_ASSIGN_OR_RETURN(TextEncoder decoded,
                                 TextEncoder::Deserialize(bytes));
      encoder = std::make_shared<const TextEncoder>(std::move(decoded));
    }
    empty->encoders.push_back(std::move(encoder));
    empty->wanted_indexes.push_back(IndexKind::kFlat);
  }
  std::unique_ptr<LiveCatalog> catalog(
      new LiveCatalog(std::move(record), std::move(models), std::move(store),
                      background, options, empty));
  MutexLock lock(&catalog->mutex_);
  ATTENDANT_RETURN_IF_ERROR(catalog->LoadItems());
  return catalog;
}

LiveCatalog::LiveCatalog(CatalogRecord record, std::vector<NamedModel> models,
                         std::unique_ptr<CatalogStore> store,
                         BackgroundWorker* background,
                         const LiveCatalogOptions& options,
                         std::shared_ptr<const Snapshot> empty)
    : record_(std::move(record)),
      background_(background),
      options_(options),
      published_(empty),
      read_store_(store.get()),
      store_(std::move(store)),
      current_(std::move(empty)),
      wanted_models_(std::move(models)),
      projected_key_counts_(record_.schema.key_fields.size()) {
  for (const NamedModel& model : wanted_models_) {
    key_limits_.push_back(model.key_limit);
  }
  if (options_.memory != nullptr) account_ = options_.memory->OpenAccount();
}

LiveCatalog::~LiveCatalog() {
  closing_ = true;
  background_->Remove(this);
}

absl::Status LiveCatalog::LoadItems() {
  segment_files_ = std::make_unique<SegmentFiles>(store_->segment_directory(),
                                                  &store_->scratch_files());
  auto next = std::make_shared<Snapshot>(*current_);
  absl::StatusOr<bool> loaded = LoadSegments(*next);
  if (!loaded.ok() || !*loaded) {
    recovery_ = {.damage = loaded.status()};
    growing_ = {};
    if (!loaded.ok()) ATTENDANT_FAIL_POINT("recovery.before_clear");
    ATTENDANT_RETURN_IF_ERROR(segment_files_->Clear());
    if (!loaded.ok()) ATTENDANT_FAIL_POINT("recovery.after_clear");
    log_begin_ = store_->sequence();
    logged_change_count_ = 0;
    next = std::make_shared<Snapshot>(*current_);
    ATTENDANT_RETURN_IF_ERROR(store_->Scan("", [&](const Item& item) {
      mutex_.AssertHeld();
      AppendRow(*next, item);
      return true;
    }));
  }
  next->sequence = store_->sequence();
  Publish(std::move(next));
  if (Plan(/*settled=*/true).needed()) ScheduleMerge(absl::ZeroDuration());
  return absl::OkStatus();
}

absl::StatusOr<bool> LiveCatalog::LoadSegments(Snapshot& next) {
  ATTENDANT_ASSIGN_OR_RETURN(std::optional<SegmentFiles::Loaded> loaded,
                             segment_files_->Load(*current_));
  if (!loaded.has_value()) return false;
  if (loaded->sequence > store_->sequence()) {
    return absl::DataLossError(
        absl::StrCat("its segments are of write ", loaded->sequence,
                     ", and its database is of write ", store_->sequence()));
  }
  next.segments = std::move(loaded->segments);
  for (std::size_t f = 0; f < next.wanted_indexes.size(); ++f) {
    if (next.segments.empty()) break;
    // AUTO keeps the index that there is.
    next.wanted_indexes[f] = next.QueriedIndex(0, static_cast<int>(f)).kind();
  }
  recovery_.segment_count = static_cast<std::int64_t>(next.segments.size());
  recovery_.row_count = next.item_count();
  ATTENDANT_FAIL_POINT("recovery.before_replay");
  absl::flat_hash_set<std::string> changed;
  ATTENDANT_RETURN_IF_ERROR(store_->ScanChanges(
      loaded->sequence, [&](absl::string_view id) { changed.emplace(id); }));
  DeadRows dead;
  for (const std::string& id : changed) dead.Kill(next, id);
  next.sequence = loaded->sequence + 1;
  constexpr std::size_t kBatchItems = 256;
  const std::vector<absl::string_view> ids(changed.begin(), changed.end());
  for (std::size_t begin = 0; begin < ids.size(); begin += kBatchItems) {
    ATTENDANT_ASSIGN_OR_RETURN(
        const auto items,
        store_->Get(std::span(ids).subspan(
            begin, std::min(kBatchItems, ids.size() - begin))));
    for (const std::optional<StoredItem>& stored : items) {
      if (stored.has_value()) AppendRow(next, *stored);
    }
  }
  recovery_.replayed_count = static_cast<std::int64_t>(changed.size());
  logged_change_count_ = recovery_.replayed_count;
  log_begin_ = loaded->sequence;
  ATTENDANT_FAIL_POINT("recovery.after_replay");
  return true;
}

absl::Status LiveCatalog::CheckOpen() const {
  return store_ != nullptr ? absl::OkStatus() : Deleted();
}

absl::Status LiveCatalog::Deleted() const {
  return StatusWithReason(
      absl::StatusCode::kNotFound,
      absl::StrCat("catalog '", record_.name, "' was deleted"),
      "CATALOG_NOT_FOUND");
}

absl::Status LiveCatalog::CheckMemory(absl::string_view what,
                                      std::int64_t bytes) const {
  if (options_.memory == nullptr) return absl::OkStatus();
  return options_.memory->Check(what, bytes);
}

void LiveCatalog::CutUselessLog() {
  if (logged_change_count_ < kMaxLoggedChanges || saving_segments_ ||
      store_->segment_directory() == nullptr ||
      SegmentFiles::AnyTrained(*current_)) {
    return;
  }
  save_status_ = segment_files_->Clear();
  if (save_status_.ok()) save_status_ = CutLog(current_->sequence);
  if (save_status_.ok()) logged_change_count_ = 0;
}

absl::Status LiveCatalog::CutLog(std::int64_t sequence) {
  ATTENDANT_RETURN_IF_ERROR(store_->CutChanges(sequence));
  log_begin_ = sequence;
  return absl::OkStatus();
}

void LiveCatalog::SaveSegments(bool worth_it) {
  std::shared_ptr<const Snapshot> snapshot;
  std::optional<std::int64_t> covered;
  std::int64_t change_count = 0;
  {
    MutexLock lock(&mutex_);
    change_count = logged_change_count_;
    if (!worth_it && change_count < kMaxLoggedChanges) return;
    if (store_->segment_directory() == nullptr) return;
    snapshot = current_;
    covered = SegmentFiles::Covered(*snapshot);
    if (!covered || *covered < log_begin_) return;
    saving_segments_ = true;
  }
  absl::Status status;
  try {
    status = segment_files_->Save(*snapshot, *covered);
  } catch (const std::bad_alloc&) {
    status = absl::ResourceExhaustedError("out of memory to save segments");
  }
  MutexLock lock(&mutex_);
  saving_segments_ = false;
  if (status.ok()) {
    logged_change_count_ -= change_count;
    status = CutLog(*covered);
    ATTENDANT_FAIL_POINT("segments.after_cut");
  }
  save_status_ = status;
}

void LiveCatalog::AppendRow(Snapshot& next, const Item& item) {
  if (growing_.rows == nullptr ||
      growing_.rows->row_count() == growing_.rows->capacity()) {
    StartSegment(next);
  }
  SegmentView& view = next.segments.back();
  growing_.rows->Append(
      item.id, item.value, item.attributes,
      item.opaque_value.empty()
          ? nullptr
          : std::make_shared<const std::string>(item.opaque_value));
  for (std::size_t f = 0; f < growing_.indexes.size(); ++f) {
    growing_.indexes[f]->Append(item.keys[f]);
    AppendHeadKeys(next, static_cast<int>(f), item.keys[f]);
    if (!item.keys[f].empty()) ++view.live_key_counts[f];
  }
  ++view.row_end;
  ++view.live_count;
}

void LiveCatalog::AppendHeadKeys(const Snapshot& next, int field,
                                 std::span<const float> key) {
  const auto& indexes = growing_.head_indexes[field];
  if (indexes.empty()) return;
  if (key.empty()) {
    for (const auto& index : indexes) index->Append({});
    return;
  }
  const KeyProjection projection = StoredProjection(*next.models[field].model);
  projected_.resize(static_cast<std::size_t>(projection.weight.row_count));
  ProjectRows(projection.weight, projection.bias,
              {key.data(), 1, projection.weight.dim}, projected_.data());
  projected_key_counts_[field].fetch_add(1, std::memory_order_relaxed);
  std::span<const float> left = projected_;
  for (const auto& index : indexes) {
    index->Append(left.first(static_cast<std::size_t>(index->dim())));
    left = left.subspan(static_cast<std::size_t>(index->dim()));
  }
}

absl::Status LiveCatalog::CheckKeyLimits(const Item& item) const {
  for (std::size_t f = 0; f < item.keys.size(); ++f) {
    if (Within(item.keys[f], key_limits_[f])) continue;
    return InvalidField(
        absl::StrCat("keys[", record_.schema.key_fields[f].name, "]"),
        "a component too large for the field's model",
        absl::StrCat("components of at most ", key_limits_[f], " in size"));
  }
  return absl::OkStatus();
}

void LiveCatalog::StartSegment(Snapshot& next) {
  bool has_lists = false;
  for (std::size_t f = 0; f < next.wanted_indexes.size(); ++f) {
    has_lists |=
        !next.segments.empty() &&
        next.QueriedIndex(0, static_cast<int>(f)).kind() == IndexKind::kIvf;
  }
  const std::int64_t capacity =
      growing_.rows == nullptr
          ? kFirstCapacity
          : std::min(2 * growing_.rows->capacity(),
                     has_lists ? kSealCount : kMaxCapacity);
  growing_ = {};
  growing_.rows = std::make_shared<RowTable>(next.schema->value_dim, capacity);
  auto segment = std::make_shared<Segment>();
  // Until the catalog is open, rows may be of any write.
  segment->first_sequence = next.sequence;
  segment->rows = growing_.rows;
  for (std::size_t f = 0; f < next.schema->key_fields.size(); ++f) {
    growing_.indexes.push_back(
        std::make_shared<FlatIndex>(next.schema->key_fields[f].dim, capacity));
    segment->indexes.push_back(growing_.indexes.back());
    const AttentionModel* model = next.models[f].model.get();
    auto& head_indexes = growing_.head_indexes.emplace_back();
    for (int h = 0; h < StoredHeadCount(model); ++h) {
      head_indexes.push_back(std::make_shared<FlatIndex>(
          HeadProjection(*model, h).weight.row_count, capacity));
    }
    segment->head_indexes.emplace_back(head_indexes.begin(),
                                       head_indexes.end());
  }
  SegmentView view;
  view.segment = std::move(segment);
  view.live_key_counts.resize(next.schema->key_fields.size());
  next.segments.push_back(std::move(view));
}

void LiveCatalog::Publish(std::shared_ptr<Snapshot> next) {
  ResolveWantedIndexes(*next);
  current_ = std::move(next);
  published_.Store(current_);
  account_.Set(SnapshotMemory(*current_).sum());
}

void LiveCatalog::ResolveWantedIndexes(Snapshot& next) const {
  for (std::size_t f = 0; f < next.wanted_indexes.size(); ++f) {
    IndexKind kind = next.schema->key_fields[f].index_kind;
    if (kind == IndexKind::kAuto) {
      // Half as many keys end it: a catalog about the limit keeps its index.
      const std::int64_t least = next.wanted_indexes[f] == IndexKind::kIvf
                                     ? options_.auto_ivf_min_count / 2
                                     : options_.auto_ivf_min_count;
      kind = next.key_count(static_cast<int>(f)) >= least ? IndexKind::kIvf
                                                          : IndexKind::kFlat;
    }
    next.wanted_indexes[f] = kind;
  }
}

MergePlan LiveCatalog::Plan(bool settled) const {
  return PlanMerge(*current_, wanted_models_, growing_.rows.get(), settled);
}

void LiveCatalog::ScheduleMerges() {
  const MergePlan now = Plan(/*settled=*/false);
  if (now.needed() && !now.retrains) {
    ScheduleMerge(absl::ZeroDuration());
  } else if (now.needed() || Plan(/*settled=*/true).needed()) {
    ScheduleMerge(options_.settle_time);
  }
}

void LiveCatalog::ScheduleMerge(absl::Duration delay) {
  if (closing_) return;
  if (await_count_ > 0) delay = absl::ZeroDuration();
  if (merge_scheduled_) {
    if (delay == absl::ZeroDuration()) background_->Hurry(this);
    return;
  }
  merge_scheduled_ = true;
  background_->Add(this, delay, [this] { RunMerge(); });
}

void LiveCatalog::RunMerge() {
  if (MergeOnce() < kTrimCount) return;
  // Keys were held twice, and blocks that were freed stay with the process
  // unless it lets go of them: half as much again as all keys.
  malloc_trim(0);
}

absl::StatusOr<MemoryBudget::Account> LiveCatalog::ReserveMerge(
    const MergePlan& plan) {
  if (options_.memory == nullptr) return MemoryBudget::Account();
  absl::StatusOr<MemoryBudget::Account> room =
      options_.memory->Reserve("an index build", MergeBytes(*current_, plan));
  if (room.ok()) return room;
  merge_status_ = room.status();
  // Not as a merge that is scheduled: nobody is to wait for it.
  if (!retry_scheduled_ && !closing_) {
    retry_scheduled_ = true;
    background_->Add(this, options_.retry_time, [this] {
      MutexLock lock(&mutex_);
      retry_scheduled_ = false;
      ScheduleMerges();
    });
  }
  return room;
}

std::int64_t LiveCatalog::MergeOnce() {
  std::shared_ptr<const Snapshot> before;
  ScratchFiles* files = nullptr;
  std::vector<NamedModel> models;
  MergePlan plan;
  MemoryBudget::Account room;
  {
    MutexLock lock(&mutex_);
    merge_scheduled_ = false;
    const bool settled =
        await_count_ > 0 || std::chrono::steady_clock::now() - last_write_ >=
                                absl::ToChronoNanoseconds(options_.settle_time);
    plan = Plan(settled);
    if (!plan.needed()) {
      ScheduleMerges();
      changed_.NotifyAll();
      return 0;
    }
    absl::StatusOr<MemoryBudget::Account> reserved = ReserveMerge(plan);
    if (!reserved.ok()) {
      changed_.NotifyAll();
      return 0;
    }
    room = *std::move(reserved);
    merge_scheduled_ = true;
    before = current_;
    models = plan.retrains ? wanted_models_ : current_->models;
    files = &store_->scratch_files();
    // From now on rows go to a new segment; those before are only tombstoned.
    for (std::size_t i = plan.first; i < plan.end; ++i) {
      if (before->segments[i].segment->rows == growing_.rows) growing_ = {};
    }
  }
  absl::StatusOr<std::shared_ptr<const Segment>> merged =
      MergeSegments(*before, plan, models, *files, closing_);
  const std::int64_t row_count =
      merged.ok() && *merged != nullptr ? (*merged)->rows->row_count() : 0;
  // What is behind the segments that stay is sealed.
  const bool seals = plan.first > 0;
  if (seals) ATTENDANT_FAIL_POINT("seal.before_publish");
  if (!seals) ATTENDANT_FAIL_POINT("merge.before_publish");
  absl::Status status = merged.status();
  if (status.ok()) {
    MutexLock lock(&mutex_);
    try {
      PublishMerged(*std::move(merged), plan, *before, models);
    } catch (const std::bad_alloc&) {
      status = absl::ResourceExhaustedError("out of memory for a merge");
      // Its head keys may be another model's already.
      growing_ = {};
    }
  }
  if (seals) ATTENDANT_FAIL_POINT("seal.after_publish");
  if (!seals) ATTENDANT_FAIL_POINT("merge.after_publish");
  if (status.ok()) {
    const bool all = plan.first == 0 && plan.end == before->segments.size();
    SaveSegments(/*worth_it=*/all);
  }
  MutexLock lock(&mutex_);
  merge_scheduled_ = false;
  merge_status_ = status;
  if (status.ok()) ScheduleMerges();
  changed_.NotifyAll();
  return row_count;
}

void LiveCatalog::PublishMerged(std::shared_ptr<const Segment> merged,
                                const MergePlan& plan, const Snapshot& before,
                                const std::vector<NamedModel>& models) {
  auto next = std::make_shared<Snapshot>(*current_);
  const auto first =
      next->segments.begin() + static_cast<std::ptrdiff_t>(plan.first);
  next->segments.erase(
      first, next->segments.begin() + static_cast<std::ptrdiff_t>(plan.end));
  for (std::size_t f = 0; plan.retrains && f < models.size(); ++f) {
    // Without keys to project SetDefaults published the newest already.
    if (!Projects(models[f], next->models[f])) continue;
    if (models[f].model == next->models[f].model) continue;
    if (StoredHeadCount(models[f].model.get()) > 0) {
      projected_key_counts_[f].fetch_add(before.key_count(static_cast<int>(f)),
                                         std::memory_order_relaxed);
    }
    for (SegmentView& tail : next->segments) {
      ReprojectTail(tail, static_cast<int>(f), models[f]);
    }
    next->models[f] = models[f];
  }
  if (merged != nullptr) {
    next->segments.insert(
        next->segments.begin() + static_cast<std::ptrdiff_t>(plan.first),
        ViewOfMerged(std::move(merged), plan, before, *current_));
  }
  Publish(std::move(next));
}

void LiveCatalog::ReprojectTail(SegmentView& view, int field,
                                const NamedModel& model) {
  auto segment = std::make_shared<Segment>(*view.segment);
  std::vector<std::shared_ptr<FlatIndex>> indexes;
  if (model.model != nullptr) {
    indexes = ProjectSegment(*view.segment, field, view.row_end, *model.model);
  }
  if (!indexes.empty()) {
    projected_key_counts_[field].fetch_add(view.row_end,
                                           std::memory_order_relaxed);
  }
  segment->head_indexes[field].assign(indexes.begin(), indexes.end());
  if (growing_.rows == segment->rows) {
    growing_.head_indexes[field] = std::move(indexes);
  }
  view.segment = std::move(segment);
}

absl::StatusOr<std::vector<Item>> LiveCatalog::Get(
    std::span<const std::string> ids) const {
  const std::shared_ptr<const Snapshot> now = snapshot();
  std::vector<Item> items;
  items.reserve(ids.size());
  for (std::size_t i = 0; i < ids.size(); ++i) {
    ATTENDANT_RETURN_IF_ERROR(
        ValidateItemId(ids[i], absl::StrCat("ids[", i, "]")));
    const std::optional<RowAddress> address = now->Find(ids[i]);
    if (!address) {
      return NoSuchItem(i, ids[i]);
    }
    items.push_back(now->ItemAt(*address));
  }
  return items;
}

absl::Status LiveCatalog::ReadStore(
    absl::FunctionRef<absl::Status(CatalogStore& store)> read) const {
  CatalogStore* store = nullptr;
  {
    MutexLock lock(&reads_mutex_);
    if (read_store_ == nullptr) return Deleted();
    store = read_store_;
    ++read_count_;
  }
  const absl::Cleanup done = [this] {
    MutexLock lock(&reads_mutex_);
    if (--read_count_ == 0) reads_changed_.NotifyAll();
  };
  return read(*store);
}

absl::StatusOr<std::vector<StoredItem>> LiveCatalog::GetStored(
    std::span<const std::string> ids) const {
  std::vector<absl::string_view> views;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    ATTENDANT_RETURN_IF_ERROR(
        ValidateItemId(ids[i], absl::StrCat("ids[", i, "]")));
    views.emplace_back(ids[i]);
  }
  std::vector<StoredItem> items;
  items.reserve(ids.size());
  ATTENDANT_RETURN_IF_ERROR(
      ReadStore([&](const CatalogStore& store) -> absl::Status {
        ATTENDANT_ASSIGN_OR_RETURN(auto stored, store.Get(views));
        for (std::size_t i = 0; i < ids.size(); ++i) {
          if (!stored[i]) return NoSuchItem(i, ids[i]);
          items.push_back(*std::move(stored[i]));
        }
        return absl::OkStatus();
      }));
  return items;
}

absl::StatusOr<std::vector<StoredItem>> LiveCatalog::List(
    absl::string_view after, std::int64_t limit) const {
  std::vector<StoredItem> items;
  ATTENDANT_RETURN_IF_ERROR(ReadStore([&](const CatalogStore& store) {
    return store.Scan(after, [&](StoredItem item) {
      items.push_back(std::move(item));
      return static_cast<std::int64_t>(items.size()) < limit;
    });
  }));
  return items;
}

absl::Status LiveCatalog::Checkpoint(const std::string& directory) const {
  return ReadStore(
      [&](CatalogStore& store) { return store.Checkpoint(directory); });
}

absl::Status LiveCatalog::AcceptModels(const std::vector<NamedModel>& models) {
  std::shared_ptr<const Snapshot> now;
  std::vector<float> before;
  {
    // First the limit, so that no write gets by while keys are looked at.
    MutexLock lock(&mutex_);
    before = key_limits_;
    for (std::size_t f = 0; f < models.size(); ++f) {
      key_limits_[f] =
          std::min(current_->models[f].key_limit, models[f].key_limit);
    }
    now = current_;
  }
  for (std::size_t f = 0; f < models.size(); ++f) {
    if (models[f].model == now->models[f].model) continue;
    for (const SegmentView& view : now->segments) {
      for (RowIndex row = 0; row < view.row_end; ++row) {
        if (!view.IsLive(row) ||
            Within(view.segment->indexes[f]->Key(row), models[f].key_limit)) {
          continue;
        }
        MutexLock lock(&mutex_);
        key_limits_ = before;
        return InvalidField(absl::StrCat("key_fields[", f, "].model"),
                            absl::StrCat("a model of keys of at most ",
                                         models[f].key_limit, " in size"),
                            absl::StrCat("one that takes the key of item '",
                                         view.segment->rows->Id(row), "'"));
      }
    }
  }
  return absl::OkStatus();
}

void LiveCatalog::SetDefaults(const std::vector<KeyFieldSchema>& key_fields,
                              std::vector<NamedModel> models) {
  MutexLock lock(&mutex_);
  wanted_models_ = std::move(models);
  auto schema = std::make_shared<CatalogSchema>(*current_->schema);
  for (std::size_t f = 0; f < key_fields.size(); ++f) {
    KeyFieldSchema& field = schema->key_fields[f];
    field.temperature = key_fields[f].temperature;
    field.combine_kind = key_fields[f].combine_kind;
    field.index_kind = key_fields[f].index_kind;
    field.keys_on_disk = key_fields[f].keys_on_disk;
    field.model = key_fields[f].model;
  }
  auto next = std::make_shared<Snapshot>(*current_);
  next->schema = std::move(schema);
  for (std::size_t f = 0; f < wanted_models_.size(); ++f) {
    // Without keys to project the model is there at once.
    if (!Projects(next->models[f], wanted_models_[f]) ||
        next->segments.empty()) {
      next->models[f] = wanted_models_[f];
    }
  }
  Publish(std::move(next));
  if (Plan(/*settled=*/true).needed()) ScheduleMerge(absl::ZeroDuration());
}

absl::Status LiveCatalog::SetEncoder(int field, TextEncoder encoder) {
  MutexLock lock(&mutex_);
  ATTENDANT_RETURN_IF_ERROR(CheckOpen());
  ATTENDANT_RETURN_IF_ERROR(
      CheckMemory("the text encoder", encoder.memory_bytes()));
  ATTENDANT_RETURN_IF_ERROR(store_->PutEncoder(
      record_.schema.key_fields[field].name, encoder.Serialize()));
  auto next = std::make_shared<Snapshot>(*current_);
  next->encoders[field] =
      std::make_shared<const TextEncoder>(std::move(encoder));
  Publish(std::move(next));
  return absl::OkStatus();
}

std::vector<IndexState> LiveCatalog::index_states() const {
  const std::shared_ptr<const Snapshot> now = snapshot();
  std::vector<IndexState> states;
  for (std::size_t f = 0; f < now->wanted_indexes.size(); ++f) {
    IndexState state;
    state.training =
        merge_scheduled_ && now->wanted_indexes[f] != IndexKind::kFlat;
    state.key_count = now->key_count(static_cast<int>(f));
    state.active_model = now->models[f].name;
    state.training |= merge_scheduled_ &&
                      now->models[f].name != now->schema->key_fields[f].model;
    state.projected_key_count =
        projected_key_counts_[f].load(std::memory_order_relaxed);
    if (!now->segments.empty()) {
      const KeyIndex& index = now->QueriedIndex(0, static_cast<int>(f));
      const IndexTuning tuning = index.tuning();
      state.active_kind = index.kind();
      state.list_count = tuning.list_count;
      state.probe_count = tuning.probe_count;
      state.measured_recall = tuning.measured_recall;
    }
    const MemoryParts memory = FieldMemory(*now, static_cast<int>(f));
    state.memory_bytes = memory.sum();
    state.disk_bytes = memory.mapped;
    states.push_back(state);
  }
  return states;
}

MemoryParts LiveCatalog::memory() const {
  MemoryParts parts = SnapshotMemory(*snapshot());
  MutexLock lock(&mutex_);
  if (store_ != nullptr) parts.database = store_->memory_bytes();
  return parts;
}

absl::Status LiveCatalog::save_status() const {
  MutexLock lock(&mutex_);
  return save_status_;
}

absl::Status LiveCatalog::merge_status() const {
  MutexLock lock(&mutex_);
  return merge_status_;
}

CatalogRecord LiveCatalog::record() const {
  CatalogRecord record = record_;
  record.schema = *snapshot()->schema;
  return record;
}

void LiveCatalog::AwaitIndexes() {
  MutexLock lock(&mutex_);
  ++await_count_;
  while (merge_scheduled_) {
    // Hurry a merge that waits for writes to settle.
    background_->Hurry(this);
    changed_.Wait(&mutex_);
  }
  --await_count_;
}

void LiveCatalog::Close() {
  closing_ = true;
  background_->Remove(this);
  {
    MutexLock lock(&reads_mutex_);
    read_store_ = nullptr;
    while (read_count_ > 0) reads_changed_.Wait(&reads_mutex_);
  }
  MutexLock lock(&mutex_);
  merge_scheduled_ = false;
  changed_.NotifyAll();
  store_ = nullptr;
}

}  // namespace attendant
