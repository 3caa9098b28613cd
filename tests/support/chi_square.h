// Tests whether outcomes occur as often as their probabilities say.
#ifndef ATTENDANT_TESTS_SUPPORT_CHI_SQUARE_H_
#define ATTENDANT_TESTS_SUPPORT_CHI_SQUARE_H_

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <vector>

namespace attendant {

// The least p-value with which a test of frequencies passes.
inline constexpr double kMinPValue = .001;

// Returns the probability that a chi-square variable is at least `statistic`:
// Q(a, x) with a = degrees / 2, x = statistic / 2, by Q(a + 1, x) = Q(a, x) +
// x^a e^-x / Gamma(a + 1) from Q(1/2, x) = erfc(sqrt x) or Q(1, x) = e^-x
// (Abramowitz, Stegun 1964, 6.5.21).
inline double ChiSquarePValue(double statistic, int degrees) {
  const double x = statistic / 2;
  double a = degrees % 2 == 1 ? .5 : 1;
  double q = degrees % 2 == 1 ? std::erfc(std::sqrt(x)) : std::exp(-x);
  for (; a < degrees / 2.0; ++a) {
    q += std::exp(a * std::log(x) - x - std::lgamma(a + 1));
  }
  return q;
}

// Returns the p-value of counts [n] of outcomes with probabilities [n].
inline double ChiSquarePValue(const std::vector<double>& probabilities,
                              const std::vector<double>& counts) {
  const double total = std::accumulate(counts.begin(), counts.end(), 0.0);
  double statistic = 0;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    const double want = total * probabilities[i];
    // The chi-square approximation needs several expected counts of each
    // outcome.
    EXPECT_GE(want, 5) << "outcome " << i;
    statistic += (counts[i] - want) * (counts[i] - want) / want;
  }
  return ChiSquarePValue(statistic, static_cast<int>(counts.size()) - 1);
}

}  // namespace attendant

#endif  // ATTENDANT_TESTS_SUPPORT_CHI_SQUARE_H_
