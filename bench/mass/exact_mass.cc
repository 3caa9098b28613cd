#include "bench/mass/exact_mass.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

namespace attendant {

std::vector<double> ScoreAll(std::span<const float> query, MatrixView keys) {
  constexpr std::size_t kLanes = 16;
  std::vector<double> similarities;
  similarities.reserve(static_cast<std::size_t>(keys.row_count));
  for (std::int64_t r = 0; r < keys.row_count; ++r) {
    const std::span<const float> key = keys.Row(r);
    double sums[kLanes] = {};
    std::size_t d = 0;
    for (; d + kLanes <= key.size(); d += kLanes) {
      for (std::size_t i = 0; i < kLanes; ++i) {
        sums[i] += double{query[d + i]} * key[d + i];
      }
    }
    double sum = 0;
    for (const double lane : sums) sum += lane;
    for (; d < key.size(); ++d) sum += double{query[d]} * key[d];
    similarities.push_back(sum);
  }
  return similarities;
}

ExactMass::ExactMass(const std::vector<double>& similarities,
                     const Bitmap* allowed, std::size_t set_limit)
    : similarities_(similarities) {
  for (std::size_t r = 0; r < similarities.size(); ++r) {
    if (allowed == nullptr || allowed->Test(static_cast<std::int64_t>(r))) {
      all_.push_back(similarities[r]);
    }
  }
  best_ = all_;
  if (best_.size() > set_limit) {
    std::nth_element(best_.begin(),
                     best_.begin() + static_cast<std::ptrdiff_t>(set_limit) - 1,
                     best_.end(), std::greater<>());
    best_.resize(set_limit);
  }
  std::ranges::sort(best_, std::greater<>());
}

void ExactMass::SetTemperature(double temperature) {
  temperature_ = temperature;
  log_partition_ = -std::numeric_limits<double>::infinity();
  best_masses_.clear();
  if (all_.empty()) return;
  const double max = best_.front();
  double sum = 0;
  for (const double similarity : all_) {
    sum += std::exp((similarity - max) / temperature);
  }
  log_partition_ = max / temperature + std::log(sum);
  double best_sum = 0;
  for (const double similarity : best_) {
    best_sum += std::exp((similarity - max) / temperature);
    best_masses_.push_back(best_sum / sum);
  }
}

double ExactMass::WeightOf(RowIndex row) const {
  return std::exp(similarities_[row] / temperature_ - log_partition_);
}

std::size_t ExactMass::SmallestSet(double mass) const {
  const auto found =
      std::lower_bound(best_masses_.begin(), best_masses_.end(), mass);
  if (found == best_masses_.end()) return 0;
  return static_cast<std::size_t>(found - best_masses_.begin()) + 1;
}

}  // namespace attendant
