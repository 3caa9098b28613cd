// The attention of one query over all keys in double precision, by plain loops.
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

// query . key for all keys.
std::vector<double> ScoreAll(std::span<const float> query, MatrixView keys);

// Of the keys that a mask leaves, at one temperature.
class ExactMass {
 public:
  // similarities: as ScoreAll, which must outlive the object. allowed: null for
  // all. Sets are made of the `set_limit` best at most, 1 or more.
  ExactMass(const std::vector<double>& similarities, const Bitmap* allowed,
            std::size_t set_limit);

  void SetTemperature(double temperature);

  // Of what follows, all at that temperature. -infinity: there are no keys.
  double log_partition() const { return log_partition_; }
  double WeightOf(RowIndex row) const;
  // The size of the smallest set of at least this mass, in (0, 1); 0 if it is
  // greater than set_limit.
  std::size_t SmallestSet(double mass) const;

 private:
  const std::vector<double>& similarities_;
  std::vector<double> all_;   // of the mask
  std::vector<double> best_;  // descending
  double temperature_ = 1;
  double log_partition_ = 0;
  std::vector<double> best_masses_;  // of the best i + 1
};

}  // namespace attendant

#endif  // ATTENDANT_BENCH_MASS_EXACT_MASS_H_
