#include "service/handlers/attend_call.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/hash/hash.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "attendant/v1/attention_service.pb.h"
#include "core/base/status.h"
#include "service/calls/authorize.h"
#include "service/calls/call.h"
#include "service/calls/call_trace.h"
#include "service/calls/flow.h"
#include "service/calls/pooled_call.h"
#include "service/calls/read_after_write.h"
#include "service/calls/refused_call.h"
#include "service/calls/request_limits.h"
#include "service/convert/time.h"
#include "service/convert/wire.h"
#include "service/handlers/attend_jobs.h"

namespace attendant {
namespace {

// Maximum number of calls that one worker answers together: keys that are not
// in a cache are read once for all of them. Over 300,000 keys, throughput with
// 32 is 1.6 times that with 16; 64 adds another 1.1 times, but calls would wait
// half as long again.
constexpr std::size_t kMaxTogether = 32;
// Requests up to this size are parsed on arrival, to determine what they can
// share; larger ones only when their turn has come.
constexpr std::size_t kSmallRequestBytes = 16 << 10;
// Maximum memory of a parsed request that waits: it is not counted anywhere,
// and empty elements take 30 times their size.
constexpr std::size_t kMaxHeldBytes = 128 << 10;
// Maximum size of a shortlist that is light work.
constexpr int kMaxShared = 1000;

// Names the group of requests that a request can share passes with: requests
// that scan the keys of the same catalog in the same way; empty if there is
// none. The group may contain requests that are refused later.
std::string GroupOf(const v1::AttendRequest& request) {
  // Filtered queries may leave few items, or exclude few.
  const bool filtered = request.has_allow_list() || !request.filter().empty() ||
                        request.has_filter_expression();
  const bool masked = filtered || request.deny_list().ids_size() > 0 ||
                      (request.query().has_examples() &&
                       (!request.query().examples().has_exclude_examples() ||
                        request.query().examples().exclude_examples()));
  const bool alone = request.select_kind() == v1::SELECT_KIND_SAMPLE ||
                     request.biases_size() > 0 || request.has_model() ||
                     request.score_kind() == v1::SCORE_KIND_ADDITIVE;
  const bool large = request.heads_size() > 0 ||
                     request.result_count() > kMaxShared ||
                     request.shortlist_count() > kMaxShared;
  if (alone || large) return "";
  // Scans of all floats; of all codes; or of the nearest lists, which include
  // proven answers that need less than a whole scan.
  if (request.scan_mode() == v1::SCAN_MODE_EXACT ||
      request.mass_method() == v1::MASS_METHOD_EXACT) {
    const bool pools = request.pool_scope() == v1::WEIGHT_SCOPE_CATALOG;
    return filtered || pools ? "" : absl::StrCat("floats/", request.catalog());
  }
  if (masked) return "";
  const bool whole = request.has_mass_precision() || request.has_min_mass() ||
                     request.weight_scope() == v1::WEIGHT_SCOPE_CATALOG ||
                     request.pool_scope() == v1::WEIGHT_SCOPE_CATALOG ||
                     request.mass_method() == v1::MASS_METHOD_BOUND ||
                     request.recall() == 1;
  return absl::StrCat(whole ? "whole/" : "near/", request.catalog());
}

const Method& AttendMethod() {
  static const Method& method = FindMethod("Attend");
  return method;
}

class AttendCall final : public PooledCall {
 public:
  AttendCall(Backend& backend, WorkerPool& pool, LightQueries& light_queries,
             grpc::CallbackServerContext& context,
             const grpc::ByteBuffer& request, grpc::ByteBuffer& response)
      : PooledCall(backend, pool, AttendMethod(), context, request, response),
        light_queries_(light_queries) {}

  // Parses a small request. On OK the call may wait for its turn.
  absl::Status Prepare() {
    if (request_.Length() > kSmallRequestBytes) return absl::OkStatus();
    ATTENDANT_RETURN_IF_ERROR(Parse());
    if (HeldBytes() > kMaxHeldBytes) {
      // Parse it again when its turn has come, like a larger request.
      message_ = nullptr;
      DropMessages();
      return absl::OkStatus();
    }
    group_ = GroupOf(*message_);
    light_place_ = LightQueries::PlaceOf(group_, EffortOf(*message_));
    return absl::OkStatus();
  }

  // If the call is light and a worker is free, answers it on this thread and
  // returns true.
  bool TryRunHere(const FlowKey& flow) {
    if (group_.empty() ||
        !light_queries_.IsLight(light_place_, LightQueries::kMaxAlone)) {
      return false;
    }
    const bool beside_others =
        light_queries_.IsLight(light_place_, LightQueries::kMost);
    set_flow(flow);
    runs_here_ = true;
    // After it has run, the call may belong to another thread or be deleted.
    if (pool_.TryRunHere(this, beside_others)) return true;
    runs_here_ = false;
    return false;
  }

  absl::string_view group() const override { return group_; }

  void Run() override {
    Works calls = {this};
    // The pool holds no other works with groups. On gRPC's thread, no others
    // are taken along.
    const bool runs_here = std::exchange(runs_here_, false);
    if (!group_.empty() && !runs_here)
      pool_.TakeAlong(*this, kMaxTogether - 1, calls);
    // Each may have run before and waited for its token since.
    for (Work* call : calls) {
      static_cast<AttendCall*>(call)->alone_since_ =
          calls.size() == 1 ? SteadyNow() : SteadyTime::max();
    }
    const absl::Status status = RunHandler([&] { return Answer(calls); });
    // The failure may have been caused by one of the calls.
    const bool together = calls.size() > 1;
    for (Work* work : calls) {
      if (work == nullptr) continue;
      auto* call = static_cast<AttendCall*>(work);
      if (together) {
        call->RunAlone();
      } else {
        call->End(status);
      }
    }
  }

 private:
  void Describe(std::vector<LogField>& fields) const override {
    if (message_ != nullptr) {
      fields.emplace_back("catalog", message_->catalog());
    }
    v1::QueryPlan plan;
    TraceToProto(trace_, &plan);
    DurationToProto(record_.queue_duration(), plan.mutable_queue_duration());
    fields.emplace_back("plan", LogValue::Json(PlanToJson(plan)));
  }

  absl::Status Parse() {
    auto* message = NewMessage<v1::AttendRequest>();
    ATTENDANT_RETURN_IF_ERROR(ParseMessage(request_, message));
    message_ = message;
    ATTENDANT_RETURN_IF_ERROR(
        Authorize(backend_, grant(), record_.method(), *message_));
    return CheckLimits(backend_.limits, *message_);
  }

  void RunAlone() {
    Works calls = {this};
    const absl::Status status = RunHandler([&] { return Answer(calls); });
    if (calls[0] != nullptr) End(status);
  }

  // Answers calls of one group. Sets each to null when it is answered or waits
  // for the write that its token names, neither of which can fail. After an
  // error, the remaining calls are not answered yet.
  static absl::Status Answer(Works& calls) {
    const auto call_at = [&](std::size_t i) {
      return static_cast<AttendCall*>(calls[i]);
    };
    for (std::size_t i = 0; i < calls.size(); ++i) {
      call_at(i)->record_.BeginWork();
    }
    AttendCall& first = *call_at(0);
    if (first.message_ == nullptr) {
      ATTENDANT_RETURN_IF_ERROR(first.interrupt_.Check());
      ATTENDANT_RETURN_IF_ERROR(first.Parse());
    }
    Backend& backend = first.backend_;
    const auto reply = [&](std::size_t i, const absl::Status& status) {
      AttendCall* call = call_at(i);
      calls[i] = nullptr;
      call->Reply(status);
    };
    const auto catalog =
        FindCatalog(backend, first.message_->catalog(), "catalog");
    if (!catalog.ok()) {
      for (std::size_t i = 0; i < calls.size(); ++i) {
        reply(i, catalog.status());
      }
      return absl::OkStatus();
    }
    absl::InlinedVector<AttendJob, 1> jobs;
    absl::InlinedVector<std::size_t, 1>
        positions;  // index in `calls` of each job
    jobs.reserve(calls.size());
    positions.reserve(calls.size());
    for (std::size_t i = 0; i < calls.size(); ++i) {
      AttendCall* call = call_at(i);
      const absl::Status visible =
          CheckVisible(**catalog, call->message_->state_token(), "state_token");
      if (!visible.ok()) {
        calls[i] = nullptr;
        call->ReplyOrWait(visible);
        continue;
      }
      call->reply_ = call->NewMessage<v1::AttendResponse>();
      jobs.push_back({call->message_, &call->interrupt_,
                      &backend.max_message_bytes, call->reply_, &call->trace_});
      positions.push_back(i);
    }
    // Taken after all of them were found visible.
    const auto snapshot = (*catalog)->snapshot();
    AnswerJobs(backend, *snapshot, {jobs.data(), jobs.size()},
               [&](std::size_t job, const absl::Status& status) {
                 reply(positions[job], status);
               });
    return absl::OkStatus();
  }

  // May delete the object.
  void ReplyOrWait(const absl::Status& visible) noexcept {
    const absl::Status interrupted = interrupt_.Check();
    if (interrupted.ok() && TryAgainLater(visible)) return;
    Reply(interrupted.ok() ? visible : interrupted);
  }

  // May delete the object.
  void Reply(const absl::Status& answered) noexcept {
    End(RunHandler([&] {
      if (!answered.ok()) return answered;
      if (!group_.empty() && alone_since_ != SteadyTime::max()) {
        light_queries_.Took(light_place_, TimeSince(alone_since_));
      }
      if (reply_->has_plan()) {
        reply_->mutable_plan()->set_request_id(record_.request_id());
        DurationToProto(record_.queue_duration(),
                        reply_->mutable_plan()->mutable_queue_duration());
      }
      return SerialiseMessage(*reply_, backend_.max_message_bytes, &response_);
    }));
  }

  LightQueries& light_queries_;
  std::size_t light_place_ = 0;
  bool runs_here_ = false;  // the next turn is on gRPC's thread
  // When its last turn began, if it ran alone.
  SteadyTime alone_since_ = SteadyTime::max();
  v1::AttendRequest* message_ = nullptr;  // null: not parsed yet
  v1::AttendResponse* reply_ = nullptr;
  std::string group_;
  CallTrace trace_;
};

}  // namespace

std::uint64_t EffortOf(const v1::AttendRequest& request) {
  const auto magnitude = [](std::int64_t count) {
    return std::bit_width(
        static_cast<std::uint64_t>(std::max<std::int64_t>(count, 0)));
  };
  // Distinct from all exponents: for values that are not set or will be
  // refused.
  constexpr int kNone = 1 << 20;
  const auto scale = [](double number) {
    return number > 0 && std::isfinite(number) ? std::ilogb(number) : kNone;
  };
  constexpr double kSteps = 20;
  const auto share = [](double number) {
    const bool is_share = number > 0 && number <= 1;
    return is_share ? static_cast<int>(std::ceil(kSteps * number)) : 0;
  };
  return absl::HashOf(
      magnitude(std::max(request.result_count(), request.shortlist_count())),
      magnitude(request.probe_count()), share(request.recall()),
      // The closer a mass is to 1, the more work it takes.
      share(request.min_mass()), scale(1 - request.min_mass()),
      scale(request.mass_precision()), scale(request.temperature()),
      request.key_field(), int{request.score_kind()},
      int{request.activation_kind()}, int{request.mass_method()},
      int{request.weight_scope()}, int{request.pool_scope()},
      request.omit_pooled_value(), request.read_mask().paths_size(),
      magnitude(static_cast<std::int64_t>(request.query().text().size())));
}

grpc::ServerUnaryReactor* StartAttendCall(Backend& backend, WorkerPool& pool,
                                          LightQueries& light_queries,
                                          grpc::CallbackServerContext* context,
                                          const grpc::ByteBuffer* request,
                                          grpc::ByteBuffer* response) {
  if (backend.draining.load()) {
    return RefuseCall(backend, AttendMethod(), Draining(), *context);
  }
  auto* call = new AttendCall(backend, pool, light_queries, *context, *request,
                              *response);
  FlowKey flow;
  const absl::Status prepared = RunHandler([&] {
    ATTENDANT_RETURN_IF_ERROR(call->Prepare());
    flow = FlowOfCatalog(call->grant(), *context, *request);
    return absl::OkStatus();
  });
  if (!prepared.ok()) {
    call->Refuse(prepared);
    return call;
  }
  if (call->TryRunHere(flow)) {
    // The call may have been deleted.
    backend.poller_reserve->EndWork();
  } else {
    call->Enter(flow);
  }
  return call;
}

}  // namespace attendant
