#include "service/queue/fair_queue.h"

#include <algorithm>
#include <bit>

namespace attendant {
namespace {

// Returns the bit of a flow's caller in its word of waiting_.
std::uint64_t Bit(int flow) {
  return std::uint64_t{1} << (flow / FairQueue::kCatalogs % 64);
}

}  // namespace

template <typename Queue, typename Visit>
void FairQueue::ForEachWaiting(Queue& queue, const Visit& visit) {
  for (std::size_t w = 0; w < queue.waiting_.size(); ++w) {
    for (std::uint64_t bits = queue.waiting_[w]; bits != 0; bits &= bits - 1) {
      const auto bit = static_cast<std::size_t>(std::countr_zero(bits));
      visit(queue.callers_[w * 64 + bit]);
    }
  }
}

int FairQueue::FlowOf(const FlowKey& key) {
  return static_cast<int>(key.caller % kCallers) * kCatalogs +
         static_cast<int>(key.catalog % kCatalogs);
}

void FairQueue::Push(Work* work, std::int64_t expected_ns,
                     std::int64_t charge_ns) {
  const int flow = FlowOf(work->flow_);
  Caller& caller = CallerOf(flow);
  Line& line = LineOf(flow);
  // While nobody was waiting, no caller was delayed by another.
  if (count_ == 0) now_ns_ = latest_ns_;
  if (caller.count == 0) {
    ++caller_count_;
    waiting_[flow / kCatalogs / 64] |= Bit(flow);
    caller.virtual_ns = std::max(caller.virtual_ns, now_ns_);
    caller.lines_now_ns = caller.lines_latest_ns;
  }
  if (line.first == nullptr) {
    line.virtual_ns = std::max(line.virtual_ns, caller.lines_now_ns);
  }
  Work::Place& place = work->place_;
  place.flow = flow;
  place.expected_ns = expected_ns;
  place.charge_ns = charge_ns;
  const bool first = place.paused != nullptr;
  place.before = first ? nullptr : line.last;
  place.after = first ? line.first : nullptr;
  (place.before != nullptr ? place.before->place_.after : line.first) = work;
  (place.after != nullptr ? place.after->place_.before : line.last) = work;
  ++count_;
  if (work->begun_) ++begun_count_;
  ++caller.count;
  expected_ns_ += expected_ns;
  caller.expected_ns += expected_ns;
  line.expected_ns += expected_ns;
}

Work* FairQueue::NextOf(const Caller& caller, MayBegin may_begin) {
  Work* next = nullptr;
  const Line* next_line = nullptr;
  for (const Line& line : caller.lines) {
    if (next != nullptr && line.virtual_ns >= next_line->virtual_ns) continue;
    // Catalogs that share a line do not share a limit that keeps one of them
    // from its turn.
    Work* work = line.first;
    while (work != nullptr && !may_begin(*work)) work = work->place_.after;
    if (work == nullptr) continue;
    next = work;
    next_line = &line;
  }
  return next;
}

bool FairQueue::CanPop(MayBegin may_begin) const {
  bool can_pop = false;
  ForEachWaiting(*this, [&](const Caller& caller) {
    can_pop = can_pop || NextOf(caller, may_begin) != nullptr;
  });
  return can_pop;
}

Work* FairQueue::Pop(MayBegin may_begin) {
  Caller* next = nullptr;
  Work* work = nullptr;
  ForEachWaiting(*this, [&](Caller& caller) {
    if (next != nullptr && caller.virtual_ns >= next->virtual_ns) return;
    Work* const found = NextOf(caller, may_begin);
    if (found == nullptr) return;
    next = &caller;
    work = found;
  });
  if (work == nullptr) return nullptr;
  const int flow = work->place_.flow;
  now_ns_ = next->virtual_ns;
  next->lines_now_ns = LineOf(flow).virtual_ns;
  Unlink(work);
  Charge(flow, work->place_.charge_ns);
  return work;
}

void FairQueue::PopGroup(absl::string_view group, std::size_t most,
                         Works& taken) {
  const std::size_t end = taken.size() + most;
  const auto take = [&](std::size_t most_each) {
    ForEachWaiting(*this, [&](Caller& caller) {
      const std::size_t caller_end = std::min(end, taken.size() + most_each);
      for (Line& line : caller.lines) {
        Work* next = nullptr;
        for (Work* work = line.first;
             work != nullptr && taken.size() < caller_end; work = next) {
          next = work->place_.after;
          if (work->group() != group || work->place_.paused) continue;
          const int flow = work->place_.flow;
          Unlink(work);
          Charge(flow, work->place_.charge_ns);
          taken.push_back(work);
        }
      }
    });
  };
  if (caller_count_ == 0) return;
  // First an equal share for each caller, then what some have left over.
  const auto callers = static_cast<std::size_t>(caller_count_);
  take((most + callers - 1) / callers);
  take(most);
}

Work* FairQueue::PopFromLongest(const Work& newcomer,
                                std::int64_t expected_ns) {
  const int flow = FlowOf(newcomer.flow_);
  Caller& own_caller = CallerOf(flow);
  Line& own_line = LineOf(flow);
  Caller* longest_caller = &own_caller;
  std::int64_t longest_ns = own_caller.expected_ns + expected_ns;
  ForEachWaiting(*this, [&](Caller& caller) {
    if (caller.expected_ns <= longest_ns) return;
    longest_caller = &caller;
    longest_ns = caller.expected_ns;
  });
  const bool own = longest_caller == &own_caller;
  Line* longest = own ? &own_line : nullptr;
  longest_ns = own ? own_line.expected_ns + expected_ns : 0;
  for (Line& line : longest_caller->lines) {
    if (line.expected_ns <= longest_ns) continue;
    longest = &line;
    longest_ns = line.expected_ns;
  }
  if (longest == &own_line) return nullptr;
  Work* work = longest->last;
  while (work != nullptr && work->begun_) work = work->place_.before;
  if (work != nullptr) Unlink(work);
  return work;
}

bool FairQueue::IsBehind(int flow) const {
  const Caller& own = callers_[flow / kCatalogs];
  const Line& own_line = own.lines[flow % kCatalogs];
  for (const Line& line : own.lines) {
    if (line.first != nullptr && line.virtual_ns < own_line.virtual_ns) {
      return true;
    }
  }
  bool behind = false;
  ForEachWaiting(*this, [&](const Caller& caller) {
    behind |= caller.virtual_ns < own.virtual_ns;
  });
  return behind;
}

FairQueue::Own FairQueue::ExpectedOf(const FlowKey& key) const {
  Own own;
  for (const Line& line : callers_[FlowOf(key) / kCatalogs].lines) {
    for (const Work* work = line.first; work != nullptr;
         work = work->place_.after) {
      if (work->flow_.caller != key.caller) continue;
      own.of_caller_ns += work->place_.expected_ns;
      if (work->flow_.catalog != key.catalog) continue;
      own.of_catalog_ns += work->place_.expected_ns;
    }
  }
  return own;
}

bool FairQueue::Remove(Work* work) {
  if (work->place_.flow < 0) return false;
  Unlink(work);
  return true;
}

void FairQueue::Charge(int flow, std::int64_t more_ns) {
  Caller& caller = CallerOf(flow);
  Line& line = LineOf(flow);
  caller.virtual_ns += more_ns;
  line.virtual_ns += more_ns;
  latest_ns_ = std::max(latest_ns_, caller.virtual_ns);
  caller.lines_latest_ns = std::max(caller.lines_latest_ns, line.virtual_ns);
}

void FairQueue::Unlink(Work* work) {
  Work::Place& place = work->place_;
  Caller& caller = CallerOf(place.flow);
  Line& line = LineOf(place.flow);
  const int flow = place.flow;
  (place.before != nullptr ? place.before->place_.after : line.first) =
      place.after;
  (place.after != nullptr ? place.after->place_.before : line.last) =
      place.before;
  place.flow = -1;
  --count_;
  if (work->begun_) --begun_count_;
  --caller.count;
  if (caller.count == 0) {
    --caller_count_;
    waiting_[flow / kCatalogs / 64] &= ~Bit(flow);
  }
  expected_ns_ -= place.expected_ns;
  caller.expected_ns -= place.expected_ns;
  line.expected_ns -= place.expected_ns;
}

}  // namespace attendant
