// How many requests a second are due, and when each.
#ifndef ATTENDANT_CLIENT_LOAD_SEND_RATE_PROFILE_H_
#define ATTENDANT_CLIENT_LOAD_SEND_RATE_PROFILE_H_

#include <cstdint>
#include <random>
#include <vector>

#include "absl/time/time.h"

namespace attendant {

// A rate over time: stages one after the other, in each of which it goes in a
// straight line from one value to another.
class RateProfile {
 public:
  struct Stage {
    double first_rate = 0;  // requests a second, > 0
    double last_rate = 0;
    absl::Duration duration;  // > 0
  };

  // Of some `duration` in all.
  static RateProfile Constant(double rate, absl::Duration duration);
  // Equally long steps; `rates` is not empty.
  static RateProfile Steps(const std::vector<double>& rates,
                           absl::Duration duration);
  static RateProfile Ramp(double first_rate, double last_rate,
                          absl::Duration duration);

  // The same after so long at its first rate, if that is longer than none.
  RateProfile WithWarmup(absl::Duration warmup) const;

  const std::vector<Stage>& stages() const { return stages_; }
  absl::Duration duration() const;
  // Requests due in all, as a mean.
  double count() const;
  // When so many have become due, as a mean: the inverse of the integral of the
  // rate. duration() for count() and more.
  absl::Duration TimeOf(double due_count) const;

  // The parts of a profile that are reported apart: a stage of one rate as it
  // is, and one whose rate changes in kRampSlices of equal length.
  static constexpr int kRampSlices = 20;
  std::vector<Stage> Slices() const;

 private:
  explicit RateProfile(std::vector<Stage> stages);

  std::vector<Stage> stages_;
};

// What of the stages comes before `end`, which counts from the first one's
// begin.
std::vector<RateProfile::Stage> CutAt(
    absl::Duration end, const std::vector<RateProfile::Stage>& stages);

enum class Arrivals {
  kFixed,    // evenly
  kPoisson,  // at random, as of many callers that know nothing of each other
};

// When requests are due, ascending; the same for a seed.
class Schedule {
 public:
  Schedule(RateProfile profile, Arrivals arrivals, std::uint64_t seed)
      : profile_(std::move(profile)), arrivals_(arrivals), random_(seed) {}

  // Since the start; the profile's duration or more when there are no more. The
  // first of kFixed is due at 0.
  absl::Duration Next();

 private:
  const RateProfile profile_;
  const Arrivals arrivals_;
  std::mt19937_64 random_;
  double due_count_ = 0;
};

}  // namespace attendant

#endif  // ATTENDANT_CLIENT_LOAD_SEND_RATE_PROFILE_H_
