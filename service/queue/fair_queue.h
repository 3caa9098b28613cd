// A queue of waiting works that is fair to their senders.
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

// Callers with waiting works get equal shares of the workers' time, and the
// catalogs of a caller equal shares of the caller's time. Works of the same
// caller and catalog are served first in, first out.
//
// Start-time fair queueing (Goyal, Vin, Cheng 1996): each caller has a virtual
// time, which advances by the time its works take, and the caller with the
// smallest virtual time has the next turn. A caller that had nothing waiting
// starts at the virtual time of the others, so idle time earns no credit. A
// work is charged its expected time when its turn comes, which is corrected
// when it has ended. A work that may be paused is charged one slice, and more
// as it runs (see WorkQueue::Pause).
//
// Callers are distinguished by hash, as in stochastic fairness queueing
// (McKenney 1990): there are kCallers lines of kCatalogs each, and callers
// whose hashes collide share a line. So neither callers nor works need
// allocation: works link to each other.
//
// Not thread-safe.
class FairQueue {
 public:
  static constexpr int kCallers = 128;
  static constexpr int kCatalogs = 8;
  static constexpr int kFlows = kCallers * kCatalogs;

  // Returns the flow of a key, the number of its line, in [0, kFlows).
  static int FlowOf(const FlowKey& key);

  // Adds `work`, which must not be waiting, to the end of its line, or to the
  // front if it is paused, so that few works of a line are half-done.
  // expected_ns >= 1 is the worker time it is expected to take, charge_ns the
  // initial charge.
  void Push(Work* work, std::int64_t expected_ns, std::int64_t charge_ns);
  void Push(Work* work, std::int64_t expected_ns) {
    Push(work, expected_ns, expected_ns);
  }

  // Decides which works may have a turn now.
  using MayBegin = absl::FunctionRef<bool(const Work& work)>;

  // Removes and charges the work that has the next turn among those that may
  // begin; returns null if there is none.
  Work* Pop(MayBegin may_begin);
  Work* Pop() {
    return Pop([](const Work&) { return true; });
  }
  // True if Pop would return a work.
  bool CanPop(MayBegin may_begin) const;

  // Appends to `taken` up to `most` works of a group and charges each. Every
  // caller first contributes up to an equal share; callers with more works then
  // fill what others leave.
  void PopGroup(absl::string_view group, std::size_t most, Works& taken);

  // Removes and returns the newest work that has not begun from the line with
  // the longest expected time, counting `newcomer` as waiting. Null if that is
  // the newcomer's own line, or all works of the line have begun.
  Work* PopFromLongest(const Work& newcomer, std::int64_t expected_ns);

  // True if a work waits whose caller has had less than the flow's caller, or
  // whose catalog has had less of that caller's time than the flow's.
  bool IsBehind(int flow) const;

  // Removes `work` if it waits here; otherwise returns false.
  bool Remove(Work* work);

  // Corrects the charge of a flow by `more_ns`, which may be negative.
  void Charge(int flow, std::int64_t more_ns);

  // Number of waiting works, and of those among them that have begun.
  std::size_t count() const { return count_; }
  std::size_t begun_count() const { return begun_count_; }
  // Expected time of all waiting works, and of those of a flow's caller.
  std::int64_t expected_ns() const { return expected_ns_; }
  std::int64_t ExpectedOfCaller(int flow) const {
    return callers_[flow / kCatalogs].expected_ns;
  }
  // Expected time of the waiting works of a key's caller, and of those of its
  // catalog among them: not of others that share its lines. Visits each.
  struct Own {
    std::int64_t of_caller_ns = 0;
    std::int64_t of_catalog_ns = 0;
  };
  Own ExpectedOf(const FlowKey& key) const;
  // Number of callers with waiting works.
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
    std::int64_t lines_now_ns = 0;     // virtual time of the line served last
    std::int64_t lines_latest_ns = 0;  // maximum ever reached
    int count = 0;
  };

  Caller& CallerOf(int flow) { return callers_[flow / kCatalogs]; }
  Line& LineOf(int flow) {
    return callers_[flow / kCatalogs].lines[flow % kCatalogs];
  }
  // Returns the caller's next work, or null.
  static Work* NextOf(const Caller& caller, MayBegin may_begin);
  void Unlink(Work* work);
  // Calls visit(caller) for each caller with waiting works, in order of number.
  template <typename Queue, typename Visit>
  static void ForEachWaiting(Queue& queue, const Visit& visit);

  std::array<Caller, kCallers> callers_;
  // One bit per caller: set if it has waiting works.
  std::array<std::uint64_t, kCallers / 64> waiting_ = {};
  std::size_t count_ = 0;
  std::size_t begun_count_ = 0;
  std::int64_t expected_ns_ = 0;
  int caller_count_ = 0;
  std::int64_t now_ns_ = 0;     // virtual time of the caller served last
  std::int64_t latest_ns_ = 0;  // maximum ever reached
};

}  // namespace attendant

#endif  // ATTENDANT_SERVICE_QUEUE_FAIR_QUEUE_H_
