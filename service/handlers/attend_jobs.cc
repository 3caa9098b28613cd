#include "service/handlers/attend_jobs.h"

#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/time/time.h"
#include "core/base/clock.h"
#include "core/base/status.h"
#include "core/catalog/query/attend.h"
#include "service/convert/answer.h"
#include "service/convert/attend.h"
#include "service/convert/filter.h"
#include "service/convert/read_mask.h"
#include "service/convert/time.h"
#include "service/handlers/model_reference.h"

namespace attendant {
namespace {

// A request in core's form.
struct Asked {
  std::size_t job = 0;
  absl::Duration read_duration;
  AttendQuery query;
  ReadMask mask;
};

absl::StatusOr<Asked> Read(const Backend& backend, const Snapshot& snapshot,
                           const AttendJob& job) {
  // The deadline may have passed while the call waited.
  ATTENDANT_RETURN_IF_ERROR(job.interrupt->Check());
  const v1::AttendRequest& request = *job.request;
  Asked asked;
  ATTENDANT_ASSIGN_OR_RETURN(asked.query, AttendQueryFromProto(request));
  ATTENDANT_ASSIGN_OR_RETURN(
      asked.query.filter,
      FilterOfRequest(request, *snapshot.schema, backend.limits.filter_depth));
  if (request.has_model()) {
    ATTENDANT_ASSIGN_OR_RETURN(
        asked.query.model,
        FindModel(backend.catalogs->models(), request.model(), "model"));
  }
  ATTENDANT_ASSIGN_OR_RETURN(
      asked.mask, ReadMaskFromProto(request.read_mask(), *snapshot.schema));
  return asked;
}

KnownMass KnownMassOf(MassMethod method) {
  switch (method) {
    case MassMethod::kExact:
      return KnownMass::kExact;
    case MassMethod::kBound:
      return KnownMass::kBound;
    case MassMethod::kEstimate:
      return KnownMass::kEstimate;
    case MassMethod::kUnknown:
      return KnownMass::kUnknown;
  }
  return KnownMass::kUnknown;
}

void Count(const AttendAnswer& answer, ServerMetrics& metrics) {
  metrics.rows_scored.Add(answer.scored_count);
  metrics.lists_visited.Add(answer.visited_list_count);
  if (answer.activation_kind != ActivationKind::kSoftmax) return;
  const Mass& shortlist = answer.shortlist_mass;
  metrics.masses[KnownMassOf(shortlist.method)].Add();
  if (shortlist.method != MassMethod::kUnknown) {
    metrics.shortlist_mass.Observe(shortlist.value);
    metrics.mass_width.Observe(shortlist.upper_bound - shortlist.lower_bound);
  }
  if (answer.returned_mass.method != MassMethod::kUnknown) {
    metrics.returned_mass.Observe(answer.returned_mass.value);
  }
}

}  // namespace

void AnswerJobs(
    Backend& backend, const Snapshot& snapshot, std::span<const AttendJob> jobs,
    absl::FunctionRef<void(std::size_t job, absl::Status)> answered) {
  absl::InlinedVector<Asked, 1> asked;
  asked.reserve(jobs.size());
  for (std::size_t j = 0; j < jobs.size(); ++j) {
    const SteadyTime begin = SteadyNow();
    absl::StatusOr<Asked> read = Read(backend, snapshot, jobs[j]);
    if (!read.ok()) {
      jobs[j].trace->read_duration = TimeSince(begin);
      answered(j, read.status());
      continue;
    }
    asked.push_back(*std::move(read));
    asked.back().job = j;
    asked.back().read_duration = TimeSince(begin);
  }
  absl::InlinedVector<AttendTask, 1> tasks;
  tasks.reserve(asked.size());
  for (const Asked& each : asked) {
    const AttendJob& job = jobs[each.job];
    job.trace->read_duration = each.read_duration;
    job.trace->segment_count = static_cast<int>(snapshot.segments.size());
    tasks.push_back({&each.query, job.interrupt, &job.trace->attend});
  }
  if (!tasks.empty()) {
    backend.metrics.batch_queries.Observe(static_cast<double>(tasks.size()));
  }
  const SteadyTime begin = SteadyNow();
  AttendTogether(
      snapshot, {tasks.data(), tasks.size()},
      [&](std::size_t task, const absl::StatusOr<AttendAnswer>& answer) {
        const Asked& each = asked[task];
        if (!answer.ok()) return answered(each.job, answer.status());
        Count(*answer, backend.metrics);
        const SteadyTime made = SteadyNow();
        const AttendJob& job = jobs[each.job];
        v1::AttendResponse* response = job.response;
        const absl::Status status =
            AttendAnswerToProto(*answer, snapshot, each.mask, *job.max_bytes,
                                *job.interrupt, response);
        DurationToProto(absl::FromChrono(made - begin),
                        response->mutable_stats()->mutable_compute_duration());
        job.trace->reply_duration = TimeSince(made);
        job.trace->attend = answer->trace;
        if (job.request->explain()) {
          TraceToProto(*job.trace, response->mutable_plan());
        }
        answered(each.job, status);
      });
}

}  // namespace attendant
