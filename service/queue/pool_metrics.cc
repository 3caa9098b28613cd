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
  page.AddGauge(
      "attendant_queue_depth",
      "Requests that wait for a worker, or for their turn to go on, by "
      "kind of work.",
      static_cast<double>(counts.waiting_count), labels);
  page.AddGauge("attendant_queue_limit",
                "Requests that may wait now, unless those that do take workers "
                "longer than 0.1 s: then no more queries may. Lower than "
                "--max-waiting: queries wait longer than they should.",
                static_cast<double>(counts.waiting_limit), labels);
  page.AddGauge("attendant_busy_workers", "Workers that work.",
                counts.busy_worker_count, labels);
  page.AddCounter(
      "attendant_queue_seconds_total",
      "How long requests waited for their turn, or for it to go on, in "
      "all.",
      Seconds(counts.waited_ns), labels);
  page.AddCounter("attendant_turns_total",
                  "Turns of workers: one or several requests each.",
                  static_cast<double>(counts.turn_count), labels);
  page.AddCounter("attendant_turns_elsewhere_total",
                  "Of those, turns of light queries on the threads that they "
                  "arrived on.",
                  static_cast<double>(counts.elsewhere_turn_count), labels);
  page.AddCounter("attendant_busy_seconds_total", "What turns took, in all.",
                  Seconds(counts.busy_ns), labels);
  const auto add_works = [&](const char* outcome, std::int64_t count) {
    MetricPage::Labels with_outcome = labels;
    with_outcome.emplace_back("outcome", outcome);
    page.AddCounter("attendant_works_total",
                    "Requests, and messages of streams, by what became of "
                    "them.",
                    static_cast<double>(count), with_outcome);
  };
  add_works("done", counts.run_count - counts.cut_short_count);
  add_works("cut_short", counts.cut_short_count);
  add_works("ended_waiting", counts.ended_waiting_count);
  add_works("queue_full", counts.refused_full_count);
  add_works("would_be_late", counts.refused_late_count);
  page.AddCounter("attendant_overrun_seconds_total",
                  "How long workers worked on for callers who were gone.",
                  Seconds(counts.overrun_ns), labels);
  page.AddGauge("attendant_longest_overrun_seconds",
                "The longest of that since the start.",
                Seconds(counts.longest_overrun_ns), labels);
}

}  // namespace attendant
