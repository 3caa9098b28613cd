#include "service/metrics/server_metrics.h"

#include <cstdint>

#include "absl/strings/string_view.h"

namespace attendant {
namespace {

// As named by the Prometheus middleware for gRPC in other languages, so that
// its dashboards work.
constexpr absl::string_view kCodeNames[] = {"OK",
                                            "Canceled",
                                            "Unknown",
                                            "InvalidArgument",
                                            "DeadlineExceeded",
                                            "NotFound",
                                            "AlreadyExists",
                                            "PermissionDenied",
                                            "ResourceExhausted",
                                            "FailedPrecondition",
                                            "Aborted",
                                            "OutOfRange",
                                            "Unimplemented",
                                            "Internal",
                                            "Unavailable",
                                            "DataLoss",
                                            "Unauthenticated"};

constexpr absl::string_view kBidi = "bidi_stream";

constexpr absl::string_view kShedReasons[] = {"queue_full", "would_be_late",
                                              "draining"};
static_assert(std::size(kShedReasons) == CounterFor<ShedReason>::kSize);

constexpr absl::string_view kKnownMasses[] = {"exact", "bound", "estimate",
                                              "unknown"};
static_assert(std::size(kKnownMasses) == CounterFor<KnownMass>::kSize);

template <typename Enum>
void WriteCounters(const CounterFor<Enum>& counters,
                   std::span<const absl::string_view> names,
                   absl::string_view name, absl::string_view help,
                   absl::string_view label, MetricPage& page) {
  for (std::size_t i = 0; i < names.size(); ++i) {
    const auto value =
        static_cast<double>(counters[static_cast<Enum>(i)].value());
    page.AddCounter(name, help, value, {{label, std::string(names[i])}});
  }
}

}  // namespace

CallMetrics::CallMetrics() { Seconds(0); }

CallMetrics::~CallMetrics() {
  for (auto& seconds : seconds_) delete seconds.load();
}

Histogram& CallMetrics::Seconds(std::size_t code) {
  std::atomic<Histogram*>& seconds = seconds_[code];
  Histogram* found = seconds.load(std::memory_order_acquire);
  if (found != nullptr) return *found;
  auto made = std::make_unique<Histogram>(SecondsBounds());
  if (!seconds.compare_exchange_strong(found, made.get(),
                                       std::memory_order_acq_rel)) {
    return *found;
  }
  return *made.release();
}

void CallMetrics::Handled(absl::StatusCode code, absl::Duration time) {
  const auto index = static_cast<std::size_t>(code);
  // gRPC passes on any code it is given; unknown ones count as Unknown.
  Seconds(index < kCodeCount ? index : 2).Observe(absl::ToDoubleSeconds(time));
}

void CallMetrics::Write(const Method& method, MetricPage& page) const {
  const MetricPage::Labels labels = {{"grpc_type", method.type},
                                     {"grpc_service", method.service},
                                     {"grpc_method", method.name}};
  page.AddCounter("grpc_server_started_total", "RPCs started.",
                  static_cast<double>(started.value()), labels);
  const bool reads = method.type == "client_stream" || method.type == kBidi;
  const bool writes = method.type == "server_stream" || method.type == kBidi;
  const std::int64_t succeeded = seconds_[0].load()->Read().count();
  page.AddCounter("grpc_server_msg_received_total", "RPC messages received.",
                  static_cast<double>((reads ? read : started).value()),
                  labels);
  page.AddCounter("grpc_server_msg_sent_total", "RPC messages sent.",
                  static_cast<double>(writes ? written.value() : succeeded),
                  labels);
  for (std::size_t code = 0; code < kCodeCount; ++code) {
    const Histogram* seconds = seconds_[code].load(std::memory_order_acquire);
    if (seconds == nullptr) continue;
    MetricPage::Labels with_code = labels;
    with_code.emplace_back("grpc_code", std::string(kCodeNames[code]));
    page.AddCounter("grpc_server_handled_total",
                    "RPCs completed, by status code.",
                    static_cast<double>(seconds->Read().count()), with_code);
    page.AddHistogram(
        "grpc_server_handling_seconds",
        "Time from an RPC's arrival to its last reply, in seconds.", *seconds,
        with_code);
  }
}

ServerMetrics::ServerMetrics(std::span<const Method> methods)
    : methods_(methods),
      calls_(std::make_unique<CallMetrics[]>(methods.size())) {}

void ServerMetrics::Write(MetricPage& page) const {
  for (const Method& method : methods_) {
    calls_[method.index].Write(method, page);
  }
  WriteCounters(
      shed, kShedReasons, "attendant_shed_total",
      "Requests refused for lack of capacity or during shutdown, by reason.",
      "reason", page);
  page.AddCounter("attendant_slow_queries_total",
                  "Queries that took --slow-query-ms or longer.",
                  static_cast<double>(slow_queries.value()));
  page.AddHistogram("attendant_batch_queries",
                    "Number of queries that a worker answered together.",
                    batch_queries);
  page.AddCounter("attendant_rows_scored_total",
                  "Keys scored by queries, from quantized codes or floats.",
                  static_cast<double>(rows_scored.value()));
  page.AddCounter("attendant_lists_visited_total",
                  "Inverted lists visited by queries.",
                  static_cast<double>(lists_visited.value()));
  page.AddHistogram("attendant_returned_mass",
                    "Share of the catalog's attention mass held by the "
                    "returned items, if known.",
                    returned_mass);
  page.AddHistogram(
      "attendant_shortlist_mass",
      "Share of the catalog's attention mass held by the shortlist, if known.",
      shortlist_mass);
  page.AddHistogram(
      "attendant_mass_interval_width",
      "Width of the interval around the shortlist's mass, if known.",
      mass_width);
  WriteCounters(masses, kKnownMasses, "attendant_answers_total",
                "Answers with softmax weights, by how their mass is known.",
                "mass", page);
}

}  // namespace attendant
