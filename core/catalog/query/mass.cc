#include "core/catalog/query/mass.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/attention/softmax/log_add.h"
#include "core/base/normal_deviations.h"

namespace attendant {
namespace {

// The log of a partition's sum.
double LogOf(const LogPartition& partition) {
  return partition.max + partition.log_sum;
}

PartitionError Estimate(const HeadScan& scan, double log_guess) {
  // (deviation / guess)^2, which may overflow a double.
  const double log_square =
      LogAdd(scan.log_variance, scan.log_drawn_variance) - 2 * log_guess;
  const double spread_square =
      log_square > 0 ? log_square + std::log1p(std::exp(-log_square))
                     : std::log1p(std::exp(log_square));
  const double distance =
      kNormalDeviations * std::sqrt(spread_square) + spread_square / 2;
  return {MassMethod::kEstimate, -distance, distance};
}

Mass Clamped(MassMethod method, double value, double lower, double upper) {
  const auto share = [](double of) { return std::clamp(of, 0.0, 1.0); };
  return {method, share(value), share(lower), share(upper)};
}

}  // namespace

double PartitionError::most() const { return std::max(-below, above); }

PartitionError ErrorOf(const HeadScan& scan, bool prefers_bounds) {
  if (scan.exact || (scan.complete && scan.partition.count == 0)) {
    return {MassMethod::kExact, 0, 0};
  }
  const LogPartition guess = LogPartitionOf(scan.partition);
  if (guess.empty()) return {};
  const double log_guess = LogOf(guess);
  // A guess outside of its bounds is off by rounding.
  const PartitionError bounds = {MassMethod::kBound,
                                 std::min(0.0, scan.log_lower - log_guess),
                                 std::max(0.0, scan.log_upper - log_guess)};
  if (scan.certified && (prefers_bounds || !scan.knows_mass)) return bounds;
  if (!scan.knows_mass) return {};
  PartitionError error = Estimate(scan, log_guess);
  if (scan.certified) {
    error.below = std::max(error.below, bounds.below);
    error.above = std::min(error.above, bounds.above);
  }
  return error;
}

PartitionError NotBelow(PartitionError error, const LogPartition& guess,
                        const LogPartition& exact) {
  if (guess.empty() || exact.empty()) return error;
  // Bounds already account for the exact sum, and also for rounding of logits.
  if (error.method == MassMethod::kBound) return error;
  const double distance =
      (exact.max - guess.max) + exact.log_sum - guess.log_sum;
  error.below = std::min(0.0, std::max(error.below, distance));
  return error;
}

MassReader::MassReader(LogPartitions catalog, ByHead<PartitionError> errors,
                       ByHead<double> head_weights)
    : catalog_(std::move(catalog)),
      errors_(std::move(errors)),
      head_weights_(std::move(head_weights)) {}

Mass MassReader::InHead(const LogPartitions& part, std::size_t head) const {
  const PartitionError& error = errors_[head];
  if (error.method == MassMethod::kUnknown) return {};
  if (catalog_[head].empty() || part[head].empty()) {
    return Clamped(error.method, 0, 0, 0);
  }
  const double log_share =
      catalog_[head].LogWeight(part[head].max) + part[head].log_sum;
  return Clamped(error.method, std::exp(log_share),
                 std::exp(log_share - error.above),
                 std::exp(log_share - error.below));
}

Mass MassReader::MeanOf(const LogPartitions& part) const {
  if (part.size() == 1) return InHead(part, 0);
  Mass mean = {MassMethod::kExact, 0, 0, 0};
  double seeing_weight = 0;
  for (std::size_t h = 0; h < part.size(); ++h) {
    const Mass mass = InHead(part, h);
    if (mass.method == MassMethod::kUnknown) return {};
    if (mass.method != MassMethod::kExact) mean.method = MassMethod::kEstimate;
    if (catalog_[h].empty()) continue;
    const double weight = head_weights_[h];
    seeing_weight += weight;
    mean.value += weight * mass.value;
    mean.lower_bound += weight * mass.lower_bound;
    mean.upper_bound += weight * mass.upper_bound;
  }
  if (seeing_weight == 0) return mean;
  mean.value /= seeing_weight;
  mean.lower_bound /= seeing_weight;
  mean.upper_bound /= seeing_weight;
  return mean;
}

LogPartitions MassReader::Greatest() const {
  // Selecting the set that just holds a mass favours underestimated catalogs.
  constexpr double kMargin = 1.2;
  LogPartitions greatest = catalog_;
  for (std::size_t h = 0; h < greatest.size(); ++h) {
    const PartitionError& error = errors_[h];
    const double margin = error.method == MassMethod::kEstimate ? kMargin : 1;
    if (!greatest[h].empty()) greatest[h].log_sum += margin * error.above;
  }
  return greatest;
}

}  // namespace attendant
