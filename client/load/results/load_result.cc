#include "client/load/results/load_result.h"

#include <numeric>

namespace attendant {
namespace {

bool IsRefusal(absl::StatusCode code) {
  return code == absl::StatusCode::kResourceExhausted ||
         code == absl::StatusCode::kUnavailable;
}

double Rate(std::int64_t count, absl::Duration duration) {
  return static_cast<double>(count) / absl::ToDoubleSeconds(duration);
}

}  // namespace

void Tally::Add(absl::StatusCode code, std::int64_t latency_ns) {
  ++counts_[static_cast<std::size_t>(code)];
  if (code == absl::StatusCode::kOk) latencies_.Add(latency_ns);
  if (IsRefusal(code)) refusals_.Add(latency_ns);
}

void Tally::Merge(const Tally& other) {
  latencies_.Merge(other.latencies_);
  refusals_.Merge(other.refusals_);
  for (std::size_t c = 0; c < kCodeCount; ++c) counts_[c] += other.counts_[c];
}

void Tally::Clear() {
  latencies_.Clear();
  refusals_.Clear();
  counts_ = {};
}

std::int64_t Tally::CountOf(absl::StatusCode code) const {
  return counts_[static_cast<std::size_t>(code)];
}

std::map<absl::StatusCode, std::int64_t> Tally::status_counts() const {
  std::map<absl::StatusCode, std::int64_t> met;
  for (std::size_t c = 0; c < kCodeCount; ++c) {
    if (counts_[c] > 0) met[static_cast<absl::StatusCode>(c)] = counts_[c];
  }
  return met;
}

std::int64_t Tally::request_count() const {
  return std::accumulate(counts_.begin(), counts_.end(), std::int64_t{0});
}

double SliceResult::answers_per_second() const {
  return Rate(answer_count, duration);
}

double LoadResult::requests_per_second() const {
  return Rate(total.request_count(), duration);
}

double LoadResult::due_per_second() const {
  absl::Duration span;
  for (const SliceResult& slice : slices) span += slice.duration;
  double rate = 0;
  for (const SliceResult& slice : slices) {
    rate += slice.rate * absl::FDivDuration(slice.duration, span);
  }
  return rate;
}

double LoadResult::AnswersPerSecond(const Tally& part) const {
  return Rate(part.answered_count(), duration);
}

}  // namespace attendant
