#include "service/calls/call_trace.h"

#include <google/protobuf/util/json_util.h>

#include <string>

#include "core/kernels/kernels.h"
#include "service/convert/enum.h"
#include "service/convert/time.h"

namespace attendant {

void TraceToProto(const CallTrace& trace, v1::QueryPlan* wire) {
  const AttendTrace& attend = trace.attend;
  DurationToProto(trace.read_duration, wire->mutable_read_duration());
  DurationToProto(attend.plan_duration, wire->mutable_plan_duration());
  DurationToProto(attend.scan_duration, wire->mutable_scan_duration());
  DurationToProto(attend.answer_duration, wire->mutable_answer_duration());
  DurationToProto(trace.reply_duration, wire->mutable_reply_duration());
  for (const ScanTrace& scan : attend.scans) {
    v1::ScanStep* step = wire->add_scans();
    step->set_head(scan.head);
    step->set_index_kind(EnumToProto<v1::IndexKind>(scan.index_kind));
    step->set_exhaustive(scan.exhaustive);
    if (scan.probe_count > 0) {
      step->set_probe_count(static_cast<std::int32_t>(scan.probe_count));
    }
    step->set_scored_count(scan.scored_count);
    step->set_visited_list_count(scan.visited_list_count);
    step->set_shared_query_count(scan.shared_query_count);
    DurationToProto(scan.time, step->mutable_scan_duration());
    step->set_not_enough_reason(std::string(scan.not_enough));
  }
  wire->set_candidate_count(attend.candidate_count);
  wire->set_segment_count(trace.segment_count);
  wire->set_kernel_level(std::string(KernelLevelName(ActiveKernelLevel())));
}

std::string PlanToJson(const v1::QueryPlan& plan) {
  google::protobuf::util::JsonPrintOptions options;
  options.preserve_proto_field_names = true;
  std::string json;
  const auto status =
      google::protobuf::util::MessageToJsonString(plan, &json, options);
  // Fails only for message types that a plan does not contain.
  if (!status.ok()) return "null";
  return json;
}

}  // namespace attendant
