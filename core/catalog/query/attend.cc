#include "core/catalog/query/attend.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "core/base/clock.h"
#include "core/base/status.h"
#include "core/catalog/query/answer.h"
#include "core/catalog/query/query_plan.h"
#include "core/catalog/query/query_scan.h"
#include "core/catalog/query/scan.h"

namespace attendant {
namespace {

// A query in progress.
struct Pending {
  Pending(std::size_t position, QueryPlan planned, absl::Duration time)
      : task(position), plan(std::move(planned)), plan_duration(time) {}

  const std::size_t task;
  QueryPlan plan;
  const absl::Duration plan_duration;
  std::optional<QueryScan> scan;
};

absl::StatusOr<QueryPlan> Plan(const Snapshot& snapshot,
                               const AttendTask& task) {
  ATTENDANT_RETURN_IF_ERROR(task.interrupt->Check());
  return PlanQuery(snapshot, *task.query, *task.interrupt);
}

// Records the progress of a query that has no answer. `scan_duration` is that
// of a failed pass.
void NoteFailure(const Pending& query, const AttendTask& task,
                 absl::Duration scan_duration) {
  if (task.trace == nullptr) return;
  *task.trace = query.scan->trace();
  task.trace->plan_duration = query.plan_duration;
  task.trace->scan_duration += scan_duration;
}

absl::StatusOr<AttendAnswer> Answer(const Snapshot& snapshot, Pending& query,
                                    const AttendTask& task) {
  NoteFailure(query, task, absl::ZeroDuration());
  // The queries of a pass are answered one after the other, so time has passed.
  ATTENDANT_RETURN_IF_ERROR(task.interrupt->Check());
  const SteadyTime start = SteadyNow();
  absl::StatusOr<HeadScans> found = std::move(*query.scan).Found();
  absl::StatusOr<AttendAnswer> answer =
      found.ok()
          ? MakeAnswer(snapshot, query.plan, *std::move(found), *task.interrupt)
          : found.status();
  if (answer.ok()) {
    answer->trace.plan_duration = query.plan_duration;
    answer->trace.answer_duration = TimeSince(start);
  } else if (task.trace != nullptr) {
    task.trace->answer_duration = TimeSince(start);
  }
  return answer;
}

// Has inline room for a single query, so that a query asked alone allocates
// nothing.
using Waiting = absl::InlinedVector<Pending*, 1>;

// Moves the queries to scan next to the front and returns where they end: first
// those that read codes, then those that read floats, then the rest one by one.
Waiting::iterator FrontGroup(Waiting& left) {
  for (const Company company : {Company::kCodes, Company::kFloats}) {
    const auto end = std::stable_partition(
        left.begin(), left.end(), [company](const Pending* query) {
          return query->scan->company() == company;
        });
    if (end != left.begin()) return end;
  }
  return left.begin() + 1;
}

}  // namespace

void AttendTogether(const Snapshot& snapshot, std::span<const AttendTask> tasks,
                    AnswerSink answered) {
  absl::InlinedVector<Pending, 1> pending;
  pending.reserve(tasks.size());  // scans point to its elements
  Waiting left;
  for (std::size_t t = 0; t < tasks.size(); ++t) {
    const SteadyTime start = SteadyNow();
    absl::StatusOr<QueryPlan> plan = Plan(snapshot, tasks[t]);
    if (!plan.ok()) {
      if (tasks[t].trace != nullptr)
        tasks[t].trace->plan_duration = TimeSince(start);
      answered(t, plan.status());
      continue;
    }
    Pending& query =
        pending.emplace_back(t, *std::move(plan), TimeSince(start));
    query.scan.emplace(snapshot, query.plan, *tasks[t].interrupt);
    left.push_back(&query);
  }
  absl::InlinedVector<HeadScanTask, 1> scans;
  while (!left.empty()) {
    const auto end = FrontGroup(left);
    scans.clear();
    for (auto query = left.begin(); query != end; ++query) {
      scans.push_back((*query)->scan->NextTask());
    }
    const SteadyTime start = SteadyNow();
    ScanHeads(snapshot, {scans.data(), scans.size()});
    const absl::Duration time = TimeSince(start);
    auto kept = left.begin();
    for (std::size_t s = 0; s < scans.size(); ++s) {
      Pending& query = *left[s];
      if (!scans[s].scan.ok()) {
        NoteFailure(query, tasks[query.task], time);
        answered(query.task, scans[s].scan.status());
        continue;
      }
      const absl::Status status =
          query.scan->Take(*std::move(scans[s].scan), time);
      if (!status.ok()) {
        NoteFailure(query, tasks[query.task], absl::ZeroDuration());
        answered(query.task, status);
        continue;
      }
      if (!query.scan->done()) {
        *kept++ = &query;
        continue;
      }
      answered(query.task, Answer(snapshot, query, tasks[query.task]));
    }
    left.erase(kept, end);
  }
}

std::vector<absl::StatusOr<AttendAnswer>> AttendTogether(
    const Snapshot& snapshot, std::span<const AttendTask> tasks) {
  std::vector<absl::StatusOr<AttendAnswer>> answers(tasks.size());
  AttendTogether(snapshot, tasks,
                 [&](std::size_t task, absl::StatusOr<AttendAnswer> answer) {
                   answers[task] = std::move(answer);
                 });
  return answers;
}

absl::StatusOr<AttendAnswer> Attend(const Snapshot& snapshot,
                                    const AttendQuery& query,
                                    const Interrupt& interrupt) {
  const AttendTask task = {&query, &interrupt};
  return std::move(AttendTogether(snapshot, {&task, 1}).front());
}

}  // namespace attendant
