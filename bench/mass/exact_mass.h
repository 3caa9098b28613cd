// Exact attention of one query over all keys, in double precision, with plain
// loops.
#ifndef ATTENDANT_BENCH_MASS_EXACT_MASS_H_
#define ATTENDANT_BENCH_MASS_EXACT_MASS_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/base/bitmap.h"
#include "core/base/ids.h"
#include "core/base/views.h"

namespace attendant {

// Returns the product query . key for each key, [keys].
std::vector<double> ScoreAll(std::span<const float> query, MatrixView keys);

// Exact mass over the keys that a mask allows, at one temperature.
class ExactMass {
 public:
  // `similarities` is a result of ScoreAll and must outlive the object.
  // `allowed` is null if all keys count. Sets have at most the `set_limit` best
  // keys, 1 or more.
  ExactMass(const std::vector<double>& similarities, const Bitmap* allowed,
            std::size_t set_limit);

  void SetTemperature(double temperature);

  // The methods below use that temperature. -infinity if there are no keys.
  double log_partition() const { return log_partition_; }
  double WeightOf(RowIndex row) const;
  // Returns the size of the smallest set with at least `mass`, in (0, 1); 0 if
  // it exceeds set_limit.
  std::size_t SmallestSet(double mass) const;

 private:
  const std::vector<double>& similarities_;
  std::vector<double> all_;   // the allowed keys
  std::vector<double> best_;  // descending
  double temperature_ = 1;
  double log_partition_ = 0;
  std::vector<double> best_masses_;  // [i]: mass of the best i + 1
};

}  // namespace attendant

#endif  // ATTENDANT_BENCH_MASS_EXACT_MASS_H_
