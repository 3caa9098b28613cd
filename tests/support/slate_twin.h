// Reference for draws without replacement, from the definition.
#ifndef ATTENDANT_TESTS_SUPPORT_SLATE_TWIN_H_
#define ATTENDANT_TESTS_SUPPORT_SLATE_TWIN_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

namespace attendant {

// Enumerates all ordered slates of k items with their probabilities, from the
// definition: each draw normalises the weights of the remaining items again.
inline void EnumerateSlates(
    const std::vector<double>& weights, std::size_t k,
    std::vector<std::int64_t>& prefix, double probability,
    std::map<std::vector<std::int64_t>, double>& slates) {
  if (prefix.size() == k) {
    slates[prefix] = probability;
    return;
  }
  std::vector<std::int64_t> left;
  double sum = 0;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const auto index = static_cast<std::int64_t>(i);
    if (std::ranges::count(prefix, index) > 0) continue;
    left.push_back(index);
    sum += weights[i];
  }
  for (const std::int64_t index : left) {
    prefix.push_back(index);
    EnumerateSlates(weights, k, prefix, probability * weights[index] / sum,
                    slates);
    prefix.pop_back();
  }
}

inline std::map<std::vector<std::int64_t>, double> EnumerateSlates(
    const std::vector<double>& weights, std::size_t k) {
  std::map<std::vector<std::int64_t>, double> slates;
  std::vector<std::int64_t> prefix;
  EnumerateSlates(weights, k, prefix, 1, slates);
  return slates;
}

}  // namespace attendant

#endif  // ATTENDANT_TESTS_SUPPORT_SLATE_TWIN_H_
