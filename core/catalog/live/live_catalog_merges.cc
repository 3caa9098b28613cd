// Background work of a LiveCatalog: seals, merges, learning and segment files.
#include <malloc.h>

#include <algorithm>
#include <new>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/time/clock.h"
#include "core/base/fail_point.h"
#include "core/base/spare_time.h"
#include "core/base/status.h"
#include "core/catalog/live/live_catalog.h"
#include "core/catalog/live/rebuild.h"
#include "core/catalog/segments/head_keys.h"
#include "core/catalog/segments/segment_files.h"
#include "core/catalog/segments/snapshot_memory.h"

namespace attendant {
namespace {

// How often, a millisecond apart, a merge checks whether the segments it has
// merged are still being read. Queries take less time than that.
constexpr int kFreeLooks = 50;
// A merge that needs at most 1 / kShrinkage of the memory it frees runs even if
// memory is full; otherwise deletes would never free any.
constexpr std::int64_t kShrinkage = 4;
// Merges that leave this many rows return freed memory to the system. They take
// seconds.
constexpr std::int64_t kLongCount = 100000;

// Queries do not depend on retraining or on long merges, during which small
// segments are still merged. Without merges of small segments, and without any
// index, they become slow.
Share ShareOf(const MergePlan& plan, const Snapshot& snapshot) {
  if (!SegmentFiles::AnyTrained(snapshot)) return Share::kLow;
  std::int64_t row_count = 0;
  for (std::size_t i = plan.first; i < plan.end; ++i) {
    row_count += snapshot.segments[i].row_end;
  }
  return plan.retrains || row_count >= kLongCount ? Share::kIdle : Share::kLow;
}

// Returns the memory of a merge's source segments, which is free after it.
std::int64_t MergedBytes(const Snapshot& snapshot, const MergePlan& plan) {
  std::int64_t bytes = 0;
  for (std::size_t i = plan.first; i < plan.end; ++i) {
    bytes += SegmentMemory(*snapshot.segments[i].segment).sum();
  }
  return bytes;
}

bool AnyLearns(const Snapshot& snapshot) {
  bool any = false;
  for (const SegmentView& view : snapshot.segments) {
    ForEachIndex(*view.segment, [&](const KeyIndex& index) {
      any |= index.kind() == IndexKind::kIvf;
    });
  }
  return any;
}

bool Has(const Snapshot& snapshot, const Segment* segment) {
  return std::ranges::any_of(snapshot.segments,
                             [segment](const SegmentView& view) {
                               return view.segment.get() == segment;
                             });
}

// True if replacing `now` by `next` changes the stored keys of a field.
bool IsSwap(const NamedModel& next, const NamedModel& now) {
  return next.model != now.model &&
         ChangesStoredKeys(next.model.get(), now.model.get());
}

absl::Status NoMemoryToMerge() {
  return absl::ResourceExhaustedError("out of memory for a merge");
}

}  // namespace

MergePlan LiveCatalog::Plan(bool settled) const {
  const MergePlan plan = PlanMerge(*current_, wanted_models_, growing_.rows(),
                                   settled, options_.merge_limits);
  // Otherwise a few rows in the tail would keep the whole log from being cut,
  // for example if only deletes followed.
  const bool holds_log =
      logged_change_count_ >= options_.max_logged_changes && IsSaveDue();
  return !plan.needed() && holds_log ? PlanTail(*current_, growing_.rows())
                                     : plan;
}

bool LiveCatalog::IsSaveDue() const {
  const bool is_long = logged_change_count_ >= options_.max_logged_changes;
  if (closing_ || saves_.PauseLeft() || !(is_long || saves_.has_failed()) ||
      store_->segment_directory() == nullptr) {
    return false;
  }
  if (!SegmentFiles::AnyTrained(*current_)) return is_long;
  const std::optional<std::int64_t> covered = SegmentFiles::Covered(*current_);
  return covered && *covered >= log_begin_;
}

void LiveCatalog::ScheduleDue() {
  ScheduleSeal();
  if (const auto pause = saves_.PauseLeft()) ScheduleRetry(*pause);
  const MergePlan now = Plan(/*settled=*/false);
  if (now.needed() && !now.retrains) {
    ScheduleMerge(absl::ZeroDuration());
  } else if (IsSaveDue()) {
    ScheduleMerge(absl::ZeroDuration());
  } else if (now.needed() || Plan(/*settled=*/true).needed()) {
    ScheduleMerge(options_.settle_time);
  } else if (!merge_scheduled_) {
    // What may have failed is no longer wanted.
    merges_.SetStatus(absl::OkStatus());
  }
}

void LiveCatalog::ScheduleMerge(absl::Duration delay) {
  if (closing_) return;
  // Failed work is retried when its pause is over.
  if (const auto pause = merges_.PauseLeft()) return ScheduleRetry(*pause);
  if (await_count_ > 0) delay = absl::ZeroDuration();
  if (merge_scheduled_) {
    if (delay == absl::ZeroDuration()) HurryMerge();
    return;
  }
  // Queries without an index score every key, so they must not wait for merges
  // of other catalogs that have one and may take any time. No running merge can
  // give this catalog its first index before this task begins.
  background_->Add(
      this, delay, [this] { RunMerge(); },
      SegmentFiles::AnyTrained(*current_) ? Lane::kLong : Lane::kFirst);
  // Set only after the task was added, for which there may be no memory. The
  // task waits for mutex_, as do all that are scheduled here.
  merge_scheduled_ = true;
}

void LiveCatalog::HurryMerge() {
  background_->Hurry(this, Lane::kLong);
  background_->Hurry(this, Lane::kFirst);
}

void LiveCatalog::ScheduleSeal() {
  if (closing_ || seal_scheduled_) return;
  if (!PlanSeal(*current_, growing_.rows(), merging_.get(),
                options_.merge_limits)
           .needed()) {
    // Segments that could not be sealed have been merged.
    seals_.SetStatus(absl::OkStatus());
    return;
  }
  if (const auto pause = seals_.PauseLeft()) return ScheduleRetry(*pause);
  background_->Add(
      this, absl::ZeroDuration(), [this] { SealOnce(); }, Lane::kShort);
  seal_scheduled_ = true;
}

void LiveCatalog::RunMerge() {
  if (MergeOnce() < kLongCount) return;
  // Keys were held twice. Without trimming, the process keeps the freed blocks:
  // half as much again as all keys.
  malloc_trim(0);
}

absl::StatusOr<MemoryBudget::Account> LiveCatalog::ReserveMerge(
    const MergePlan& plan, RetriedWork& work) {
  if (options_.memory == nullptr) return MemoryBudget::Account();
  const std::int64_t bytes = MergeBytes(*current_, plan, wanted_models_);
  if (kShrinkage * bytes <= MergedBytes(*current_, plan)) {
    MemoryBudget::Account small = options_.memory->OpenAccount();
    small.Set(bytes);
    return small;
  }
  absl::StatusOr<MemoryBudget::Account> room =
      options_.memory->Reserve("an index build", bytes);
  if (room.ok()) return room;
  work.SetStatus(room.status());
  ScheduleRetry(options_.retry_time);
  return room;
}

void LiveCatalog::ScheduleRetry(absl::Duration delay) {
  const SteadyTime due = SteadyAfter(delay);
  if (closing_ || (retry_scheduled_ && next_retry_ <= due)) return;
  // Does not count as a scheduled merge, which others may wait for.
  background_->Add(
      this, delay,
      [this] {
        MutexLock lock(&mutex_);
        retry_scheduled_ = false;
        ScheduleDue();
      },
      Lane::kShort);
  retry_scheduled_ = true;
  next_retry_ = due;
}

void LiveCatalog::NoteOutcome(const absl::Status& outcome, RetriedWork& work) {
  work.Note(outcome, options_.retry_time);
  ScheduleDue();
}

// The parameters of a seal or merge, fixed when it begins.
struct LiveCatalog::MergeStep {
  MergePlan plan;
  std::shared_ptr<const Snapshot> before;  // the snapshot of the plan
  std::vector<NamedModel> models;
  ScratchFiles* files = nullptr;
  MemoryBudget::Account room;
  Share share = Share::kLow;
  // The last segment, if the step took it from the writes.
  GrowingSegment growing;
};

bool LiveCatalog::BeginStep(MergeStep& step, RetriedWork& work) {
  absl::StatusOr<MemoryBudget::Account> room = ReserveMerge(step.plan, work);
  if (!room.ok()) return false;
  step.room = *std::move(room);
  step.before = current_;
  step.models = step.plan.retrains ? wanted_models_ : current_->models;
  step.files = &store_->scratch_files();
  // From now on rows go to a new segment; existing rows can only be marked
  // dead.
  if (growing_.rows() == nullptr) return true;
  for (std::size_t i = step.plan.first; i < step.plan.end; ++i) {
    if (current_->segments[i].segment->rows.get() != growing_.rows()) continue;
    step.growing = std::exchange(growing_, {});
    break;
  }
  return true;
}

// Otherwise each failed step would leave a segment behind.
void LiveCatalog::GiveBackGrowing(MergeStep& step) {
  if (step.growing.rows() == nullptr || growing_.rows() != nullptr) return;
  // A segment that has received another model's keys is a different one.
  const Segment* last = current_->segments.empty()
                            ? nullptr
                            : current_->segments.back().segment.get();
  if (last != nullptr && last->rows.get() == step.growing.rows() &&
      last == step.before->segments.back().segment.get()) {
    growing_ = std::move(step.growing);
  }
}

absl::StatusOr<std::shared_ptr<const Segment>> LiveCatalog::Merged(
    const MergeStep& step) const {
  // Created while there is memory.
  const absl::Status no_memory = NoMemoryToMerge();
  try {
    absl::StatusOr<std::shared_ptr<const Segment>> merged = nullptr;
    RunInSpareTime(step.share, [&] {
      merged = MergeSegments(*step.before, step.plan, step.models, *step.files,
                             closing_);
    });
    return merged;
  } catch (const std::bad_alloc&) {
    return no_memory;
  }
}

bool LiveCatalog::IsWanted(const MergeStep& step) const {
  for (std::size_t f = 0; step.plan.retrains && f < step.models.size(); ++f) {
    if (step.models[f].model != wanted_models_[f].model &&
        IsSwap(step.models[f], current_->models[f])) {
      return false;
    }
  }
  return true;
}

absl::Status LiveCatalog::EndStep(
    MergeStep& step,
    const absl::StatusOr<std::shared_ptr<const Segment>>& merged) {
  // An unwanted result is not a failure: the wanted one is made next.
  if (!merged.ok() || !IsWanted(step)) {
    GiveBackGrowing(step);
    return merged.status();
  }
  absl::Status status = NoMemoryToMerge();
  try {
    status = PublishMerged(*merged, step);
  } catch (const std::bad_alloc&) {
    // Keeps the prepared status.
  }
  if (!status.ok()) GiveBackGrowing(step);
  return status;
}

void LiveCatalog::LetGo(std::shared_ptr<const Segment> LiveCatalog::*taken) {
  MutexLock lock(&mutex_);
  this->*taken = nullptr;
  changed_.NotifyAll();
}

void LiveCatalog::SealOnce() {
  MergeStep step;
  {
    MutexLock lock(&mutex_);
    step.plan = PlanSeal(*current_, growing_.rows(), merging_.get(),
                         options_.merge_limits);
    if (!step.plan.needed() || !BeginStep(step, seals_)) {
      seal_scheduled_ = false;
      changed_.NotifyAll();
      return;
    }
    sealing_ = step.before->segments[step.plan.first].segment;
  }
  absl::Cleanup without_memory = [this] { LetGo(&LiveCatalog::sealing_); };
  auto merged = Merged(step);
  ATTENDANT_FAIL_POINT("seal.before_publish");
  absl::Status status;
  {
    MutexLock lock(&mutex_);
    status = EndStep(step, merged);
    sealing_ = nullptr;
    changed_.NotifyAll();
  }
  std::move(without_memory).Cancel();
  ATTENDANT_FAIL_POINT("seal.after_publish");
  merged = nullptr;
  step.before = nullptr;
  step.growing = {};
  step.room = {};
  // A running merge may hold the merged segments for seconds, and checking
  // longer would delay the seals of other catalogs.
  merged_away_.Free(1);
  MutexLock lock(&mutex_);
  seal_scheduled_ = false;
  NoteOutcome(status, seals_);
  changed_.NotifyAll();
}

void LiveCatalog::ScheduleLearning() {
  if (closing_ || learning_scheduled_ || !AnyLearns(*current_)) return;
  // In a lane of its own, since queries become slow if merges wait.
  background_->Add(
      this, options_.learn_interval, [this] { LearnOnce(); }, Lane::kSpare);
  learning_scheduled_ = true;
}

void LiveCatalog::LearnOnce() {
  // Holds only weak references, so that segments merged meanwhile can be freed.
  std::vector<std::weak_ptr<const Segment>> segments;
  {
    const auto now = snapshot();
    for (const SegmentView& view : now->segments) {
      segments.push_back(view.segment);
    }
  }
  for (const std::weak_ptr<const Segment>& each : segments) {
    const std::shared_ptr<const Segment> segment = each.lock();
    if (segment == nullptr) continue;
    ForEachIndex(*segment, [&](const KeyIndex& index) {
      const std::int64_t bytes = index.learning_bytes();
      if (bytes == 0) return;
      const auto room =
          MemoryBudget::ReserveIn(options_.memory, "what is learned", bytes);
      if (!room.ok()) return;  // still due next time
      {
        MutexLock lock(&mutex_);
        if (closing_ || !Has(*current_, segment.get())) return;
        learning_from_ = segment.get();
        stop_learning_ = false;
      }
      // Uses the same share as a merge of as many rows. Learning that fails
      // stays due.
      RunInSpareTime(
          segment->rows->row_count() >= kLongCount ? Share::kIdle : Share::kLow,
          [&] { learned_ |= index.Learn(stop_learning_).value_or(false); });
    });
    MutexLock lock(&mutex_);
    learning_from_ = nullptr;
  }
  if (learned_) {
    {
      MutexLock lock(&mutex_);
      auto next = std::make_shared<Snapshot>(*current_);
      next->TakeKnownMasses();
      Publish(std::move(next));
    }
    learned_ = false;
    // Saves what was learned for a restart.
    SaveSegments(/*worth_it=*/true, Share::kIdle);
  }
  MutexLock lock(&mutex_);
  learning_scheduled_ = false;
  ScheduleLearning();
}

std::int64_t LiveCatalog::MergeOnce() {
  MergeStep step;
  MergePlan& plan = step.plan;
  bool begun = false;
  {
    MutexLock lock(&mutex_);
    while (true) {
      const bool settled =
          await_count_ > 0 || TimeSince(last_write_) >= options_.settle_time;
      plan = Plan(settled);
      // Waits for a running seal, if the plan includes its first segment or
      // later ones.
      if (!plan.TakesFrom(*current_, sealing_.get())) break;
      changed_.Wait(&mutex_);
    }
    begun = plan.needed() && BeginStep(step, merges_);
    if (begun) {
      step.share =
          await_count_ > 0 ? Share::kEven : ShareOf(plan, *step.before);
      merging_ = step.before->segments[plan.end - 1].segment;
    }
  }
  if (!begun) {
    SaveSegments(/*worth_it=*/false, Share::kIdle);
    MutexLock lock(&mutex_);
    merge_scheduled_ = false;
    // The retry of postponed work may have run meanwhile and found this merge
    // scheduled.
    if (plan.needed()) {
      ScheduleRetry(options_.retry_time);
    } else {
      ScheduleDue();
    }
    ScheduleLearning();
    changed_.NotifyAll();
    return 0;
  }
  absl::Cleanup without_memory = [this] { LetGo(&LiveCatalog::merging_); };
  auto merged = Merged(step);
  const std::int64_t row_count =
      merged.ok() && *merged != nullptr ? (*merged)->rows->row_count() : 0;
  ATTENDANT_FAIL_POINT("merge.before_publish");
  absl::Status status;
  {
    MutexLock lock(&mutex_);
    status = EndStep(step, merged);
    merging_ = nullptr;
    RaiseKeyLimits();
    ScheduleSeal();
  }
  std::move(without_memory).Cancel();
  ATTENDANT_FAIL_POINT("merge.after_publish");
  const bool all = plan.first == 0 && plan.end == step.before->segments.size();
  const bool was_trained = SegmentFiles::AnyTrained(*step.before);
  merged = nullptr;
  step.before = nullptr;
  step.growing = {};
  merged_away_.Free(kFreeLooks);
  step.room = {};
  // Low priority if trained, because first indexes of other catalogs wait
  // behind this one. Runs even if merges fail, so that the log cannot grow
  // forever.
  SaveSegments(/*worth_it=*/status.ok() && all,
               was_trained ? Share::kIdle : Share::kLow);
  MutexLock lock(&mutex_);
  merge_scheduled_ = false;
  NoteOutcome(status, merges_);
  ScheduleLearning();
  changed_.NotifyAll();
  return row_count;
}

absl::Status LiveCatalog::PublishMerged(
    const std::shared_ptr<const Segment>& merged, const MergeStep& step) {
  const MergePlan& plan = step.plan;
  const Snapshot& before = *step.before;
  const std::vector<NamedModel>& models = step.models;
  auto next = std::make_shared<Snapshot>(*current_);
  // Segments before the plan's may have been merged meanwhile.
  const auto first =
      std::ranges::find_if(next->segments, [&](const SegmentView& view) {
        return view.segment == before.segments[plan.first].segment;
      });
  // If a model was swapped in meanwhile, the segments have been replaced.
  if (first == next->segments.end()) return absl::OkStatus();
  std::vector<std::size_t> swapped;  // fields
  for (std::size_t f = 0; plan.retrains && f < models.size(); ++f) {
    // For models that store no keys, SetDefaults has already published the
    // newest.
    if (IsSwap(models[f], next->models[f])) swapped.push_back(f);
  }
  // Recorded before the model answers, since the previous one may be deleted
  // from then on.
  for (const std::size_t f : swapped) {
    ATTENDANT_RETURN_IF_ERROR(NoteActiveModel(f, models[f].name));
  }
  const auto end = first + static_cast<std::ptrdiff_t>(plan.end - plan.first);
  std::vector<SegmentView> views;
  if (merged != nullptr) {
    views.push_back(ViewOfMerged(merged, plan, before, {first, end}));
  }
  std::vector<std::shared_ptr<const Segment>> away;
  for (auto view = first; view != end; ++view) away.push_back(view->segment);
  merged_away_.Reserve(away.size());
  const auto place = next->segments.erase(first, end) - next->segments.begin();
  for (const std::size_t f : swapped) {
    if (StoredHeadCount(models[f].model.get()) > 0) {
      projected_key_counts_[f].fetch_add(before.key_count(static_cast<int>(f)),
                                         std::memory_order_relaxed);
    }
    for (SegmentView& tail : next->segments) {
      ReprojectTail(tail, static_cast<int>(f), models[f]);
    }
    next->models[f] = models[f];
  }
  next->segments.insert(next->segments.begin() + place, views.begin(),
                        views.end());
  // New writes must go to the new lists.
  if (plan.retrains) growing_ = {};
  next->TakeKnownMasses();
  Publish(std::move(next));
  // Added only now that nothing can fail, because a failed merge is repeated.
  merged_away_.Add(away);
  for (const auto& segment : away) {
    if (segment.get() == learning_from_) stop_learning_ = true;
  }
  return absl::OkStatus();
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
  view.segment = std::move(segment);
}

void LiveCatalog::EndPauses() {
  // The retry after an expired pause may not have run yet.
  if (!merges_.has_failed() && !seals_.has_failed()) return;
  merges_.EndPause();
  seals_.EndPause();
  ScheduleDue();
}

void LiveCatalog::AwaitIndexes() {
  MutexLock lock(&mutex_);
  ++await_count_;
  // Also runs if there is no memory to begin anything.
  const absl::Cleanup end = [this] {
    mutex_.AssertHeld();
    --await_count_;
  };
  EndPauses();
  while (merge_scheduled_ || seal_scheduled_) {
    // Hurries a merge that waits for writes to settle.
    HurryMerge();
    changed_.Wait(&mutex_);
  }
}

absl::Status LiveCatalog::CutLog(std::int64_t sequence) {
  ATTENDANT_RETURN_IF_ERROR(store_->CutChanges(sequence));
  log_begin_ = sequence;
  return absl::OkStatus();
}

void LiveCatalog::SaveSegments(bool worth_it, Share share) {
  // Created while there is memory.
  const absl::Status no_memory =
      absl::ResourceExhaustedError("out of memory to save segments");
  absl::Status status;
  std::shared_ptr<const Snapshot> snapshot;
  std::optional<std::int64_t> covered;
  bool is_trained = false;
  std::int64_t change_count = 0;
  {
    MutexLock lock(&mutex_);
    // Merges and learning run on two threads. A call that has little to save
    // does not wait for the other.
    while (true) {
      if (!worth_it && !IsSaveDue()) return;
      if (!saving_segments_) break;
      changed_.Wait(&mutex_);
    }
    if (await_count_ > 0) share = Share::kEven;
    change_count = logged_change_count_;
    if (store_->segment_directory() == nullptr) return;
    snapshot = current_;
    is_trained = SegmentFiles::AnyTrained(*snapshot);
    // A running merge that trains will need the log from its beginning on.
    if (!is_trained && (worth_it || merging_ != nullptr)) return;
    covered =
        is_trained ? SegmentFiles::Covered(*snapshot) : snapshot->sequence;
    if (!covered || *covered < log_begin_) return;
    saving_segments_ = true;
  }
  try {
    RunInSpareTime(share, [&] {
      status = is_trained
                   ? segment_files_->Save(*snapshot, *covered, discarded_)
                   : segment_files_->Clear();
    });
  } catch (const std::bad_alloc&) {
    status = no_memory;
  }
  MutexLock lock(&mutex_);
  saving_segments_ = false;
  changed_.NotifyAll();
  if (status.ok()) {
    logged_change_count_ -= change_count;
    status = CutLog(*covered);
    ATTENDANT_FAIL_POINT("segments.after_cut");
  }
  saves_.Note(status, options_.retry_time);
  if (!status.ok()) {
    ScheduleRetry(saves_.PauseLeft().value_or(absl::ZeroDuration()));
  }
}

}  // namespace attendant
