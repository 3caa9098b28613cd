// What flags take, and how --help says it.
#ifndef ATTENDANT_SERVICE_ATTENDANTD_FLAG_VALUES_H_
#define ATTENDANT_SERVICE_ATTENDANTD_FLAG_VALUES_H_

#include <CLI/CLI.hpp>
#include <cstdint>
#include <limits>

#include "absl/strings/str_cat.h"

namespace attendant {

// From `least` to `most`, which goes unsaid if the type has no greater number.
// (CLI11's own range writes it out, and the type as C++ has it.)
template <typename Integer>
CLI::Validator InRange(Integer least, Integer most) {
  return CLI::Range(least, most)
      .description(most == std::numeric_limits<Integer>::max()
                       ? absl::StrCat("[", least, " or more]")
                       : absl::StrCat("[", least, " to ", most, "]"));
}

// Makes bytes of a number with a unit, as 12GiB or 12 GB (of 1,000s), or with
// none; and of 80% if there is a whole that it may be of.
CLI::Validator AsBytes(std::int64_t whole = 0);

}  // namespace attendant

#endif  // ATTENDANT_SERVICE_ATTENDANTD_FLAG_VALUES_H_
