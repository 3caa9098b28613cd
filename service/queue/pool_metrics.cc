#include "service/queue/pool_metrics.h"

#include <cstdint>
#include <string>

namespace attendant {
namespace {

double Seconds(std::int64_t ns) { return static_cast<double>(ns) * 1e-9; }

}  // namespace

void AddPoolMetrics(absl::string_view name, const WorkCounts& counts,
                    MetricPage& page) {
  const MetricPage::Labels labels = {{"pool", std::string(name)}};
  page.AddGauge("attendant_queue_depth",
                "Requests waiting for a worker or paused until their turn "
                "continues, by kind of work.",
                static_cast<double>(counts.waiting_count), labels);
  page.AddGauge("attendant_queue_limit",
                "Current limit on waiting requests; no further queries may "
                "wait while those that do exceed 0.1 s of work. Below "
                "--max-waiting: queries wait too long.",
                static_cast<double>(counts.waiting_limit), labels);
  page.AddGauge("attendant_busy_workers", "Busy workers.",
                counts.busy_worker_count, labels);
  page.AddCounter(
      "attendant_queue_seconds_total",
      "Total time requests waited for a worker or were paused, in seconds.",
      Seconds(counts.waited_ns), labels);
  page.AddCounter("attendant_turns_total",
                  "Turns of workers; a turn handles one or more requests.",
                  static_cast<double>(counts.turn_count), labels);
  page.AddCounter("attendant_turns_elsewhere_total",
                  "Turns in which a light query ran on the thread that "
                  "received it; included in attendant_turns_total.",
                  static_cast<double>(counts.elsewhere_turn_count), labels);
  page.AddCounter("attendant_busy_seconds_total",
                  "Total time workers were busy with turns, in seconds.",
                  Seconds(counts.busy_ns), labels);
  const auto add_works = [&](const char* outcome, std::int64_t count) {
    MetricPage::Labels with_outcome = labels;
    with_outcome.emplace_back("outcome", outcome);
    page.AddCounter("attendant_works_total",
                    "Requests and messages of streams, by outcome.",
                    static_cast<double>(count), with_outcome);
  };
  add_works("done", counts.run_count - counts.cut_short_count);
  add_works("cut_short", counts.cut_short_count);
  add_works("ended_waiting", counts.ended_waiting_count);
  add_works("queue_full", counts.refused_full_count);
  add_works("would_be_late", counts.refused_late_count);
  page.AddCounter(
      "attendant_overrun_seconds_total",
      "Total time workers kept working after the caller was gone, in seconds.",
      Seconds(counts.overrun_ns), labels);
  page.AddGauge("attendant_longest_overrun_seconds",
                "Longest time a worker kept working after the caller was gone, "
                "since the start, in seconds.",
                Seconds(counts.longest_overrun_ns), labels);
}

}  // namespace attendant
