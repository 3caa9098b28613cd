// Says at what rate requests are due, and when each one is.
#ifndef ATTENDANT_CLIENT_LOAD_SEND_RATE_PROFILE_H_
#define ATTENDANT_CLIENT_LOAD_SEND_RATE_PROFILE_H_

#include <cstdint>
#include <random>
#include <vector>

#include "absl/time/time.h"

namespace attendant {

// A rate over time, in consecutive stages. Within a stage the rate changes
// linearly.
class RateProfile {
 public:
  struct Stage {
    double first_rate = 0;  // requests a second, > 0
    double last_rate = 0;
    absl::Duration duration;  // > 0
  };

  // Makes a profile of length `duration` in all.
  static RateProfile Constant(double rate, absl::Duration duration);
  // Steps are equally long; `rates` is not empty.
  static RateProfile Steps(const std::vector<double>& rates,
                           absl::Duration duration);
  static RateProfile Ramp(double first_rate, double last_rate,
                          absl::Duration duration);

  // Returns this profile after a stage of length `warmup` at its first rate;
  // without such a stage if `warmup` is 0.
  RateProfile WithWarmup(absl::Duration warmup) const;

  const std::vector<Stage>& stages() const { return stages_; }
  absl::Duration duration() const;
  // Returns the expected number of requests.
  double count() const;
  // Returns when `due_count` requests have become due on average: the inverse
  // of the integral of the rate. duration() from count() on.
  absl::Duration TimeOf(double due_count) const;

  // Returns the parts of a profile that are reported separately: a stage of
  // constant rate whole, any other in kRampSlices parts of equal length.
  static constexpr int kRampSlices = 20;
  std::vector<Stage> Slices() const;

 private:
  explicit RateProfile(std::vector<Stage> stages);

  std::vector<Stage> stages_;
};

// Returns the stages up to `end`, which counts from the start of the first.
std::vector<RateProfile::Stage> CutAt(
    absl::Duration end, const std::vector<RateProfile::Stage>& stages);

enum class Arrivals {
  kFixed,    // evenly spaced
  kPoisson,  // at random, as from many independent callers
};

// The times at which requests are due, ascending, which depend on the profile,
// the arrivals and the seed only.
class Schedule {
 public:
  Schedule(RateProfile profile, Arrivals arrivals, std::uint64_t seed)
      : profile_(std::move(profile)), arrivals_(arrivals), random_(seed) {}

  // Returns the next time since the start; the profile's duration or more when
  // there are no more. The first of kFixed is 0.
  absl::Duration Next();

 private:
  const RateProfile profile_;
  const Arrivals arrivals_;
  std::mt19937_64 random_;
  double due_count_ = 0;
};

}  // namespace attendant

#endif  // ATTENDANT_CLIENT_LOAD_SEND_RATE_PROFILE_H_
