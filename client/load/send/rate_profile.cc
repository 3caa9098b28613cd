#include "client/load/send/rate_profile.h"

#include <cmath>
#include <utility>

namespace attendant {
namespace {

double MeanRate(const RateProfile::Stage& stage) {
  return (stage.first_rate + stage.last_rate) / 2;
}

double CountOf(const RateProfile::Stage& stage) {
  return MeanRate(stage) * absl::ToDoubleSeconds(stage.duration);
}

// Returns when `due_count` of a stage's requests have become due: the root t of
// slope t^2 / 2 + first t = due_count, in a form that does not cancel.
double SecondsOf(const RateProfile::Stage& stage, double due_count) {
  const double slope = (stage.last_rate - stage.first_rate) /
                       absl::ToDoubleSeconds(stage.duration);
  const double rate = std::sqrt(std::max(
      0.0, stage.first_rate * stage.first_rate + 2 * slope * due_count));
  return 2 * due_count / (stage.first_rate + rate);
}

}  // namespace

RateProfile::RateProfile(std::vector<Stage> stages)
    : stages_(std::move(stages)) {}

RateProfile RateProfile::Constant(double rate, absl::Duration duration) {
  return RateProfile({{rate, rate, duration}});
}

RateProfile RateProfile::Steps(const std::vector<double>& rates,
                               absl::Duration duration) {
  std::vector<Stage> stages;
  for (const double rate : rates) {
    stages.push_back({rate, rate, duration / static_cast<int>(rates.size())});
  }
  return RateProfile(std::move(stages));
}

RateProfile RateProfile::Ramp(double first_rate, double last_rate,
                              absl::Duration duration) {
  return RateProfile({{first_rate, last_rate, duration}});
}

RateProfile RateProfile::WithWarmup(absl::Duration warmup) const {
  if (warmup <= absl::ZeroDuration()) return *this;
  const double rate = stages_[0].first_rate;
  std::vector<Stage> stages = {{rate, rate, warmup}};
  stages.insert(stages.end(), stages_.begin(), stages_.end());
  return RateProfile(std::move(stages));
}

absl::Duration RateProfile::duration() const {
  absl::Duration sum;
  for (const Stage& stage : stages_) sum += stage.duration;
  return sum;
}

double RateProfile::count() const {
  double sum = 0;
  for (const Stage& stage : stages_) sum += CountOf(stage);
  return sum;
}

absl::Duration RateProfile::TimeOf(double due_count) const {
  absl::Duration begin;
  for (const Stage& stage : stages_) {
    const double stage_count = CountOf(stage);
    if (due_count < stage_count) {
      return begin + absl::Seconds(SecondsOf(stage, due_count));
    }
    due_count -= stage_count;
    begin += stage.duration;
  }
  return begin;
}

std::vector<RateProfile::Stage> RateProfile::Slices() const {
  std::vector<Stage> slices;
  for (const Stage& stage : stages_) {
    const int count = stage.first_rate == stage.last_rate ? 1 : kRampSlices;
    const double step = (stage.last_rate - stage.first_rate) / count;
    for (int i = 0; i < count; ++i) {
      slices.push_back({stage.first_rate + i * step,
                        stage.first_rate + (i + 1) * step,
                        stage.duration / count});
    }
  }
  return slices;
}

std::vector<RateProfile::Stage> CutAt(
    absl::Duration end, const std::vector<RateProfile::Stage>& stages) {
  std::vector<RateProfile::Stage> cut;
  for (RateProfile::Stage stage : stages) {
    if (end <= absl::ZeroDuration()) break;
    if (end < stage.duration) {
      stage.last_rate =
          stage.first_rate + (stage.last_rate - stage.first_rate) *
                                 absl::FDivDuration(end, stage.duration);
      stage.duration = end;
    }
    end -= stage.duration;
    cut.push_back(stage);
  }
  return cut;
}

absl::Duration Schedule::Next() {
  if (arrivals_ == Arrivals::kFixed) return profile_.TimeOf(due_count_++);
  due_count_ += std::exponential_distribution<double>()(random_);
  return profile_.TimeOf(due_count_);
}

}  // namespace attendant
