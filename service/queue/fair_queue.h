// Works that wait, in an order that is fair to those who sent them.
#ifndef ATTENDANT_SERVICE_QUEUE_FAIR_QUEUE_H_
#define ATTENDANT_SERVICE_QUEUE_FAIR_QUEUE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"
#include "service/queue/work.h"

namespace attendant {

// Callers with works that wait get equal shares of the workers' time, and the
// catalogs of each caller equal shares of the caller's. Within a catalog of a
// caller: first in, first out.
//
// By start-time fair queueing (Goyal, Vin, Cheng 1996): each caller has a
// virtual time, which goes on by the time that its works take, and whose is
// least has the next turn. Who had nothing waiting starts at the time of the
// others: idleness saves nothing up. What a work takes is charged as expected
// when its turn comes and put right when it has ended; of one that may be
// paused a slice, and more as it goes on (see WorkQueue::Pause).
//
// Callers are told apart by hash, as in stochastic fairness queueing (McKenney
// 1990): kCallers lines of kCatalogs each. Two who fall into one line share
// it. So nothing is allocated for a caller or a work: works link to each other.
//
// Not thread-safe.
class FairQueue {
 public:
  static constexpr int kCallers = 128;
  static constexpr int kCatalogs = 8;
  static constexpr int kFlows = kCallers * kCatalogs;

  // The number of a key's line, in [0, kFlows).
  static int FlowOf(const FlowKey& key);

  // `work`, which waits nowhere, at the end of its line, or at the front if it
  // is paused: so few of a line are in their middle. expected_ns >= 1 is what
  // it is expected to take of a worker's time, charge_ns what it is charged
  // first.
  void Push(Work* work, std::int64_t expected_ns, std::int64_t charge_ns);
  void Push(Work* work, std::int64_t expected_ns) {
    Push(work, expected_ns, expected_ns);
  }

  // Which works may have a turn now.
  using MayBegin = absl::FunctionRef<bool(const Work& work)>;

  // The work that has the next turn of those that may begin, charged; null if
  // there is none.
  Work* Pop(MayBegin may_begin);
  Work* Pop() {
    return Pop([](const Work&) { return true; });
  }
  // True if Pop would find one.
  bool CanPop(MayBegin may_begin) const;

  // Adds to `taken` up to `most` works of a group, each charged: a share of
  // each caller, and of those who have more what others leave of theirs.
  void PopGroup(absl::string_view group, std::size_t most, Works& taken);

  // The newest work of whoever has the longest line by expected time, where
  // `newcomer` counts as waiting: null if that is the newcomer's own line, or
  // all works there were begun.
  Work* PopFromLongest(const Work& newcomer, std::int64_t expected_ns);

  // True if a work waits whose caller had less than the flow's, or of whose
  // catalog that caller had less.
  bool IsBehind(int flow) const;

  // Takes `work` out, if it waits here; else false.
  bool Remove(Work* work);

  // Charges a flow so much more than expected, or less (below 0).
  void Charge(int flow, std::int64_t more_ns);

  // Works that wait, and those of them that were begun.
  std::size_t count() const { return count_; }
  std::size_t begun_count() const { return begun_count_; }
  // What all of them are expected to take, and those of a flow's caller.
  std::int64_t expected_ns() const { return expected_ns_; }
  std::int64_t ExpectedOfCaller(int flow) const {
    return callers_[flow / kCatalogs].expected_ns;
  }
  // Callers with works that wait.
  int caller_count() const { return caller_count_; }

 private:
  struct Line {
    Work* first = nullptr;
    Work* last = nullptr;
    std::int64_t virtual_ns = 0;
    std::int64_t expected_ns = 0;
  };
  struct Caller {
    std::array<Line, kCatalogs> lines;
    std::int64_t virtual_ns = 0;
    std::int64_t expected_ns = 0;
    std::int64_t lines_now_ns = 0;     // of the line that was served last
    std::int64_t lines_latest_ns = 0;  // the greatest that was ever reached
    int count = 0;
  };

  Caller& CallerOf(int flow) { return callers_[flow / kCatalogs]; }
  Line& LineOf(int flow) {
    return callers_[flow / kCatalogs].lines[flow % kCatalogs];
  }
  // The work that is next of a caller's, or null.
  static Work* NextOf(const Caller& caller, MayBegin may_begin);
  void Unlink(Work* work);
  // Calls visit(caller) for each caller with works that wait, by number.
  template <typename Queue, typename Visit>
  static void ForEachWaiting(Queue& queue, const Visit& visit);

  std::array<Caller, kCallers> callers_;
  // A bit for each caller: set where works wait.
  std::array<std::uint64_t, kCallers / 64> waiting_ = {};
  std::size_t count_ = 0;
  std::size_t begun_count_ = 0;
  std::int64_t expected_ns_ = 0;
  int caller_count_ = 0;
  std::int64_t now_ns_ = 0;     // of the caller that was served last
  std::int64_t latest_ns_ = 0;  // the greatest that was ever reached
};

}  // namespace attendant

#endif  // ATTENDANT_SERVICE_QUEUE_FAIR_QUEUE_H_
