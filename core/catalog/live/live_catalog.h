// A catalog that changes while it is read.
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
#include "core/catalog/live/retried_work.h"
#include "core/catalog/live/store_reads.h"
#include "core/catalog/live/write_queue.h"
#include "core/catalog/segments/growing_segment.h"
#include "core/catalog/segments/merge_plan.h"
#include "core/catalog/segments/snapshot.h"
#include "core/catalog/writes/write_condition.h"
#include "core/storage/records/item_patch.h"
#include "core/storage/records/store.h"

namespace attendant {

class SegmentFiles;

// Limit of the rows of all segments, including dead ones, since a merge may put
// them into one segment. Below 2^31, so that a RowIndex can hold the end of a
// block after the last row.
inline constexpr std::int64_t kMaxRows = 2'000'000'000;

struct LiveCatalogOptions {
  // The number of keys in a field from which AUTO wants an IVF index. Below it,
  // scoring every key is as fast. PlanQuery decides what is then asked of the
  // index.
  std::int64_t auto_ivf_min_count = 5000;
  // How long writes must pause before all segments become one (see PlanMerge);
  // retraining waits as long.
  absl::Duration settle_time = absl::Seconds(1);
  // Accounts for memory: writes that would not fit are refused, and merges are
  // postponed. Must outlive the catalog. Null: no accounting.
  MemoryBudget* memory = nullptr;
  // The clock that queries use as the current time. Must outlive the catalog's
  // snapshots.
  const Clock* clock = &Clock::System();
  // Delay before a merge that failed or was postponed for lack of memory is
  // retried. The delay grows up to 64-fold while the merge keeps failing.
  absl::Duration retry_time = absl::Seconds(5);
  // Once a restart would have to replay this many changes, segment files are
  // written even if nothing was merged.
  std::int64_t max_logged_changes = 65536;
  // How often indexes are asked whether there are new queries to learn from.
  absl::Duration learn_interval = absl::Seconds(5);
  MergeLimits merge_limits;
  // The number of changes made while a delete by filter searched from which it
  // searches again, instead of looking only at those. Bounds the memory for
  // their ids, and how long other writes wait; smaller in tests.
  std::int64_t max_reviewed_changes = 100'000;
  // Writes that would exceed this are refused; smaller in tests.
  std::int64_t max_row_count = kMaxRows;
};

// State of one key field's index.
struct IndexState {
  IndexKind active_kind = IndexKind::kFlat;
  // True while an index is being built, the build waits for writes to settle,
  // or keys of another model are being computed. Meanwhile the previous index
  // answers; if there is none, answers are exact.
  bool training = false;
  std::int64_t list_count = 0;
  std::int64_t probe_count = 0;
  std::optional<double> measured_recall;
  std::int64_t key_count = 0;
  ModelName active_model;
  // Keys projected by the field's models since the catalog was opened.
  std::int64_t projected_key_count = 0;
  // Totals over all segments: bytes in memory, and bytes of keys in files.
  std::int64_t memory_bytes = 0;
  std::int64_t disk_bytes = 0;
};

// How a catalog was recovered when it was opened.
struct Recovery {
  // Segments and rows loaded from files; the rest was read from the database.
  std::int64_t segment_count = 0;
  std::int64_t row_count = 0;
  // Items changed after the files were written.
  std::int64_t replayed_count = 0;
  // Why existing files were not used: DataLoss, or, for files that may be
  // intact, errors of reading them or lack of memory. Their segments are
  // rebuilt.
  absl::Status files_not_used = {};
  // Why keys of fields with keys_on_disk stay in memory until they are rebuilt.
  absl::Status keys_in_memory = {};
};

// Outcomes of an import, by item.
struct ImportOutcome {
  std::vector<absl::Status> statuses;  // one for each item
  std::int64_t sequence = 0;
};

// A list of segments, one of them growing. One writer publishes immutable
// snapshots. A write is synced in RocksDB before any snapshot shows it.
// Background work merges segments and trains indexes concurrently with queries;
// until it is done, answers are exact.
//
// Thread-safe. snapshot() takes no lock. Each write returns after it is synced
// and visible to the next snapshot(). Writes that arrive while another is being
// synced share the next sync (see WriteQueue): their sequences follow the order
// of arrival, and each has its own outcome; if the store fails, all of them
// fail.
class LiveCatalog {
 public:
  // Restores the segments from their files and later changes from the store;
  // without usable files, all items from the store. models [key fields] are
  // those that the record names and must fit (ValidateModelFits). `background`
  // must outlive the catalog. Errors of the store.
  static absl::StatusOr<std::unique_ptr<LiveCatalog>> Open(
      CatalogRecord record, std::vector<NamedModel> models,
      std::unique_ptr<CatalogStore> store, BackgroundWorker* background,
      const LiveCatalogOptions& options);

  // Waits for background work on this catalog to stop.
  ~LiveCatalog();

  std::shared_ptr<const Snapshot> snapshot() const { return published_.Load(); }

  // All writes: NotFound after Close; ResourceExhausted if the disk or memory
  // is full. A refused write is not applied.
  //
  // Upsert, Update, Delete and DeleteMatching are all or nothing and take one
  // sequence number. A repeat of a nonempty request_id with the same content
  // returns the first outcome. A refused write is not remembered; its repeat is
  // evaluated again. InvalidArgument names items[i] and the field, and is also
  // returned for a repeated id or a request_id used with other content. With
  // conditions, one for each item: AlreadyExists with reason ITEM_EXISTS or
  // Aborted with reason SEQUENCE_MISMATCH, naming the first condition that does
  // not hold. Errors of the interrupt, if it ends before the write has its
  // turn.
  absl::StatusOr<WriteOutcome> Upsert(
      std::span<const Item> items, absl::string_view request_id,
      std::span<const WriteCondition> conditions = {},
      const Interrupt& interrupt = {});
  // Changes parts of items. NotFound with reason ITEM_NOT_FOUND, naming
  // items[i]. A condition cannot be `absent`. If attributes change, the texts
  // of all attributes the item then has are limited to most_attribute_bytes.
  absl::StatusOr<WriteOutcome> Update(
      std::span<const ItemPatch> patches, absl::string_view request_id,
      std::span<const WriteCondition> conditions = {},
      std::int64_t most_attribute_bytes = kMaxAttributeBytes,
      const Interrupt& interrupt = {});
  // Deletes items. Errors name ids[i]. A condition cannot be `absent`.
  absl::StatusOr<WriteOutcome> Delete(
      std::span<const std::string> ids, absl::string_view request_id,
      std::span<const WriteCondition> conditions = {},
      const Interrupt& interrupt = {});
  // Deletes, as one write, all items that match the filter when the write is
  // applied. Other writes go on while most of them are searched for, which is
  // done again if too much was written meanwhile. The ids are held in memory
  // five times while it runs, plus about 200 bytes for each; ResourceExhausted
  // with reason MEMORY_LIMIT if that is much and there is no room. Errors of
  // ValidateFilter and of the interrupt, which ends the search.
  absl::StatusOr<WriteOutcome> DeleteMatching(const Filter& filter,
                                              absl::string_view request_id,
                                              const Interrupt& interrupt = {});
  // Returns when the current write, if any, is done.
  void AwaitWrite() { MutexLock lock(&mutex_); }

  // Writes each item independently, with one sync for all valid ones. If an id
  // repeats, the last item wins. With if_absent, items that exist are
  // AlreadyExists, and if an id repeats, the first wins. Returns an error only
  // if the store failed; nothing was applied then.
  absl::StatusOr<ImportOutcome> Import(std::span<const Item> items,
                                       bool if_absent = false);

  // Calls `visit` for each item, in the order of `ids`, until it returns an
  // error, which is returned. All items are read from one state of the store,
  // at least as new as snapshot(). NotFound names the first missing id.
  absl::Status VisitStored(
      std::span<const std::string> ids,
      absl::FunctionRef<absl::Status(StoredItem item)> visit) const;
  // Calls `visit` for each of these items that exists, in the order of `ids`,
  // until it returns false. Reads one state, as VisitStored.
  absl::Status VisitExisting(
      std::span<const std::string> ids,
      absl::FunctionRef<bool(StoredItem item)> visit) const;
  // Calls `visit` for items ordered by id, starting after `after`, until it
  // returns false. Reads one state, as VisitStored.
  absl::Status VisitStoredAfter(
      absl::string_view after,
      absl::FunctionRef<bool(StoredItem item)> visit) const;

  // Creates `directory`, which must not exist, as a database with everything
  // acknowledged before the call, and each later write as a whole or not at
  // all. NotFound after Close; errors of the store.
  absl::Status Checkpoint(const std::string& directory) const;

  // Adopts temperature, combine_kind, index_kind, keys_on_disk and model of
  // each field, and the attributes, which must begin with those there are,
  // after `store` has made them durable. Keys of another model are computed in
  // the background, and the model is swapped in when all exist; until then the
  // previous model answers and stays the store's active model. While `store`
  // runs, writes must satisfy the limits of both models. InvalidArgument if a
  // model is not certain to compute finite keys from all existing ones; errors
  // of `store`. After an error nothing has changed except what `store` did. The
  // same holds if memory runs out after `store`; writes must then satisfy both
  // limits until a restart or the next call.
  absl::Status UpdateSchema(const CatalogSchema& wanted,
                            std::vector<NamedModel> models,
                            absl::FunctionRef<absl::Status()> store);
  // True if the catalog answers by this model, or may do so later, even after a
  // restart. Waits for a running write.
  bool MayUse(const ModelName& model) const;
  struct FieldEncoder {
    int field = 0;
    TextEncoder encoder;  // of the field's dimension
  };
  // Stores the encoders, synced, and uses them; all or nothing.
  absl::Status SetEncoders(std::vector<FieldEncoder> encoders);

  // The following calls wait for no write and no merge.
  //
  // The number of the last write that was begun: above the snapshot's sequence
  // while that write is running.
  std::int64_t assigned_sequence() const { return assigned_sequence_; }
  // The number of writes that wait or are being synced.
  int waiting_write_count() const {
    return static_cast<int>(write_queue_.size());
  }
  std::vector<IndexState> index_states() const;
  // Why the last index build failed or was postponed, or OK. It is retried
  // automatically.
  absl::Status merge_status() const;
  // Why the segment files could not be written, or OK. Writing is retried
  // automatically, and after the next merge.
  absl::Status save_status() const;
  const Recovery& recovery() const { return recovery_; }
  // The current record. name() and uid() never change.
  CatalogRecord record() const;
  const std::string& name() const { return record_.name; }
  const std::string& uid() const { return record_.uid; }

  // By part, for the newest snapshot and the store.
  MemoryParts memory() const;
  // All 0 after Close.
  StoreFigures store_figures() const;
  std::int64_t memory_bytes() const { return memory().sum(); }

  // Blocks until no segment waits to be merged and no index to be trained. Does
  // not wait for writes to settle.
  void AwaitIndexes();

  // Releases the store after running reads and writes of it. Later reads and
  // writes are NotFound; snapshots stay usable.
  void Close();
  // Like Close, for a catalog whose files are deleted: no files are saved any
  // more.
  void Discard();

 private:
  struct PendingWrite;
  struct NextState;
  struct MergeStep;

  LiveCatalog(CatalogRecord record, std::vector<NamedModel> models,
              std::unique_ptr<CatalogStore> store, BackgroundWorker* background,
              const LiveCatalogOptions& options,
              std::shared_ptr<const Snapshot> empty);

  absl::Status LoadItems() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status Deleted() const;  // the error of calls after Close
  // Sets `next` to the content of the files plus later changes. Returns false
  // if there are no usable files.
  absl::StatusOr<bool> LoadSegments(Snapshot& next)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status CheckOpen() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Calls `read` with the store. NotFound after Close.
  absl::Status ReadStore(
      absl::FunctionRef<absl::Status(CatalogStore& store)> read) const;
  // Returns a write without a plan.
  static PendingWrite NewWrite(absl::string_view request_id,
                               std::uint64_t fingerprint,
                               const Interrupt& interrupt);
  // One search of DeleteMatching, and the delete. Returns nothing, with nothing
  // deleted, if the search is outdated when the write has its turn, unless
  // is_last: the items are then searched for under the mutex.
  absl::StatusOr<std::optional<WriteOutcome>> TryDeleteMatching(
      const Filter& filter, absl::string_view request_id,
      std::uint64_t fingerprint, const Interrupt& interrupt, bool is_last)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns the outcome of the request if it was written and published;
  // InvalidArgument if its content was different.
  absl::StatusOr<std::optional<WriteOutcome>> FindRepeat(
      absl::string_view request_id, std::uint64_t fingerprint) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Errors as Upsert. `field` is the name of the field that has the ids.
  absl::Status CheckConditions(const Snapshot& state,
                               std::span<const absl::string_view> ids,
                               std::span<const WriteCondition> conditions,
                               absl::string_view field) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Queues the write and waits until it was committed, alone or with others.
  absl::StatusOr<WriteOutcome> Submit(PendingWrite& pending)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Commits the first writes in line, as many as can go together: prepares the
  // next snapshot, writes to the store, and publishes once. Returns the number
  // of writes whose status is set. After an error none of them is visible.
  std::size_t CommitGroup(std::span<PendingWrite* const> line)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // False if the write must not be in one group with those before it.
  bool MayJoin(const PendingWrite& pending,
               std::span<PendingWrite* const> before,
               const Snapshot& state) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // ResourceExhausted if added_count more rows exceed the limit.
  absl::Status CheckRowCount(const Snapshot& state,
                             std::size_t added_count) const;
  // Adds the write to the group unless it is refused, a repeat or empty.
  absl::Status AddToGroup(PendingWrite& pending, NextState& next)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Apply(const StoreWrite& write, NextState& next)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status CutLog(std::int64_t sequence)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void AppendRow(Snapshot& next, const Item& item)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Called when the growing segment is full and not yet visible to readers:
  // moves the keys of fields with keys_on_disk to files, if the field has
  // enough keys for an index, so that a catalog need not fit into memory to be
  // opened. If the disk has no room, the keys stay in memory, provided memory
  // has room for more of them.
  absl::Status MoveLoadedKeys(const Snapshot& next)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // InvalidArgument naming "keys[...]" for a key beyond key_limits_, or, under
  // COSINE, one with a norm outside [kMinCosineNorm, kMaxCosineNorm].
  absl::Status CheckKeyLimits(const Item& item) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Recomputes key_limits_ once a model may no longer be in use.
  void RaiseKeyLimits() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // InvalidArgument if a key is too large for its field's model in `models`.
  static absl::Status CheckKeys(const Snapshot& snapshot,
                                const std::vector<NamedModel>& models);
  // Makes the store record which model produced the stored keys of a field;
  // synced.
  absl::Status NoteActiveModel(std::size_t field, const ModelName& model)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Publishes `schema`; `models` become the wanted models.
  void PublishSchema(std::shared_ptr<const CatalogSchema> schema,
                     std::vector<NamedModel> models)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void StartSegment(Snapshot& next) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Publish(std::shared_ptr<Snapshot> next)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ResolveWantedIndexes(Snapshot& next) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  MergePlan Plan(bool settled) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // True if the log of changes has grown long and may be cut, or if files could
  // not be written. If nothing is trained the log is not needed.
  bool IsSaveDue() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Schedules the seals and merges that are due. Retraining, and what waits for
  // writes to settle, is delayed.
  void ScheduleDue() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ScheduleSeal() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ScheduleMerge(absl::Duration delay)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void HurryMerge() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Checks again after `delay` whether something is to be merged.
  void ScheduleRetry(absl::Duration delay)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Notes the outcome of a seal or merge and schedules what comes next.
  void NoteOutcome(const absl::Status& outcome, RetriedWork& work)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Starts immediately what waits for a pause to end.
  void EndPauses() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Reserves memory for the duration of a merge. If there is none, the merge is
  // postponed and the status of `work` says so.
  absl::StatusOr<MemoryBudget::Account> ReserveMerge(const MergePlan& plan,
                                                     RetriedWork& work)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Completes a seal or merge step whose plan is set. False if it is postponed.
  bool BeginStep(MergeStep& step, RetriedWork& work)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Performs the merge, concurrently with queries and writes.
  absl::StatusOr<std::shared_ptr<const Segment>> Merged(
      const MergeStep& step) const ABSL_LOCKS_EXCLUDED(mutex_);
  // After a failed step: makes the segment that it took the growing one again,
  // unless there is a new one.
  void GiveBackGrowing(MergeStep& step) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Releases the segments of a step that had no memory to finish and is
  // retried: the retry may never come.
  void LetGo(std::shared_ptr<const Segment> LiveCatalog::*taken)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // False if the step computed keys by a model that has since been withdrawn
  // and may already be deleted.
  bool IsWanted(const MergeStep& step) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Publishes the result of a step if it is still wanted. Otherwise the caller
  // holds the only reference to `merged` and should free it where no write
  // waits.
  absl::Status EndStep(
      MergeStep& step,
      const absl::StatusOr<std::shared_ptr<const Segment>>& merged)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Call once closing_ is set. After it no task runs or is added.
  void EndBackgroundWork() ABSL_LOCKS_EXCLUDED(mutex_);
  void SealOnce() ABSL_LOCKS_EXCLUDED(mutex_);
  void RunMerge();
  // Returns the number of rows of the merged segment.
  std::int64_t MergeOnce();
  // Schedules learning from incoming queries, if any index can learn.
  void ScheduleLearning() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void LearnOnce() ABSL_LOCKS_EXCLUDED(mutex_);
  // Writes the files of segments and of what was learned, if it is worth it or
  // the log of changes has grown long, and cuts the log. If the log has grown
  // long and nothing is trained, removes the files. Uses `share` of the
  // processor unless somebody waits.
  void SaveSegments(bool worth_it, Share share) ABSL_LOCKS_EXCLUDED(mutex_);
  // `merged` is null if no row was left. After an error nothing is published.
  absl::Status PublishMerged(const std::shared_ptr<const Segment>& merged,
                             const MergeStep& step)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Gives the rows of a segment the head keys of another model.
  void ReprojectTail(SegmentView& view, int field, const NamedModel& model)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const CatalogRecord record_;  // with the schema's defaults as of Open
  BackgroundWorker* const background_;
  const LiveCatalogOptions options_;
  Published<Snapshot> published_;
  // Set without the lock to stop work at once. Tasks are added under mutex_
  // while closing_ is false.
  std::atomic<bool> closing_ = false;
  std::atomic<bool> discarded_ = false;
  std::atomic<std::int64_t> assigned_sequence_ = 0;  // written under mutex_

  WriteQueue<PendingWrite> write_queue_;

  // Reads that do not wait for a write that is being synced.
  StoreReads reads_;
  MergedAway merged_away_;

  mutable Mutex mutex_;
  mutable CondVar changed_;
  std::unique_ptr<CatalogStore> store_ ABSL_GUARDED_BY(mutex_);  // null: closed
  // The newest snapshot, which published_ holds too.
  std::shared_ptr<const Snapshot> current_ ABSL_GUARDED_BY(mutex_);
  GrowingSegment growing_ ABSL_GUARDED_BY(mutex_);
  // By field: the models that current_->models should become.
  std::vector<NamedModel> wanted_models_ ABSL_GUARDED_BY(mutex_);
  // By field: the model that may be wanted next, or that is stored as wanted
  // but could not be published; otherwise the wanted model.
  std::vector<NamedModel> accepted_models_ ABSL_GUARDED_BY(mutex_);
  // By field: the smallest key_limit of the models in use, wanted and accepted.
  std::vector<float> key_limits_ ABSL_GUARDED_BY(mutex_);
  // By field. Written under mutex_, or by the merge.
  std::vector<std::atomic<std::int64_t>> projected_key_counts_;
  // True while scheduled or running. Written under mutex_.
  std::atomic<bool> merge_scheduled_ = false;
  std::atomic<bool> seal_scheduled_ = false;
  bool learning_scheduled_ ABSL_GUARDED_BY(mutex_) = false;
  // The segment that is being learned from, or null, and whether learning
  // should stop because the segment is no longer used and only takes memory.
  // Set under mutex_.
  const Segment* learning_from_ ABSL_GUARDED_BY(mutex_) = nullptr;
  std::atomic<bool> stop_learning_ = false;
  // True if something was learned that no snapshot has yet, for example because
  // memory ran out. Used by LearnOnce only.
  bool learned_ = false;
  // The last segment of a running merge and the first of a running seal:
  // neither takes what the other has. Null: none.
  std::shared_ptr<const Segment> merging_ ABSL_GUARDED_BY(mutex_);
  std::shared_ptr<const Segment> sealing_ ABSL_GUARDED_BY(mutex_);
  RetriedWork merges_;
  RetriedWork seals_;
  RetriedWork saves_;  // of segments
  bool retry_scheduled_ ABSL_GUARDED_BY(mutex_) = false;
  SteadyTime next_retry_ ABSL_GUARDED_BY(mutex_);
  MemoryBudget::Account account_ ABSL_GUARDED_BY(mutex_);  // for current_
  Recovery recovery_;                                      // written by Open
  // Used by Open, and by the thread that saves while saving_segments_ is true.
  std::unique_ptr<SegmentFiles> segment_files_;
  bool saving_segments_ ABSL_GUARDED_BY(mutex_) = false;
  // The number of changes in the store's log that no file covers, and the write
  // after which the log begins.
  std::int64_t logged_change_count_ ABSL_GUARDED_BY(mutex_) = 0;
  std::int64_t log_begin_ ABSL_GUARDED_BY(mutex_) = 0;
  int await_count_ ABSL_GUARDED_BY(mutex_) = 0;
  SteadyTime last_write_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace attendant

#endif  // ATTENDANT_CORE_CATALOG_LIVE_LIVE_CATALOG_H_
