// Works that arrive faster than they can be done.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <numeric>
#include <random>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "service/queue/wait_limit.h"
#include "service/queue/work_queue.h"
#include "tests/service/queue/fake_work.h"

namespace attendant {
namespace {

// Simulates workers, and callers independent of each other, in simulated time.
class Simulation {
 public:
  struct Options {
    int thread_count = 2;
    // A turn of n works takes turn_ms + n * work_ms; each work's time is
    // random.
    double turn_ms = 0.5;
    double work_ms = 1.5;
    bool shares_turns = true;
    // All workers stop this long at the start of each second.
    double stall_ms = 0;
    absl::Duration deadline = absl::InfiniteDuration();
  };
  struct Outcome {
    std::int64_t offered_count = 0;
    std::int64_t refused_count = 0;
    std::vector<double> served_ms;  // from the arrival, ascending
    std::size_t most_waiting = 0;

    double goodput(double seconds) const {
      return static_cast<double>(served_ms.size()) / seconds;
    }
    double p99() const { return served_ms[served_ms.size() * 99 / 100]; }
  };

  explicit Simulation(const Options& options)
      : options_(options),
        queue_({.thread_count = options.thread_count,
                .refuses_late = true,
                .limits_wait = true}),
        workers_(static_cast<std::size_t>(options.thread_count)) {}

  // Runs `rate` random works per second from four callers for `seconds`.
  Outcome Run(double rate, double seconds) {
    return Run({rate / 4, rate / 4, rate / 4, rate / 4}, seconds);
  }

  // The same with a rate for each caller.
  Outcome Run(const std::vector<double>& rates, double seconds) {
    Outcome outcome;
    served_by_caller_.assign(rates.size(), 0);
    const double end_ms = now_ms_ + 1000 * seconds;
    const double rate = std::accumulate(rates.begin(), rates.end(), 0.);
    std::discrete_distribution<std::uint64_t> caller(rates.begin(),
                                                     rates.end());
    double next_ms = now_ms_;
    while (true) {
      next_ms += 1000 * std::exponential_distribution<double>(rate)(random_);
      if (next_ms >= end_ms) break;
      RunUntil(next_ms, outcome);
      Arrive({caller(random_), 0}, outcome);
    }
    RunUntil(end_ms, outcome);
    std::ranges::sort(outcome.served_ms);
    return outcome;
  }

  // Results of the last Run.
  std::int64_t served_count(std::size_t caller) const {
    return served_by_caller_[caller];
  }

 private:
  struct Arrival {
    explicit Arrival(const FlowKey& flow, bool shares)
        : work(flow, shares ? "g" : "") {}
    FakeWork work;
    std::size_t caller = 0;
    double ms = 0;
  };
  struct Worker {
    Turn turn;
    Works works;
    double end_ms = 0;
    bool busy = false;
  };

  void Arrive(const FlowKey& flow, Outcome& outcome) {
    auto arrival = std::make_unique<Arrival>(flow, options_.shares_turns);
    arrival->ms = now_ms_;
    arrival->caller = flow.caller;
    if (options_.deadline != absl::InfiniteDuration()) {
      arrival->work.set_deadline(At(now_ms_) +
                                 absl::ToChronoNanoseconds(options_.deadline));
    }
    FakeWork* work = &arrival->work;
    arrivals_[work] = std::move(arrival);
    ++outcome.offered_count;
    const WorkQueue::Refusal refusal = queue_.Add(work, At(now_ms_));
    if (refusal.work != nullptr) {
      arrivals_.erase(refusal.work);
      ++outcome.refused_count;
    }
    outcome.most_waiting =
        std::max(outcome.most_waiting, queue_.waiting_count());
    BeginTurns();
  }

  void BeginTurns() {
    for (Worker& worker : workers_) {
      while (!worker.busy && queue_.waiting_count() > 0) {
        WorkQueue::Refusal refusal;
        Work* work = queue_.Begin(At(now_ms_), &worker.turn, &refusal);
        if (work == nullptr) {
          arrivals_.erase(refusal.work);
          continue;
        }
        worker.busy = true;
        worker.works = {work};
        if (options_.shares_turns) {
          queue_.TakeAlong(*work, 31, At(now_ms_), worker.works);
        }
        worker.end_ms = now_ms_ + options_.turn_ms;
        for (std::size_t i = 0; i < worker.works.size(); ++i) {
          worker.end_ms += std::exponential_distribution<double>(
              1 / options_.work_ms)(random_);
        }
        const double stalled_ms = std::fmod(now_ms_, 1000);
        if (stalled_ms < options_.stall_ms) {
          worker.end_ms += options_.stall_ms - stalled_ms;
        }
      }
    }
  }

  void RunUntil(double ms, Outcome& outcome) {
    while (true) {
      Worker* next = nullptr;
      for (Worker& worker : workers_) {
        if (!worker.busy || worker.end_ms > ms) continue;
        if (next == nullptr || worker.end_ms < next->end_ms) next = &worker;
      }
      if (next == nullptr) break;
      now_ms_ = next->end_ms;
      for (Work* work : next->works) {
        const double took_ms = now_ms_ - arrivals_[work]->ms;
        // Later replies are useless.
        if (absl::Milliseconds(took_ms) <= options_.deadline) {
          outcome.served_ms.push_back(took_ms);
          ++served_by_caller_[arrivals_[work]->caller];
        }
        arrivals_.erase(work);
      }
      next->busy = false;
      queue_.End(next->turn, At(now_ms_));
      BeginTurns();
    }
    now_ms_ = ms;
  }

  const Options options_;
  WorkQueue queue_;
  std::vector<Worker> workers_;
  std::map<Work*, std::unique_ptr<Arrival>> arrivals_;
  std::vector<std::int64_t> served_by_caller_;
  std::mt19937_64 random_{20261122};
  double now_ms_ = 0;
};

constexpr double kSeconds = 20;

// Returns the capacity in works per second: what is served of twice as many as
// could be.
double CapacityOf(const Simulation::Options& options) {
  return Simulation(options).Run(4000, kSeconds).goodput(kSeconds);
}

void ExpectKeepsItsRate(const Simulation::Options& options) {
  const double capacity = CapacityOf(options);
  Simulation simulation(options);
  const double calm_p99 = simulation.Run(0.7 * capacity, kSeconds).p99();
  for (const double times : {1., 2., 3., 5., 10.}) {
    SCOPED_TRACE(times);
    const Simulation::Outcome burst =
        simulation.Run(times * capacity, kSeconds);
    EXPECT_GE(burst.goodput(kSeconds), (times < 4 ? 0.9 : 0.8) * capacity);
    // At exactly the capacity, queues form and dissolve; each may last for a
    // while.
    const double standing_ms =
        times > 1 ? 0 : absl::ToDoubleMilliseconds(WaitLimit::kStanding);
    EXPECT_LE(burst.p99(), 3 * calm_p99 + standing_ms);
    // Two seconds later everything is normal again.
    simulation.Run(0.7 * capacity, 2);
    const Simulation::Outcome after = simulation.Run(0.7 * capacity, kSeconds);
    EXPECT_GE(static_cast<double>(after.served_ms.size()),
              0.99 * static_cast<double>(after.offered_count));
    EXPECT_LE(after.p99(), 1.2 * calm_p99);
  }
}

TEST(OverloadTest, KeepsItsRateWhereWorksShareTurns) {
  ExpectKeepsItsRate({.turn_ms = 3, .work_ms = 0.5});
}

TEST(OverloadTest, KeepsItsRateWhereEachWorkHasItsOwn) {
  ExpectKeepsItsRate({.turn_ms = 0, .work_ms = 2, .shares_turns = false});
}

TEST(OverloadTest, KeepsItsRateWhereWorksTakeLong) {
  ExpectKeepsItsRate({.turn_ms = 0, .work_ms = 25, .shares_turns = false});
}

TEST(OverloadTest, AMachineThatStandsStillForAMomentRefusesNobody) {
  Simulation::Options options;
  options.turn_ms = 0.2;
  options.work_ms = 0.1;
  const double rate = 0.4 * CapacityOf(options);
  options.stall_ms = 40;
  const Simulation::Outcome outcome = Simulation(options).Run(rate, kSeconds);
  EXPECT_GE(outcome.most_waiting, 0.03 * rate);
  EXPECT_EQ(outcome.refused_count, 0);
}

// Callers that have given up do not benefit from a late reply.
TEST(OverloadTest, WhatIsServedMeetsItsDeadline) {
  const Simulation::Options patient = {.turn_ms = 3, .work_ms = 0.5};
  const double capacity = CapacityOf(patient);
  const auto goodput = [&](absl::Duration deadline) {
    Simulation::Options hasty = patient;
    hasty.deadline = deadline;
    return Simulation(hasty).Run(3 * capacity, kSeconds).goodput(kSeconds);
  };
  // Time for three full turns of 19 ms, and for two.
  EXPECT_GE(goodput(absl::Milliseconds(60)), 0.8 * capacity);
  EXPECT_GE(goodput(absl::Milliseconds(40)), 0.6 * capacity);
}

TEST(OverloadTest, ACallerOfTooManyWorksIsTheOneRefused) {
  Simulation::Options options;
  options.turn_ms = 0;
  options.work_ms = 2;
  options.shares_turns = false;
  const double capacity = CapacityOf(options);
  Simulation simulation(options);
  const double share = capacity / 4;
  const Simulation::Outcome outcome =
      simulation.Run({share, 5 * capacity, share}, kSeconds);
  EXPECT_GE(outcome.goodput(kSeconds), 0.95 * capacity);
  for (const std::size_t polite : {0, 2}) {
    EXPECT_GE(static_cast<double>(simulation.served_count(polite)),
              0.97 * share * kSeconds);
  }
}

}  // namespace
}  // namespace attendant
