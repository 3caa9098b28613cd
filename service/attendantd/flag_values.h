// Validators and transforms for flag values, with their --help texts.
#ifndef ATTENDANT_SERVICE_ATTENDANTD_FLAG_VALUES_H_
#define ATTENDANT_SERVICE_ATTENDANTD_FLAG_VALUES_H_

#include <CLI/CLI.hpp>
#include <cstdint>
#include <limits>

#include "absl/strings/str_cat.h"

namespace attendant {

// Accepts integers in [`least`, `most`]. --help omits `most` if it is the
// maximum of the type. (CLI11's own range prints that maximum, and the C++ type
// name.)
template <typename Integer>
CLI::Validator InRange(Integer least, Integer most) {
  return CLI::Range(least, most)
      .description(most == std::numeric_limits<Integer>::max()
                       ? absl::StrCat("[", least, " or more]")
                       : absl::StrCat("[", least, " to ", most, "]"));
}

// Converts a number of bytes with an optional unit, such as 12GiB or 12 GB
// (powers of 1,000), to plain bytes. If `whole` > 0, also converts a percentage
// of it, such as 80%.
CLI::Validator AsBytes(std::int64_t whole = 0);

}  // namespace attendant

#endif  // ATTENDANT_SERVICE_ATTENDANTD_FLAG_VALUES_H_
