#include "service/queue/work_queue.h"

#include <algorithm>
#include <exception>
#include <new>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "core/base/status.h"
#include "service/queue/retry_delay.h"

namespace attendant {
namespace {

// Assumed time of a work while nothing is known.
constexpr std::int64_t kUnknownNs = 1000;

using Refusal = WorkQueue::Refusal;
using Cause = Refusal::Cause;

std::string FormatMilliseconds(absl::Duration duration) {
  return absl::StrCat(absl::ToInt64Milliseconds(duration), " ms");
}

absl::Status StatusOf(const Refusal& refusal) {
  switch (refusal.cause) {
    case Cause::kFull:
      return WithRetryDelay(
          StatusWithReason(
              absl::StatusCode::kResourceExhausted,
              absl::StrCat("too many requests wait already: got ",
                           refusal.waiting_count, ", want fewer than ",
                           refusal.waiting_limit, "; try again a little later"),
              kQueueFull),
          refusal.retry_delay);
    case Cause::kLate:
      return WithRetryDelay(
          StatusWithReason(
              absl::StatusCode::kResourceExhausted,
              absl::StrCat("the reply would take about ",
                           FormatMilliseconds(refusal.expected),
                           ", and the deadline is in ",
                           FormatMilliseconds(refusal.left),
                           ": allow more time, or try again a little later"),
              kWouldBeLate),
          refusal.retry_delay);
    case Cause::kEnded:
      break;
  }
  return refusal.ended;
}

std::int64_t AtMostASlice(std::int64_t ns) {
  return std::min(ns, absl::ToInt64Nanoseconds(WorkQueue::kSlice));
}

SteadyTime SliceEnd(SteadyTime now) {
  return now + absl::ToChronoNanoseconds(WorkQueue::kSlice);
}

bool MayPause(const Work& work) { return work.interrupt().yielder != nullptr; }

// Returns what a work is charged when its turn comes.
std::int64_t ChargeOf(const Work& work, std::int64_t expected_ns) {
  return MayPause(work) ? AtMostASlice(expected_ns) : expected_ns;
}

// If the work is no longer wanted, moves it to the refusal and returns true.
bool HasEnded(Work* work, SteadyTime now, Refusal& refusal) {
  refusal.ended = work->interrupt().EndedAt(now);
  if (refusal.ended.ok()) return false;
  refusal.cause = Cause::kEnded;
  refusal.work = work;
  return true;
}

}  // namespace

void WorkQueue::Refusal::Tell() const {
  if (work == nullptr) return;
  absl::Status status;
  try {
    status = StatusOf(*this);
  } catch (const std::exception&) {
    // Nobody else would tell the work, whose client would wait for ever.
    status = OutOfMemory();
  }
  work->Refuse(status);
}

WorkQueue::WorkQueue(const Options& options)
    : options_(options),
      limit_(options.max_waiting_count,
             static_cast<std::size_t>(options.thread_count)) {
  flows_of_turns_.reserve(static_cast<std::size_t>(options.thread_count));
}

Refusal WorkQueue::Add(Work* work, SteadyTime now) {
  ++counts_.offered_count;
  Refusal refusal;
  if (HasEnded(work, now, refusal)) {
    ++counts_.ended_waiting_count;
    return refusal;
  }
  const int flow = FairQueue::FlowOf(work->flow_);
  const std::int64_t expected_ns = ExpectedNs(flow);
  if (options_.refuses_late && !work->begun_ &&
      WouldBeLate(*work, now, flow, refusal)) {
    ++counts_.refused_late_count;
    times_[flow].Doubt();
    refusal.cause = Cause::kLate;
    refusal.work = work;
    refusal.retry_delay = RetryDelay(*work);
    return refusal;
  }
  if (!work->begun_ && IsFull(refusal)) {
    ++counts_.refused_full_count;
    limit_.Refused();
    refusal.cause = Cause::kFull;
    refusal.work = waiting_.PopFromLongest(*work, expected_ns);
    const bool is_longest = refusal.work == nullptr;
    if (is_longest) refusal.work = work;
    refusal.retry_delay = RetryDelay(*refusal.work);
    if (is_longest) return refusal;
  }
  work->place_.entered = now;
  waiting_.Push(work, expected_ns, ChargeOf(*work, expected_ns));
  return refusal;
}

Work* WorkQueue::Begin(SteadyTime now, Turn* turn, Refusal* refusal) {
  Work* work =
      waiting_.Pop([this](const Work& each) { return MayBegin(each); });
  if (work == nullptr) return nullptr;
  if (work->place_.paused != nullptr) {
    Resume(work, now);
    return nullptr;
  }
  if (HasEnded(work, now, *refusal)) {
    waiting_.Charge(FairQueue::FlowOf(work->flow_), -work->place_.charge_ns);
    ++counts_.ended_waiting_count;
    return nullptr;
  }
  turn->Begin(now);
  turn->may_pause = MayPause(*work);
  work->set_yield_time(turn->may_pause ? SliceEnd(now) : SteadyTime::max());
  ++busy_count_;
  turn->flow = work->flow_;
  if (limits_turns()) flows_of_turns_.push_back(turn->flow);
  Join(*turn, work, now);
  if (options_.limits_wait) SetLimit(*work, now);
  return work;
}

bool WorkQueue::MayBegin(const Work& work) const {
  if (!limits_turns() || work.place_.paused != nullptr) return true;
  const FlowKey& flow = work.flow_;
  int of_catalog = 0;
  int of_caller = 0;
  for (const FlowKey& turn : flows_of_turns_) {
    of_catalog += flow.catalog != 0 && turn.catalog == flow.catalog ? 1 : 0;
    of_caller += turn.caller == flow.caller ? 1 : 0;
  }
  const auto is_below = [](int count, int limit) {
    return limit == 0 || count < limit;
  };
  return is_below(of_catalog, options_.max_turns_of_catalog) &&
         is_below(of_caller, options_.max_turns_of_caller);
}

bool WorkQueue::can_begin() const {
  if (waiting_.count() == 0 || busy_count_ >= options_.thread_count) {
    return false;
  }
  return !limits_turns() ||
         waiting_.CanPop([this](const Work& each) { return MayBegin(each); });
}

void WorkQueue::TakeAlong(const Work& first, std::size_t most, SteadyTime now,
                          Works& taken) {
  Turn& turn = *first.place_.turn;
  const auto workers = static_cast<std::size_t>(options_.thread_count);
  const std::size_t share = (waiting_.count() + workers - 1) / workers;
  const std::size_t begin = taken.size();
  const std::size_t count =
      std::min({most, share, Turn::kMaxWorks - turn.count});
  if (count == 0) return;
  try {
    // Reserve first: works taken out of the queue must not be lost.
    taken.reserve(begin + count);
  } catch (const std::bad_alloc&) {
    return;  // They will have turns of their own.
  }
  waiting_.PopGroup(first.group(), count, taken);
  for (std::size_t i = begin; i < taken.size(); ++i) Join(turn, taken[i], now);
}

bool WorkQueue::ShouldPause(Work& work, SteadyTime now) {
  Turn& turn = *work.place_.turn;
  // A shared turn is not paused: that would delay several works.
  if (!turn.may_pause || turn.count > 1) {
    work.set_yield_time(SteadyTime::max());
    return false;
  }
  work.set_yield_time(SliceEnd(now));
  Turn::Member& member = turn.members[0];
  const std::int64_t ran_ns =
      absl::ToInt64Nanoseconds(absl::FromChrono(now - turn.begin));
  waiting_.Charge(member.flow, ran_ns - member.charged_ns);
  member.charged_ns = ran_ns;
  return waiting_.IsBehind(member.flow);
}

void WorkQueue::Pause(Work* work, SteadyTime now, CondVar* resumed) {
  Turn& turn = *work->place_.turn;
  turn.pause_time = now;
  --busy_count_;
  work->begun_ = true;
  work->place_.paused = resumed;
  // The work is in progress: the rest counts as little as while it runs.
  waiting_.Push(work, /*expected_ns=*/1, absl::ToInt64Nanoseconds(kSlice));
}

void WorkQueue::Resume(Work* work, SteadyTime now) {
  Turn& turn = *work->place_.turn;
  turn.begin += now - turn.pause_time;
  turn.resume_time = now;
  turn.members[0].charged_ns += work->place_.charge_ns;
  counts_.waited_ns +=
      absl::ToInt64Nanoseconds(absl::FromChrono(now - turn.pause_time));
  ++busy_count_;
  work->set_yield_time(SliceEnd(now));
  std::exchange(work->place_.paused, nullptr)->NotifyOne();
}

void WorkQueue::End(const Turn& turn, SteadyTime now) {
  --busy_count_;
  if (limits_turns()) {
    flows_of_turns_.erase(std::ranges::find(flows_of_turns_, turn.flow));
  }
  const std::int64_t turn_ns =
      absl::ToInt64Nanoseconds(absl::FromChrono(now - turn.begin));
  const auto count = static_cast<std::int64_t>(turn.count);
  const bool cut_short = turn.cut_short_count > 0;
  for (std::size_t i = 0; i < turn.count; ++i) {
    const Turn::Member& member = turn.members[i];
    waiting_.Charge(member.flow, turn_ns / count - member.charged_ns);
  }
  times_[turn.members[0].flow].Add(turn_ns, count, cut_short);
  all_times_.Add(turn_ns, count, cut_short);
  mean_turn_ns_ += (turn_ns - mean_turn_ns_) / (mean_turn_ns_ == 0 ? 1 : 8);
  const bool gives_way = turn.may_pause && turn.count == 1;
  const std::int64_t hold_ns = gives_way ? AtMostASlice(turn_ns) : turn_ns;
  mean_hold_ns_ += (hold_ns - mean_hold_ns_) / (mean_hold_ns_ == 0 ? 1 : 8);
  mean_turn_works_ += (static_cast<double>(count) - mean_turn_works_) / 8;
  counts_.run_count += count;
  ++counts_.turn_count;
  counts_.busy_ns += turn_ns;
  counts_.cut_short_count += turn.cut_short_count;
  counts_.overrun_ns += turn.overrun_ns;
  counts_.longest_overrun_ns =
      std::max(counts_.longest_overrun_ns, turn.longest_overrun_ns);
}

bool WorkQueue::Remove(Work* work) {
  if (work->place_.paused != nullptr || !waiting_.Remove(work)) return false;
  ++counts_.ended_waiting_count;
  return true;
}

bool WorkQueue::RemoveUnlessBegun(Work* work) {
  // begun_ may be changing while the work runs, so it is read only if the work
  // waits.
  const bool waits = work->place_.flow >= 0;
  return waits && !work->begun_ && Remove(work);
}

WorkCounts WorkQueue::counts() const {
  WorkCounts counts = counts_;
  counts.waiting_count = waiting_.count();
  counts.waiting_limit = limit_.limit();
  counts.busy_worker_count = busy_count_;
  return counts;
}

// Works of flows (callers, or their catalogs) with less waiting than the
// newcomer's all run before the newcomer's last work at the latest; of flows
// with more waiting, an equal amount runs.
bool WorkQueue::WouldBeLate(const Work& work, SteadyTime now, int flow,
                            Refusal& refusal) const {
  const SteadyTime deadline = work.interrupt().deadline;
  if (deadline == SteadyTime::max()) return false;
  // While a worker is free, everything is tried, so that times can be learned.
  // Works waiting for others of their catalog or caller do not take that
  // worker.
  const int free_count = options_.thread_count - busy_count_;
  if (free_count > 0 && MayBegin(work) &&
      (static_cast<int>(waiting_.count()) < free_count || !can_begin())) {
    return false;
  }
  // A work of unknown duration counts as 0, so it is tried.
  const std::int64_t fair_ns =
      (waiting_.ExpectedOfCaller(flow) + times_[flow].mean_ns()) *
      (waiting_.caller_count() + 1);
  const std::int64_t before_ns = std::min(waiting_.expected_ns(), fair_ns);
  // The workers may have begun their turns just now.
  refusal.expected = absl::Nanoseconds(WaitNs(work, before_ns) + mean_hold_ns_ +
                                       times_[flow].quick_ns());
  refusal.left = absl::FromChrono(deadline - now);
  return refusal.expected > refusal.left;
}

// Works of other callers may use the turns of its catalog too, so it may wait
// longer.
std::int64_t WorkQueue::WaitNs(const Work& work, std::int64_t before_ns) const {
  std::int64_t wait_ns = before_ns / options_.thread_count;
  if (!limits_turns()) return wait_ns;
  const FairQueue::Own own = waiting_.ExpectedOf(work.flow_);
  const auto wait_in = [&](int turn_count, std::int64_t own_ns) {
    if (turn_count == 0) return;
    wait_ns =
        std::max(wait_ns, own_ns / std::min(turn_count, options_.thread_count));
  };
  wait_in(options_.max_turns_of_caller, own.of_caller_ns);
  if (work.flow_.catalog != 0) {
    wait_in(options_.max_turns_of_catalog, own.of_catalog_ns);
  }
  return wait_ns;
}

absl::Duration WorkQueue::RetryDelay(const Work& work) const {
  return absl::Nanoseconds(WaitNs(work, waiting_.expected_ns()));
}

std::int64_t WorkQueue::ExpectedNs(int flow) const {
  const std::int64_t own_ns = times_[flow].mean_ns();
  return std::max(kUnknownNs, own_ns > 0 ? own_ns : all_times_.mean_ns());
}

void WorkQueue::SetLimit(const Work& work, SteadyTime now) {
  const absl::Duration target =
      std::max(kMinTarget, kTargetTurns * absl::Nanoseconds(mean_turn_ns_));
  const absl::Duration each =
      absl::Nanoseconds(std::max(kUnknownNs, all_times_.mean_ns()));
  const double in_target =
      options_.thread_count * absl::FDivDuration(target, each);
  limit_.Took(work.place_.entered, now, waiting_.count(), target,
              static_cast<std::size_t>(in_target), LeastLimit());
}

std::size_t WorkQueue::LeastLimit() const {
  return static_cast<std::size_t>(
      options_.thread_count *
      std::clamp(2 * mean_turn_works_, kMinWaiting, kMaxWaiting));
}

bool WorkQueue::IsFull(Refusal& refusal) const {
  refusal.waiting_count = waiting_.count() - waiting_.begun_count();
  refusal.waiting_limit = limit_.limit();
  if (refusal.waiting_count >= refusal.waiting_limit) return true;
  if (!options_.limits_wait ||
      waiting_.expected_ns() <=
          options_.thread_count * absl::ToInt64Nanoseconds(kLongestBurst)) {
    return false;
  }
  refusal.waiting_count = waiting_.count();
  refusal.waiting_limit = LeastLimit();
  return refusal.waiting_count >= refusal.waiting_limit;
}

void WorkQueue::Join(Turn& turn, Work* work, SteadyTime now) {
  work->place_.turn = &turn;
  turn.members[turn.count++] = {FairQueue::FlowOf(work->flow_),
                                work->place_.charge_ns};
  counts_.waited_ns +=
      absl::ToInt64Nanoseconds(absl::FromChrono(now - work->place_.entered));
}

}  // namespace attendant
