// One catalog that changes while it is read.
#ifndef ATTENDANT_CORE_CATALOG_LIVE_LIVE_CATALOG_H_
#define ATTENDANT_CORE_CATALOG_LIVE_LIVE_CATALOG_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "core/base/clock.h"
#include "core/base/memory_budget.h"
#include "core/base/memory_parts.h"
#include "core/base/mutex.h"
#include "core/base/published.h"
#include "core/base/spare_time.h"
#include "core/catalog/filter/filter.h"
#include "core/catalog/live/background.h"
#include "core/catalog/live/merged_away.h"
#include "core/catalog/live/store_reads.h"
#include "core/catalog/live/write_queue.h"
#include "core/catalog/segments/growing_segment.h"
#include "core/catalog/segments/merge_plan.h"
#include "core/catalog/segments/snapshot.h"
#include "core/storage/records/item_patch.h"
#include "core/storage/records/store.h"

namespace attendant {

class SegmentFiles;

// Of all segments, dead ones too: a merge may make one segment of them. Below
// 2^31, so that a RowIndex has room for the end of a block behind the last.
inline constexpr std::int64_t kMaxRows = 2'000'000'000;

struct LiveCatalogOptions {
  // AUTO wants an IVF index from so many keys in a field on; below, scoring
  // every key is as quick. What is asked of the index then is in PlanQuery.
  std::int64_t auto_ivf_min_count = 5000;
  // How long writes must have paused before all segments become one (see
  // PlanMerge); what learns anew waits as long.
  absl::Duration settle_time = absl::Seconds(1);
  // Where memory is counted, and asked for: writes that would not fit are
  // refused, and merges put off. Must outlive the catalog. Null: nowhere.
  MemoryBudget* memory = nullptr;
  // Whose time queries take for now. Must outlive the catalog's snapshots.
  const Clock* clock = &Clock::System();
  // When a merge that was put off for want of memory, or that failed, is tried
  // again; one that goes on failing after up to 64 times as long.
  absl::Duration retry_time = absl::Seconds(5);
  // From so many changes on that a restart would replay, files of segments are
  // written, though nothing was merged.
  std::int64_t max_logged_changes = 65536;
  // How often indexes are asked whether queries came that they may learn from.
  absl::Duration learn_interval = absl::Seconds(5);
  MergeLimits merge_limits;
  // Writes that lead to more are refused; fewer in tests.
  std::int64_t max_row_count = kMaxRows;
};

// State of one key field's index.
struct IndexState {
  IndexKind active_kind = IndexKind::kFlat;
  // An index is being built, or waits for writes to settle, or another
  // model's keys are being made. What was before answers meanwhile; where there
  // was no index, answers are exact.
  bool training = false;
  std::int64_t list_count = 0;
  std::int64_t probe_count = 0;
  std::optional<double> measured_recall;
  std::int64_t key_count = 0;
  ModelName active_model;
  // Keys that went through the field's models since the catalog was opened.
  std::int64_t projected_key_count = 0;
  // Of all segments: in memory, and keys in files.
  std::int64_t memory_bytes = 0;
  std::int64_t disk_bytes = 0;
};

// How a catalog came back.
struct Recovery {
  // From files; the rest was read from the database.
  std::int64_t segment_count = 0;
  std::int64_t row_count = 0;
  // Items changed after the files were written.
  std::int64_t replayed_count = 0;
  // Why files were not used, where there were some: DataLoss, or, of files that
  // may be sound, errors of reading them or want of memory. Their segments are
  // built anew.
  absl::Status files_not_used = {};
  // Why keys of fields with keys_on_disk are in memory until they are built.
  absl::Status keys_in_memory = {};
};

// Per-item outcome of an import.
struct ImportOutcome {
  std::vector<absl::Status> statuses;  // one an item
  std::int64_t sequence = 0;
};

// What must be so for an item to be written; nothing set: nothing.
struct WriteCondition {
  // There is no such item.
  bool absent = false;
  // There is, and its last write has this number (StoredItem::sequence), >= 0.
  std::optional<std::int64_t> sequence;
};

// Segments, one of them growing; one writer publishes immutable snapshots.
// A write is in RocksDB, synced, before any snapshot shows it. Background work
// merges segments and trains indexes beside the queries; until it is done,
// answers are exact.
//
// Thread-safe. snapshot() takes no lock. Each write returns after it is synced
// and visible to the next snapshot(). Writes that come while another is being
// synced share the next sync (see WriteQueue): they have sequences in the order
// in which they came, and an outcome each; where the store fails, they all do.
class LiveCatalog {
 public:
  // Brings back the segments from their files and what changed since from the
  // store; without usable files, all items from the store. models [key fields]
  // are what the record names, which fit (ValidateModelFits). `background` must
  // outlive the catalog. Errors of the store.
  static absl::StatusOr<std::unique_ptr<LiveCatalog>> Open(
      CatalogRecord record, std::vector<NamedModel> models,
      std::unique_ptr<CatalogStore> store, BackgroundWorker* background,
      const LiveCatalogOptions& options);

  // Waits for background work on this catalog to stop.
  ~LiveCatalog();

  std::shared_ptr<const Snapshot> snapshot() const { return published_.Load(); }

  // Writes are NotFound after Close, ResourceExhausted when the disk or memory
  // is full, and then not applied. Those before Import are all or nothing, take
  // one number, and return what they first did where a request_id, if not
  // empty, comes again with the same content; what was refused is not
  // remembered, and is looked at anew.
  //
  // InvalidArgument names items[i] and the field, also for a repeated id, or a
  // request_id that was used with other content. With conditions, one for each
  // item: AlreadyExists with reason ITEM_EXISTS or Aborted with reason
  // SEQUENCE_MISMATCH, naming the first that does not hold.
  absl::StatusOr<WriteOutcome> Upsert(
      std::span<const Item> items, absl::string_view request_id,
      std::span<const WriteCondition> conditions = {});
  // Changes parts of items. NotFound with reason ITEM_NOT_FOUND, naming
  // items[i]. A condition can't be `absent`. Where attributes change, all that
  // the item then has hold at most so much text.
  absl::StatusOr<WriteOutcome> Update(
      std::span<const ItemPatch> patches, absl::string_view request_id,
      std::span<const WriteCondition> conditions = {},
      std::int64_t most_attribute_bytes = kMaxAttributeBytes);
  // Names ids[i]. A condition can't be `absent`.
  absl::StatusOr<WriteOutcome> Delete(
      std::span<const std::string> ids, absl::string_view request_id,
      std::span<const WriteCondition> conditions = {});
  // Deletes the items that the filter is true of when the write has its turn:
  // any number, as one write. Its ids stand in memory five times while it is
  // under way, beside some 200 bytes for each: MEMORY_LIMIT where that is much
  // and there is no room for it. Errors of ValidateFilter and of the interrupt,
  // which ends the search.
  absl::StatusOr<WriteOutcome> DeleteMatching(const Filter& filter,
                                              absl::string_view request_id,
                                              const Interrupt& interrupt = {});
  // Returns when the write that is under way, if there is one, is done.
  void AwaitWrite() { MutexLock lock(&mutex_); }

  // Each item on its own; one synced write for all that are valid. A repeated
  // id: the last wins. With if_absent items that exist are AlreadyExists, and
  // of a repeated id the first wins. An error only if the store failed: nothing
  // was applied.
  absl::StatusOr<ImportOutcome> Import(std::span<const Item> items,
                                       bool if_absent = false);

  // Calls `visit` for each item, in the order of `ids`, from the store, all
  // from one state, at least as new as snapshot(), until it returns an error,
  // which is returned. NotFound names the first missing id.
  absl::Status VisitStored(
      std::span<const std::string> ids,
      absl::FunctionRef<absl::Status(StoredItem item)> visit) const;
  // The same in the order of ids after `after`, until it returns false.
  absl::Status VisitStoredAfter(
      absl::string_view after,
      absl::FunctionRef<bool(StoredItem item)> visit) const;

  // Makes `directory`, which does not exist, a database that holds what was
  // acknowledged before the call, and each later write whole or not at all.
  // NotFound after Close; errors of the store.
  absl::Status Checkpoint(const std::string& directory) const;

  // Takes over temperature, combine_kind, index_kind, keys_on_disk and model of
  // each field once `store` has made them durable. Another model is built in
  // the background and swapped in when all its keys are there; until then the
  // one before it answers, and is the store's active model. While `store` runs,
  // writes are held to the limits of both. InvalidArgument if a model can't be
  // sure to make finite keys of all that there are; errors of `store`. Then
  // nothing changes but what `store` did; so it is where memory ends after it,
  // and until a restart or the next call writes are held to both limits still.
  absl::Status SetDefaults(const std::vector<KeyFieldSchema>& key_fields,
                           std::vector<NamedModel> models,
                           absl::FunctionRef<absl::Status()> store);
  // True if the catalog answers by this model, or may come to do so, now or
  // after a restart. Waits for a write that is under way.
  bool MayUse(const ModelName& model) const;
  struct FieldEncoder {
    int field = 0;
    TextEncoder encoder;  // of the field's dimension
  };
  // Stores the encoders, synced, and uses them; all or none.
  absl::Status SetEncoders(std::vector<FieldEncoder> encoders);

  // These wait for no write and no merge.
  //
  // The number of the last write that was begun: above the snapshot's sequence
  // while it is under way.
  std::int64_t assigned_sequence() const { return assigned_sequence_; }
  // Writes that wait for their turn or are being synced.
  int waiting_write_count() const {
    return static_cast<int>(write_queue_.size());
  }
  std::vector<IndexState> index_states() const;
  // Why the last index build failed or was put off, or OK. It is tried again by
  // itself.
  absl::Status merge_status() const;
  // Why the files of segments could not be written, or OK. It is tried again by
  // itself, and after the next merge.
  absl::Status save_status() const;
  const Recovery& recovery() const { return recovery_; }
  // The record as it is now, and what never changes of it.
  CatalogRecord record() const;
  const std::string& name() const { return record_.name; }
  const std::string& uid() const { return record_.uid; }

  // By part, of the newest snapshot and the store.
  MemoryParts memory() const;
  // All 0 after Close.
  StoreFigures store_figures() const;
  std::int64_t memory_bytes() const { return memory().sum(); }

  // Blocks until no segment waits to be merged and no index to be trained;
  // does not wait for writes to settle.
  void AwaitIndexes();

  // Lets go of the store, after writes and reads of it under way: they are
  // NotFound from now on, snapshots stay usable.
  void Close();
  // The same of a catalog whose files go: none are saved any more.
  void Discard();

 private:
  // Of what failed, twice as long each time in a row.
  struct Pause {
    int failure_count = 0;
    SteadyTime end;

    bool IsOn() const;
    void Begin(absl::Duration first);
  };

  struct PendingWrite;
  struct NextState;
  struct MergeStep;

  LiveCatalog(CatalogRecord record, std::vector<NamedModel> models,
              std::unique_ptr<CatalogStore> store, BackgroundWorker* background,
              const LiveCatalogOptions& options,
              std::shared_ptr<const Snapshot> empty);

  absl::Status LoadItems() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status Deleted() const;  // the error of what comes after Close
  // Sets `next` to what files hold and what was changed since. False: there are
  // none, or they are of no use.
  absl::StatusOr<bool> LoadSegments(Snapshot& next)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status CheckOpen() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Calls `read` with the store. NotFound after Close.
  absl::Status ReadStore(
      absl::FunctionRef<absl::Status(CatalogStore& store)> read) const;
  // The remembered outcome of the request, if any; InvalidArgument if its
  // content was another.
  absl::StatusOr<std::optional<WriteOutcome>> FindRepeat(
      absl::string_view request_id, std::uint64_t fingerprint) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Errors as Upsert names them. `field` is that of the ids.
  absl::Status CheckConditions(const Snapshot& state,
                               std::span<const absl::string_view> ids,
                               std::span<const WriteCondition> conditions,
                               absl::string_view field) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Waits in line until the write was committed, alone or with others.
  absl::StatusOr<WriteOutcome> Submit(PendingWrite& pending)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Commits the first writes in line, as many as go together: prepares the next
  // snapshot, writes them to the store, and publishes once. Returns how many
  // have their status. After an error nothing of them is visible.
  std::size_t CommitGroup(std::span<PendingWrite* const> line)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // False where the write must not be in one group with those before it.
  bool MayJoin(const PendingWrite& pending,
               std::span<PendingWrite* const> before,
               const Snapshot& state) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // ResourceExhausted if so many rows more would be too many.
  absl::Status CheckRowCount(const Snapshot& state,
                             std::size_t added_count) const;
  // Adds the write to the group, if it is not refused, a repeat or empty.
  absl::Status AddToGroup(PendingWrite& pending, NextState& next)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Apply(const StoreWrite& write, NextState& next)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status CutLog(std::int64_t sequence)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void AppendRow(Snapshot& next, const Item& item)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Once the growing segment is full, and nobody reads it yet: the keys of
  // fields with keys_on_disk, where these have enough for an index, go to
  // files, so that a catalog need not fit into memory to be opened. Where the
  // disk does not take them they stay, if memory has room for more of them.
  absl::Status MoveLoadedKeys(const Snapshot& next)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // InvalidArgument naming "keys[...]" for a key beyond key_limits_, or not
  // from kMinCosineNorm to kMaxCosineNorm under COSINE.
  absl::Status CheckKeyLimits(const Item& item) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Makes key_limits_ what they should be once a model may be out of use.
  void RaiseKeyLimits() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // InvalidArgument if a key is too great for a field's model, one of `models`.
  static absl::Status CheckKeys(const Snapshot& snapshot,
                                const std::vector<NamedModel>& models);
  // Has the store keep which model the stored keys of a field are made by;
  // synced.
  absl::Status NoteActiveModel(std::size_t field, const ModelName& model)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The models become those that are wanted.
  void PublishDefaults(std::shared_ptr<const CatalogSchema> schema,
                       std::vector<NamedModel> models)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void StartSegment(Snapshot& next) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Publish(std::shared_ptr<Snapshot> next)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ResolveWantedIndexes(Snapshot& next) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  MergePlan Plan(bool settled) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Whether the log of changes has grown long and may be cut, or files could
  // not be written. Where nothing is trained the log is of no use.
  bool IsSaveDue() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Sees to it that what can be sealed or merged will be: what learns anew, or
  // waits for writes to settle, after a while.
  void ScheduleDue() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ScheduleSeal() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ScheduleMerge(absl::Duration delay)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void HurryMerge() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Room for what is under way; see MemoryBudget::Reserve.
  absl::StatusOr<MemoryBudget::Account> ReserveMemory(absl::string_view what,
                                                      std::int64_t bytes) const;
  // Looks again whether something is to be merged, after so long.
  void ScheduleRetry(absl::Duration delay)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Keeps what became of a seal or a merge, and sees to what comes next.
  void NoteOutcome(const absl::Status& status, Pause& pause,
                   Published<absl::Status>& place)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Begins at once what waits for a pause to end.
  void EndPauses() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Memory for a merge while it lasts. Where there is none the merge is put
  // off, and `status` says so.
  absl::StatusOr<MemoryBudget::Account> ReserveMerge(
      const MergePlan& plan, Published<absl::Status>& status)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Of a seal or merge whose plan is set: fills in the rest. False if it is put
  // off.
  bool BeginStep(MergeStep& step, Published<absl::Status>& status)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The work itself, beside queries and writes.
  absl::StatusOr<std::shared_ptr<const Segment>> Merged(
      const MergeStep& step) const ABSL_LOCKS_EXCLUDED(mutex_);
  // Of one that failed: rows go to the segment again that it took, unless there
  // is another since.
  void GiveBackGrowing(MergeStep& step) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Of one that had no memory for its end, and is done again: it may never be.
  void LetGo(std::shared_ptr<const Segment> LiveCatalog::*taken)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // False if it has made keys by a model that was taken back meanwhile, and may
  // be deleted by now.
  bool IsWanted(const MergeStep& step) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Publishes what came of it, if that is wanted still. Else the caller has
  // `merged` alone, to be freed where no write waits for it.
  absl::Status EndStep(
      MergeStep& step,
      const absl::StatusOr<std::shared_ptr<const Segment>>& merged)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Once closing_ is set: after it no task runs or will be added.
  void EndBackgroundWork() ABSL_LOCKS_EXCLUDED(mutex_);
  void SealOnce() ABSL_LOCKS_EXCLUDED(mutex_);
  void RunMerge();
  // The rows of the merged segment.
  std::int64_t MergeOnce();
  // Sees to it that indexes learn from the queries that come, if any may.
  void ScheduleLearning() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void LearnOnce() ABSL_LOCKS_EXCLUDED(mutex_);
  // Writes the files of segments and of what was learned, if it is worth it or
  // the log of changes has grown long, and cuts that; where it has and nothing
  // is trained, removes them. Takes this share of the processor unless somebody
  // waits.
  void SaveSegments(bool worth_it, Share share) ABSL_LOCKS_EXCLUDED(mutex_);
  // merged: null if no row was left. After an error nothing is published.
  absl::Status PublishMerged(const std::shared_ptr<const Segment>& merged,
                             const MergeStep& step)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Gives the rows of a segment the head keys of another model.
  void ReprojectTail(SegmentView& view, int field, const NamedModel& model)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const CatalogRecord record_;  // its schema's defaults as they were at Open
  BackgroundWorker* const background_;
  const LiveCatalogOptions options_;
  Published<Snapshot> published_;
  // Set without the lock, for what is to stop at once; tasks are added under
  // mutex_ while it is false.
  std::atomic<bool> closing_ = false;
  std::atomic<bool> discarded_ = false;
  std::atomic<std::int64_t> assigned_sequence_ = 0;  // written under mutex_

  WriteQueue<PendingWrite> write_queue_;

  // They don't wait for a write that is being synced.
  StoreReads reads_;
  MergedAway merged_away_;

  mutable Mutex mutex_;
  mutable CondVar changed_;
  std::unique_ptr<CatalogStore> store_ ABSL_GUARDED_BY(mutex_);  // null: closed
  // The newest snapshot, which published_ holds too.
  std::shared_ptr<const Snapshot> current_ ABSL_GUARDED_BY(mutex_);
  GrowingSegment growing_ ABSL_GUARDED_BY(mutex_);
  // By field: what current_->models should become.
  std::vector<NamedModel> wanted_models_ ABSL_GUARDED_BY(mutex_);
  // By field: what may be wanted next, or is stored as that and could not be
  // published; else what is wanted.
  std::vector<NamedModel> accepted_models_ ABSL_GUARDED_BY(mutex_);
  // By field: the least key_limit of its models, in use, wanted and accepted.
  std::vector<float> key_limits_ ABSL_GUARDED_BY(mutex_);
  // By field. Written under mutex_, or by the merge.
  std::vector<std::atomic<std::int64_t>> projected_key_counts_;
  // Scheduled or under way. Written under mutex_.
  std::atomic<bool> merge_scheduled_ = false;
  std::atomic<bool> seal_scheduled_ = false;
  bool learning_scheduled_ ABSL_GUARDED_BY(mutex_) = false;
  // What is learned from, or null, and whether it is of no use any more and
  // holds memory for nothing. Set under mutex_.
  const Segment* learning_from_ ABSL_GUARDED_BY(mutex_) = nullptr;
  std::atomic<bool> stop_learning_ = false;
  // What no snapshot has yet, as when memory failed. Of LearnOnce.
  bool learned_ = false;
  // The last segment of a merge under way, and the first of a seal: neither
  // takes what the other has. Null: none.
  std::shared_ptr<const Segment> merging_ ABSL_GUARDED_BY(mutex_);
  std::shared_ptr<const Segment> sealing_ ABSL_GUARDED_BY(mutex_);
  // Why the last merge failed; OK if it did not, or if nothing is to be merged
  // any more. Tried again by itself. Written under mutex_, as save_status_ is.
  Published<absl::Status> merge_status_{std::make_shared<const absl::Status>()};
  Published<absl::Status> seal_status_{std::make_shared<const absl::Status>()};
  bool retry_scheduled_ ABSL_GUARDED_BY(mutex_) = false;
  SteadyTime next_retry_ ABSL_GUARDED_BY(mutex_);
  Pause merge_pause_ ABSL_GUARDED_BY(mutex_);
  Pause seal_pause_ ABSL_GUARDED_BY(mutex_);
  Pause save_pause_ ABSL_GUARDED_BY(mutex_);
  MemoryBudget::Account account_ ABSL_GUARDED_BY(mutex_);  // of current_
  Published<absl::Status> save_status_{std::make_shared<const absl::Status>()};
  Recovery recovery_;  // written by Open
  // Used by Open, and by the thread that saves while saving_segments_.
  std::unique_ptr<SegmentFiles> segment_files_;
  bool saving_segments_ ABSL_GUARDED_BY(mutex_) = false;
  // Changes in the log of the store that no file covers, and the write after
  // which it begins.
  std::int64_t logged_change_count_ ABSL_GUARDED_BY(mutex_) = 0;
  std::int64_t log_begin_ ABSL_GUARDED_BY(mutex_) = 0;
  int await_count_ ABSL_GUARDED_BY(mutex_) = 0;
  SteadyTime last_write_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace attendant

#endif  // ATTENDANT_CORE_CATALOG_LIVE_LIVE_CATALOG_H_
