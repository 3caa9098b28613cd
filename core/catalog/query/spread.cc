#include "core/catalog/query/spread.h"

#include <algorithm>
#include <cmath>
#include <initializer_list>

#include "core/base/minus_infinity.h"

namespace attendant {
namespace {

// Bounds the relative error of sums of exponentials in floats.
constexpr double kRounding = 0x1p-18;

// Sums of rows scored from floats, and bounds of the other rows. Relative to
// the greatest logit, `max` of the partition.
struct Parts {
  double sum = 0;  // as in SoftmaxPartition
  double sum_gap = 0;
  double sum_square = 0;
  double least = 0;  // of the other rows' sum
  double most = 0;
  double count = 0;     // of the other rows
  double greatest = 0;  // bounds their logits, <= 0
  // The exception to `greatest`: one unseen row may weigh this much, as far as
  // the interval of the partition allows it.
  double heavy = 0;

  double Clamp(double others) const { return std::clamp(others, least, most); }
  // Returns the entropy if the other rows have this sum, and this entropy among
  // themselves.
  double Entropy(double others, double of_others) const {
    const double all = sum + others;
    const double gap =
        others > 0 ? others * (std::log(others) - of_others) : 0.0;
    return std::log(all) - (sum_gap + gap) / all;
  }
  double LeastEntropy(double others) const {
    return Entropy(others, std::max(0.0, std::log(others) - greatest));
  }
  double MostEntropy(double others) const {
    return Entropy(others, std::log(count));
  }
  // Returns the parts if a row of this weight among the others becomes known.
  Parts With(double weight) const {
    Parts parts = *this;
    parts.sum += weight;
    if (weight > 0) parts.sum_gap += weight * std::log(weight);
    parts.sum_square += weight * weight;
    parts.least = std::max(0.0, least - weight);
    parts.most = std::max(parts.least, most - weight);
    parts.heavy = 0;
    return parts;
  }
  double EffectiveCount(double others, double others_square) const {
    const double all = sum + others;
    return all * all / (sum_square + others_square);
  }
  double LeastEffectiveCount(double others) const {
    return EffectiveCount(
        others, std::min(others * others, others * std::exp(greatest)));
  }
  double MostEffectiveCount(double others) const {
    return EffectiveCount(others, others * others / count);
  }
};

Parts PartsOf(const HeadScan& scan, const PartitionError& error) {
  const SoftmaxPartition& all = scan.partition;
  const double scale = std::exp(double{scan.unkept.max} - all.max);
  const double unkept_sum = scale * scan.unkept.sum;
  const double unkept_gap =
      scale * (scan.unkept.sum_gap +
               (double{scan.unkept.max} - all.max) * scan.unkept.sum);
  Parts parts;
  parts.sum = std::max(0.0, all.sum - unkept_sum);
  parts.sum_gap = std::min(0.0, all.sum_gap - unkept_gap);
  parts.sum_square =
      std::max(0.0, all.sum_square - scale * scale * scan.unkept.sum_square);
  parts.least = std::max(0.0, all.sum * std::exp(error.below) - parts.sum);
  parts.most =
      std::max(parts.least, all.sum * std::exp(error.above) - parts.sum);
  parts.count = static_cast<double>(scan.unkept.count);
  if (scan.results_exact) {
    parts.greatest =
        std::min(0.0, double{scan.shortlist.back().logit} - all.max);
    return parts;
  }
  // According to the guesses for unvisited lists, some of their rows may be
  // above the best row found.
  const double guessed =
      scan.unkept.sum > 0
          ? scan.unkept.max + std::log(scan.unkept.sum_square / scan.unkept.sum)
          : kMinusInfinity;
  parts.greatest = std::min(
      0.0, std::max(double{scan.shortlist.front().logit}, guessed) - all.max);
  parts.heavy = std::max(0.0, parts.most - unkept_sum);
  return parts;
}

// Returns the minimum of `least` over the parts without the heavy row, with the
// heaviest possible one, and with the part of it that the others must have.
template <typename Least>
double LeastOf(const Parts& parts, Least least) {
  double lowest = least(parts);
  for (const double weight : {std::min(parts.heavy, parts.most),
                              std::min(parts.heavy, parts.least)}) {
    if (weight > 0) lowest = std::min(lowest, least(parts.With(weight)));
  }
  return lowest;
}

// The minimum is where the slope over the others' sum is 0, where the others
// could be a single row, or at an end.
double LeastEntropy(const Parts& parts) {
  const double flat = parts.sum * parts.greatest - parts.sum_gap - parts.sum;
  double lowest = parts.LeastEntropy(parts.least);
  for (const double others : {parts.most, flat, std::exp(parts.greatest)}) {
    lowest = std::min(lowest, parts.LeastEntropy(parts.Clamp(others)));
  }
  return lowest;
}

// The maximum is at the sum where the others' weight is that of `count` rows of
// the mean entropy.
Interval EntropyInterval(const Parts& parts, MassMethod method) {
  const double even =
      parts.sum > 0 ? parts.count * std::exp(parts.sum_gap / parts.sum) : 0;
  return {method, LeastOf(parts, LeastEntropy),
          parts.MostEntropy(parts.Clamp(even))};
}

// Finds the minimum of the effective count in the same way.
double LeastEffectiveCount(const Parts& parts) {
  const double flat =
      parts.sum - 2 * parts.sum_square * std::exp(-parts.greatest);
  double lowest = parts.LeastEffectiveCount(parts.least);
  for (const double others : {parts.most, flat, std::exp(parts.greatest)}) {
    lowest = std::min(lowest, parts.LeastEffectiveCount(parts.Clamp(others)));
  }
  return lowest;
}

Interval EffectiveCountInterval(const Parts& parts, MassMethod method) {
  const double even =
      parts.sum > 0 ? parts.count * parts.sum_square / parts.sum : 0;
  return {method, LeastOf(parts, LeastEffectiveCount),
          parts.MostEffectiveCount(parts.Clamp(even))};
}

// If every key was scored from its code, or is far, an error e of a logit l
// changes the log partition by its weight w times e, the entropy by w (mean -
// l) e, and the log of the effective count by 2 w (1 - w count) e. The heaviest
// rows scored from codes contribute most of these errors, and few of them, if
// any, weigh more than the last of the shortlist.
//
// Far rows of weight w in all add at most h(w) + w (entropy of the others + log
// of their number), where h(w) <= w (1 - log w), and change the sums of the
// effective count by a factor of up to 1 + w and 1 + w (greatest weight) count.
void Narrow(const HeadScan& scan, double distance, AttentionSpread& spread) {
  const SoftmaxPartition& all = scan.partition;
  const double mean = all.sum_gap / all.sum;
  const double mean_unkept =
      double{scan.unkept.max} - all.max + scan.unkept.sum_gap / scan.unkept.sum;
  const double greatest =
      std::min(0.0, double{scan.shortlist.back().logit} - all.max);
  const double gap =
      1 + std::max(std::abs(greatest - mean), std::abs(mean_unkept - mean));
  const FarKeys far_keys = scan.far.value_or(FarKeys());
  const double far = std::exp(far_keys.log_most - all.max - std::log(all.sum));
  const double of_far =
      far > 0 ? far * (1 - std::log(far) + *spread.entropy +
                       std::log(static_cast<double>(far_keys.count)))
              : 0;
  const double most = distance * gap + of_far;
  Interval& entropy = *spread.entropy_interval;
  entropy.lower_bound = std::max(entropy.lower_bound, *spread.entropy - most);
  entropy.upper_bound = std::min(entropy.upper_bound, *spread.entropy + most);
  const double greatest_weight = std::exp(greatest) / all.sum;
  const double log_distance =
      2 * (distance + far) * (1 + greatest_weight * spread.effective_count);
  Interval& count = spread.effective_count_interval;
  count.lower_bound = std::max(
      count.lower_bound, spread.effective_count * std::exp(-log_distance));
  count.upper_bound = std::min(count.upper_bound,
                               spread.effective_count * std::exp(log_distance));
}

// Widens the interval by float rounding, and clamps it to what any weights of
// this many rows can have.
void Settle(double blur, double least, double most, double& number,
            Interval& interval) {
  interval.lower_bound = std::clamp(interval.lower_bound - blur, least, most);
  interval.upper_bound =
      std::clamp(interval.upper_bound + blur, interval.lower_bound, most);
  number = std::clamp(number, interval.lower_bound, interval.upper_bound);
}

}  // namespace

AttentionSpread SpreadOf(const HeadScan& scan, const PartitionError& error) {
  const SoftmaxPartition& all = scan.partition;
  AttentionSpread spread;
  spread.entropy = all.Entropy();
  spread.effective_count = all.EffectiveCount();
  if (error.method == MassMethod::kExact || scan.unkept.count == 0 ||
      scan.shortlist.empty()) {
    if (spread.entropy) {
      spread.entropy_interval =
          Interval{error.method, *spread.entropy, *spread.entropy};
    }
    spread.effective_count_interval = {error.method, spread.effective_count,
                                       spread.effective_count};
    return spread;
  }
  const Parts parts = PartsOf(scan, error);
  spread.entropy_interval = EntropyInterval(parts, error.method);
  spread.effective_count_interval = EffectiveCountInterval(parts, error.method);
  if ((scan.complete || scan.far) && error.method == MassMethod::kEstimate) {
    Narrow(scan, error.most(), spread);
  }
  const double mean_gap = -all.sum_gap / all.sum;
  const auto count = static_cast<double>(all.count);
  Settle(kRounding * (1 + mean_gap), 0, std::log(count), *spread.entropy,
         *spread.entropy_interval);
  Settle(4 * kRounding * spread.effective_count, 1, count,
         spread.effective_count, spread.effective_count_interval);
  return spread;
}

}  // namespace attendant
