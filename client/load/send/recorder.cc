#include "client/load/send/recorder.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/string_view.h"

namespace attendant {
namespace {

// Makes refusals of one kind equal: drops the retry delay, which is not used
// here, and replaces each number by N.
std::string MessageOf(const absl::Status& status) {
  const absl::string_view message = status.message();
  const std::size_t end = message.find(" (try again in ");
  if (end == absl::string_view::npos) return std::string(message);
  std::string text;
  for (const char c : message.substr(0, end)) {
    if (!absl::ascii_isdigit(c)) {
      text.push_back(c);
    } else if (text.empty() || text.back() != 'N') {
      text.push_back('N');
    }
  }
  return text;
}

}  // namespace

Recorder::Recorder(std::vector<std::string> kinds,
                   const std::vector<RateProfile::Stage>& slices,
                   SteadyTime begin)
    : begin_(begin), last_answer_(begin) {
  {
    MutexLock lock(&mutex_);
    for (std::string& kind : kinds) {
      result_.kinds.emplace_back(std::move(kind), Tally());
    }
  }
  SetSlices(slices);
}

void Recorder::SetSlices(const std::vector<RateProfile::Stage>& slices) {
  SteadyTime end = begin_;
  MutexLock lock(&mutex_);
  result_.slices.resize(slices.size());
  slice_ends_.clear();
  for (std::size_t i = 0; i < slices.size(); ++i) {
    result_.slices[i].rate = (slices[i].first_rate + slices[i].last_rate) / 2;
    result_.slices[i].duration = slices[i].duration;
    end += absl::ToChronoNanoseconds(slices[i].duration);
    slice_ends_.push_back(end);
  }
}

bool Recorder::Send(int slice) {
  MutexLock lock(&mutex_);
  if (waiting_count_ == LoadResult::kMaxWaiting) {
    if (slice != kWarmup) ++result_.unsent_count;
    return false;
  }
  ++waiting_count_;
  return true;
}

void Recorder::SentLate(int slice, absl::Duration lateness) {
  if (slice == kWarmup) return;
  MutexLock lock(&mutex_);
  result_.lateness.Add(absl::ToInt64Nanoseconds(lateness));
  if (lateness > LoadResult::kLate) ++result_.late_count;
}

void Recorder::Answer(int kind, int slice, const absl::Status& status,
                      std::int64_t latency_ns) {
  MutexLock lock(&mutex_);
  if (--waiting_count_ == 0) changed_.NotifyAll();
  moment_.Add(status.code(), latency_ns);
  recent_.Add(status.code(), latency_ns);
  ++(status.ok() ? answered_count_ : failed_count_);
  const SteadyTime now = SteadyNow();
  if (status.ok() && now >= begin_) {
    const auto end =
        std::upper_bound(slice_ends_.begin(), slice_ends_.end(), now);
    if (end != slice_ends_.end()) {
      ++result_.slices[end - slice_ends_.begin()].answer_count;
    }
  }
  if (slice == kWarmup) return;
  last_answer_ = now;
  result_.total.Add(status.code(), latency_ns);
  result_.kinds[kind].second.Add(status.code(), latency_ns);
  if (!result_.slices.empty()) {
    result_.slices[slice].tally.Add(status.code(), latency_ns);
  }
  if (status.ok()) return;
  std::string message = MessageOf(status);
  if (result_.error_counts.size() >= LoadResult::kMaxMessages &&
      !result_.error_counts.contains(message)) {
    message = "other messages";
  }
  ++result_.error_counts[std::move(message)];
}

void Recorder::EndMoment(absl::Duration end, absl::Duration duration) {
  MutexLock lock(&mutex_);
  AddMoment(end, duration);
}

void Recorder::EndLastMoment(absl::Duration end, absl::Duration duration) {
  MutexLock lock(&mutex_);
  if (!result_.moments.empty() &&
      duration < result_.moments.back().duration / 2) {
    duration += result_.moments.back().duration;
    result_.moments.pop_back();
    moment_.Merge(moment_before_);
  }
  AddMoment(end, duration);
}

void Recorder::AddMoment(absl::Duration end, absl::Duration duration) {
  const LatencyHistogram& latencies = moment_.latencies();
  result_.moments.push_back({.end = end,
                             .duration = duration,
                             .answered_count = moment_.answered_count(),
                             .failed_count = moment_.failed_count(),
                             .p50_ns = latencies.AtPercentile(50),
                             .p90_ns = latencies.AtPercentile(90),
                             .p99_ns = latencies.AtPercentile(99),
                             .max_ns = latencies.max_ns()});
  std::swap(moment_, moment_before_);
  moment_.Clear();
}

LoadView Recorder::Look() {
  MutexLock lock(&mutex_);
  LoadView view{.recent = std::move(recent_),
                .answered_count = answered_count_,
                .failed_count = failed_count_,
                .waiting_count = waiting_count_,
                .error_counts = result_.error_counts};
  recent_ = Tally();
  return view;
}

void Recorder::AwaitAnswers() {
  MutexLock lock(&mutex_);
  while (waiting_count_ > 0) changed_.Wait(&mutex_);
}

LoadResult Recorder::Take(absl::Duration duration) {
  MutexLock lock(&mutex_);
  result_.duration =
      std::max(duration, absl::FromChrono(last_answer_ - begin_));
  return std::move(result_);
}

}  // namespace attendant
