#include "core/attention/heads/attended_keys.h"

#include <algorithm>
#include <cstddef>

namespace attendant {

std::vector<std::int32_t> AttendedKeys(const MultiHeadInput& input) {
  const AttentionMask& mask = input.mask;
  std::vector<std::int32_t> attended;
  const auto add = [&](std::int32_t position) {
    const auto i = static_cast<std::size_t>(position);
    if (mask.causal && position >= input.queries.row_count) return;
    if (mask.key_times.empty() || mask.key_times[i] <= mask.query_time) {
      attended.push_back(position);
    }
  };
  if (mask.attended) {
    std::for_each(mask.attended->begin(), mask.attended->end(), add);
  } else {
    for (std::int64_t i = 0; i < input.keys.row_count; ++i) {
      add(static_cast<std::int32_t>(i));
    }
  }
  return attended;
}

}  // namespace attendant
