#include "core/catalog/live/live_catalog.h"

#include <algorithm>
#include <cmath>
#include <new>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "core/base/clock.h"
#include "core/base/number_text.h"
#include "core/base/status.h"
#include "core/base/status_details.h"
#include "core/catalog/segments/head_keys.h"
#include "core/catalog/segments/segment_files.h"
#include "core/catalog/segments/snapshot_memory.h"

namespace attendant {
namespace {

// Segment capacities double up to kMaxCapacity, so that a small catalog uses
// little memory.
constexpr std::int64_t kFirstCapacity = 1024;
constexpr std::int64_t kMaxCapacity = 65536;

// True if the absolute value of every component is at most `limit`.
bool Within(std::span<const float> key, float limit) {
  return std::ranges::all_of(
      key, [limit](float component) { return std::abs(component) <= limit; });
}

// Returns null if the field has no encoder.
absl::StatusOr<std::shared_ptr<const TextEncoder>> StoredEncoder(
    const CatalogStore& store, const KeyFieldSchema& field) {
  ATTENDANT_ASSIGN_OR_RETURN(const std::string bytes,
                             store.GetEncoder(field.name));
  if (bytes.empty()) return nullptr;
  ATTENDANT_ASSIGN_OR_RETURN(TextEncoder encoder,
                             TextEncoder::Deserialize(bytes));
  // A snapshot may come from an untrusted source.
  if (encoder.parts().dim != field.dim) {
    return absl::DataLossError(absl::StrCat(
        "the text encoder of key field '", field.name, "' is of ",
        encoder.parts().dim, " dimensions, and the field of ", field.dim));
  }
  return std::make_shared<const TextEncoder>(std::move(encoder));
}

absl::Status NoSuchItem(std::size_t i, absl::string_view id) {
  return WithDetails(
      StatusWithReason(absl::StatusCode::kNotFound,
                       absl::StrCat("ids[", i, "]: no item '", id, "'"),
                       "ITEM_NOT_FOUND"),
      {{"item", id}});
}

}  // namespace

absl::StatusOr<std::unique_ptr<LiveCatalog>> LiveCatalog::Open(
    CatalogRecord record, std::vector<NamedModel> models,
    std::unique_ptr<CatalogStore> store, BackgroundWorker* background,
    const LiveCatalogOptions& options) {
  auto empty = std::make_shared<Snapshot>();
  empty->catalog_uid = record.uid;
  empty->clock = options.clock;
  empty->schema = std::make_shared<CatalogSchema>(record.schema);
  empty->models = models;
  for (const KeyFieldSchema& field : record.schema.key_fields) {
    ATTENDANT_ASSIGN_OR_RETURN(auto encoder, StoredEncoder(*store, field));
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
      reads_(store.get()),
      merged_away_(background),
      store_(std::move(store)),
      current_(std::move(empty)),
      wanted_models_(std::move(models)),
      accepted_models_(wanted_models_),
      projected_key_counts_(record_.schema.key_fields.size()) {
  for (const NamedModel& model : wanted_models_) {
    key_limits_.push_back(model.key_limit);
  }
  if (options_.memory != nullptr) account_ = options_.memory->OpenAccount();
}

LiveCatalog::~LiveCatalog() {
  closing_ = true;
  EndBackgroundWork();
}

void LiveCatalog::EndBackgroundWork() {
  // A thread that saw closing_ false adds its task before it releases the lock.
  {
    MutexLock lock(&mutex_);
    stop_learning_ = true;
  }
  background_->Remove(this);
}

absl::Status LiveCatalog::CheckOpen() const {
  return store_ != nullptr ? absl::OkStatus() : Deleted();
}

absl::Status LiveCatalog::Deleted() const {
  return WithDetails(
      StatusWithReason(absl::StatusCode::kNotFound,
                       absl::StrCat("catalog '", record_.name, "' was deleted"),
                       "CATALOG_NOT_FOUND"),
      {{"catalog", record_.name}});
}

void LiveCatalog::AppendRow(Snapshot& next, const Item& item) {
  if (growing_.is_full()) StartSegment(next);
  growing_.Append(item, next);
  for (std::size_t f = 0; f < item.keys.size(); ++f) {
    if (item.keys[f].empty() || growing_.head_indexes(f).empty()) continue;
    projected_key_counts_[f].fetch_add(1, std::memory_order_relaxed);
  }
}

absl::Status LiveCatalog::CheckKeyLimits(const Item& item) const {
  for (std::size_t f = 0; f < item.keys.size(); ++f) {
    const std::vector<float>& key = item.keys[f];
    if (key.empty()) continue;
    const KeyFieldSchema& field = record_.schema.key_fields[f];
    const auto path = [&] { return absl::StrCat("keys[", field.name, "]"); };
    if (!Within(key, key_limits_[f])) {
      return InvalidField(
          path(), "a component too large for the field's model",
          absl::StrCat("components of at most ", key_limits_[f], " in size"));
    }
    // Checked here and not in ValidateItem, because stored items must pass that
    // too.
    if (field.score_kind != ScoreKind::kCosine) continue;
    if (const double norm = Norm(key);
        norm < kMinCosineNorm || norm > kMaxCosineNorm) {
      return InvalidField(
          path(), absl::StrCat("norm ", NumberText(norm)),
          absl::StrCat("a norm of ", kMinCosineNorm, " to ", kMaxCosineNorm,
                       ", as the score kind is COSINE"));
    }
  }
  return absl::OkStatus();
}

void LiveCatalog::StartSegment(Snapshot& next) {
  bool has_lists = false;
  for (std::size_t f = 0; f < next.wanted_indexes.size(); ++f) {
    // Fields that are leaving IVF have no lists to seal to, and small segments
    // would only add up.
    has_lists |=
        !next.segments.empty() && next.wanted_indexes[f] == IndexKind::kIvf &&
        next.QueriedIndex(0, static_cast<int>(f)).kind() == IndexKind::kIvf;
  }
  const RowTable* before = growing_.rows();
  const std::int64_t capacity =
      std::min(before == nullptr ? kFirstCapacity : 2 * before->capacity(),
               has_lists ? options_.merge_limits.seal_count : kMaxCapacity);
  growing_.AssignLists();
  growing_ = GrowingSegment(capacity, next);
}

void LiveCatalog::Publish(std::shared_ptr<Snapshot> next) {
  ResolveWantedIndexes(*next);
  next->publish_time = SteadyNow();
  current_ = std::move(next);
  published_.Store(current_);
  account_.Set(SnapshotMemory(*current_).sum());
}

void LiveCatalog::ResolveWantedIndexes(Snapshot& next) const {
  for (std::size_t f = 0; f < next.wanted_indexes.size(); ++f) {
    IndexKind kind = next.schema->key_fields[f].index_kind;
    if (kind == IndexKind::kAuto) {
      // Hysteresis: a catalog near the limit keeps its index until the number
      // of keys falls to half of it.
      const std::int64_t least = next.wanted_indexes[f] == IndexKind::kIvf
                                     ? options_.auto_ivf_min_count / 2
                                     : options_.auto_ivf_min_count;
      kind = next.key_count(static_cast<int>(f)) >= least ? IndexKind::kIvf
                                                          : IndexKind::kFlat;
    }
    next.wanted_indexes[f] = kind;
  }
}

absl::Status LiveCatalog::ReadStore(
    absl::FunctionRef<absl::Status(CatalogStore& store)> read) const {
  absl::Status status;
  const bool is_open =
      reads_.Read([&](CatalogStore& store) { status = read(store); });
  return is_open ? status : Deleted();
}

absl::Status LiveCatalog::VisitStored(
    std::span<const std::string> ids,
    absl::FunctionRef<absl::Status(StoredItem item)> visit) const {
  std::vector<absl::string_view> views;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (const absl::Status status = ValidateItemId(ids[i], ""); !status.ok()) {
      return PrefixField(status, absl::StrCat("ids[", i, "]"));
    }
    views.emplace_back(ids[i]);
  }
  return ReadStore([&](const CatalogStore& store) {
    return store.Get(
        views,
        [&](std::size_t i, std::optional<StoredItem> item) -> absl::Status {
          if (!item) return NoSuchItem(i, ids[i]);
          return visit(*std::move(item));
        });
  });
}

absl::Status LiveCatalog::VisitExisting(
    std::span<const std::string> ids,
    absl::FunctionRef<bool(StoredItem item)> visit) const {
  bool goes_on = true;
  const std::vector<absl::string_view> views(ids.begin(), ids.end());
  absl::Status status = ReadStore([&](const CatalogStore& store) {
    return store.Get(
        views,
        [&](std::size_t, std::optional<StoredItem> item) -> absl::Status {
          if (item) goes_on = visit(*std::move(item));
          return goes_on ? absl::OkStatus() : absl::CancelledError();
        });
  });
  return goes_on ? status : absl::OkStatus();
}

absl::Status LiveCatalog::VisitStoredAfter(
    absl::string_view after,
    absl::FunctionRef<bool(StoredItem item)> visit) const {
  return ReadStore(
      [&](const CatalogStore& store) { return store.Scan(after, visit); });
}

absl::Status LiveCatalog::Checkpoint(const std::string& directory) const {
  return ReadStore(
      [&](CatalogStore& store) { return store.Checkpoint(directory); });
}

absl::Status LiveCatalog::CheckKeys(const Snapshot& snapshot,
                                    const std::vector<NamedModel>& models) {
  for (std::size_t f = 0; f < models.size(); ++f) {
    if (models[f].model == snapshot.models[f].model) continue;
    const bool is_cosine =
        snapshot.schema->key_fields[f].score_kind == ScoreKind::kCosine;
    // Keys rarely need to be checked one by one: limits are near the greatest
    // float.
    const float least_norm = models[f].key_limit / 2;
    for (const SegmentView& view : snapshot.segments) {
      const KeyIndex& index = *view.segment->indexes[f];
      // For COSINE, max_norm may be that of normalised keys.
      if (!is_cosine && index.max_norm() < least_norm) continue;
      for (RowIndex row = 0; row < view.row_end; ++row) {
        if (!view.IsLive(row) || 1 / index.inverse_norm(row) < least_norm ||
            Within(index.Key(row), models[f].key_limit)) {
          continue;
        }
        return InvalidField(absl::StrCat("schema.key_fields[", f, "].model"),
                            absl::StrCat("a model of keys of at most ",
                                         models[f].key_limit, " in size"),
                            absl::StrCat("one that takes the key of item '",
                                         view.segment->rows->Id(row), "'"));
      }
    }
  }
  return absl::OkStatus();
}

void LiveCatalog::RaiseKeyLimits() {
  // A merge may be working with a model that is no longer wanted.
  if (merging_ != nullptr) return;
  for (std::size_t f = 0; f < key_limits_.size(); ++f) {
    key_limits_[f] =
        std::min({current_->models[f].key_limit, wanted_models_[f].key_limit,
                  accepted_models_[f].key_limit});
  }
}

absl::Status LiveCatalog::UpdateSchema(
    const CatalogSchema& wanted, std::vector<NamedModel> models,
    absl::FunctionRef<absl::Status()> store) {
  std::vector<NamedModel> accepted = models;
  {
    // Lowers the limit first, so that no write slips through while keys are
    // checked.
    MutexLock lock(&mutex_);
    accepted_models_.swap(accepted);
    for (std::size_t f = 0; f < models.size(); ++f) {
      key_limits_[f] = std::min(key_limits_[f], models[f].key_limit);
    }
  }
  bool stored = false;
  // Runs however the call ends, including std::bad_alloc.
  const absl::Cleanup end = [&] {
    MutexLock lock(&mutex_);
    if (!stored) accepted_models_.swap(accepted);
    RaiseKeyLimits();
  };
  std::shared_ptr<const Snapshot> now;
  {
    // Records the model that a restart should use, before anything names
    // another.
    MutexLock lock(&mutex_);
    now = current_;
    for (std::size_t f = 0; f < models.size(); ++f) {
      const NamedModel& active = now->models[f];
      if (active.model == models[f].model ||
          !ChangesStoredKeys(active.model.get(), models[f].model.get())) {
        continue;
      }
      ATTENDANT_RETURN_IF_ERROR(NoteActiveModel(f, active.name));
    }
  }
  ATTENDANT_RETURN_IF_ERROR(CheckKeys(*now, models));
  auto schema = std::make_shared<CatalogSchema>(*now->schema);
  for (std::size_t f = 0; f < wanted.key_fields.size(); ++f) {
    schema->key_fields[f].TakeDefaults(wanted.key_fields[f]);
  }
  schema->attributes = wanted.attributes;
  ATTENDANT_RETURN_IF_ERROR(store());
  stored = true;
  MutexLock lock(&mutex_);
  try {
    // Before anybody can write an item with further attributes.
    if (store_ != nullptr) store_->AdoptSchema(schema);
    // Also covers keys written meanwhile, so it cannot be done earlier.
    PublishSchema(std::move(schema), std::move(models));
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError(
        "out of memory for the change, which is stored: ask for it again");
  }
  return absl::OkStatus();
}

bool LiveCatalog::MayUse(const ModelName& model) const {
  MutexLock lock(&mutex_);
  const auto names_it = [&](const std::vector<NamedModel>& models) {
    return std::ranges::any_of(
        models, [&](const NamedModel& named) { return named.name == model; });
  };
  return names_it(current_->models) || names_it(wanted_models_) ||
         names_it(accepted_models_);
}

absl::Status LiveCatalog::NoteActiveModel(std::size_t field,
                                          const ModelName& model) {
  ATTENDANT_RETURN_IF_ERROR(CheckOpen());
  const std::string& name = record_.schema.key_fields[field].name;
  ATTENDANT_ASSIGN_OR_RETURN(const std::optional<ModelName> noted,
                             store_->GetActiveModel(name));
  if (noted == model) return absl::OkStatus();
  return store_->PutActiveModel(name, model);
}

void LiveCatalog::PublishSchema(std::shared_ptr<const CatalogSchema> schema,
                                std::vector<NamedModel> models) {
  auto next = std::make_shared<Snapshot>(*current_);
  next->schema = std::move(schema);
  for (std::size_t f = 0; f < models.size(); ++f) {
    NamedModel& active = next->models[f];
    const NamedModel& wanted = models[f];
    if (active.model != wanted.model &&
        ChangesStoredKeys(active.model.get(), wanted.model.get())) {
      if (!next->segments.empty()) continue;
      // If that fails, a restart begins with the previous model again, and
      // rebuilds what has been built until then.
      NoteActiveModel(f, wanted.name).IgnoreError();
    }
    // If there are no keys to project, the model takes effect immediately.
    active = wanted;
  }
  wanted_models_ = std::move(models);
  Publish(std::move(next));
  // This change may remove the cause of an earlier failure.
  merges_.EndPause();
  try {
    if (Plan(/*settled=*/true).needed()) {
      ScheduleMerge(absl::ZeroDuration());
    } else {
      ScheduleDue();
    }
  } catch (const std::bad_alloc&) {
    // The next write schedules it; the change itself is done.
  }
}

absl::Status LiveCatalog::SetEncoders(std::vector<FieldEncoder> encoders) {
  if (encoders.empty()) return absl::OkStatus();
  MutexLock lock(&mutex_);
  ATTENDANT_RETURN_IF_ERROR(CheckOpen());
  std::int64_t memory_bytes = 0;
  std::vector<CatalogStore::EncoderBytes> stored;
  for (const FieldEncoder& encoder : encoders) {
    memory_bytes += encoder.encoder.memory_bytes();
    stored.push_back({record_.schema.key_fields[encoder.field].name,
                      encoder.encoder.Serialize()});
  }
  ATTENDANT_ASSIGN_OR_RETURN(
      const MemoryBudget::Account room,
      MemoryBudget::ReserveIn(options_.memory, "the text encoders",
                              memory_bytes));
  auto next = std::make_shared<Snapshot>(*current_);
  for (FieldEncoder& encoder : encoders) {
    next->encoders[encoder.field] =
        std::make_shared<const TextEncoder>(std::move(encoder.encoder));
  }
  ATTENDANT_RETURN_IF_ERROR(store_->PutEncoders(stored));
  Publish(std::move(next));
  return absl::OkStatus();
}

std::vector<IndexState> LiveCatalog::index_states() const {
  const std::shared_ptr<const Snapshot> now = snapshot();
  std::vector<IndexState> states;
  for (std::size_t f = 0; f < now->wanted_indexes.size(); ++f) {
    IndexState state;
    state.training = (merge_scheduled_ || seal_scheduled_) &&
                     now->wanted_indexes[f] != IndexKind::kFlat;
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
  parts.database = store_figures().memory_bytes();
  return parts;
}

StoreFigures LiveCatalog::store_figures() const {
  StoreFigures figures;
  // Left at 0 after Close.
  ReadStore([&](const CatalogStore& store) {
    figures = store.figures();
    return absl::OkStatus();
  }).IgnoreError();
  return figures;
}

absl::Status LiveCatalog::save_status() const { return saves_.status(); }

absl::Status LiveCatalog::merge_status() const {
  absl::Status status = merges_.status();
  status.Update(seals_.status());
  return status;
}

CatalogRecord LiveCatalog::record() const {
  CatalogRecord record = record_;
  record.schema = *snapshot()->schema;
  return record;
}

void LiveCatalog::Discard() {
  discarded_ = true;
  Close();
}

void LiveCatalog::Close() {
  closing_ = true;
  reads_.Close();
  EndBackgroundWork();
  merged_away_.Close();
  MutexLock lock(&mutex_);
  merge_scheduled_ = false;
  seal_scheduled_ = false;
  changed_.NotifyAll();
  store_ = nullptr;
}

}  // namespace attendant
