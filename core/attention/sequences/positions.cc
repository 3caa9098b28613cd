#include "core/attention/sequences/positions.h"

#include <cmath>
#include <vector>

#include "core/base/status.h"

namespace attendant {

absl::Status AddSinusoids(std::int64_t count, std::int64_t dim,
                          const Interrupt& interrupt, float* rows) {
  std::vector<double> frequencies;
  for (std::int64_t d = 0; d < dim; d += 2) {
    frequencies.push_back(
        std::pow(10000.0, -static_cast<double>(d) / static_cast<double>(dim)));
  }
  for (std::int64_t position = 0; position < count; ++position) {
    ATTENDANT_RETURN_IF_ERROR(interrupt.Check());
    float* row = rows + position * dim;
    for (std::int64_t d = 0; d < dim; ++d) {
      const double angle = static_cast<double>(position) * frequencies[d / 2];
      const double wave = d % 2 == 0 ? std::sin(angle) : std::cos(angle);
      row[d] = static_cast<float>(row[d] + wave);
    }
  }
  return absl::OkStatus();
}

}  // namespace attendant
