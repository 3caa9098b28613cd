// Lets fuzz targets report that a parser accepted an input, or that an
// invariant is broken.
#ifndef ATTENDANT_TESTS_FUZZ_FUZZ_H_
#define ATTENDANT_TESTS_FUZZ_FUZZ_H_

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <initializer_list>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

// libFuzzer's entry (entry.cc). Returns 0.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data,
                                      std::size_t size);

namespace attendant {

// Checks one input; every target defines it.
void CheckInput(absl::string_view input);

// Inputs accepted since the start of the process.
inline std::int64_t accepted_count = 0;

inline void Accept() { ++accepted_count; }

// Aborts the process if `holds` is false.
inline void Require(bool holds, absl::string_view what) {
  if (holds) return;
  std::fprintf(stderr, "does not hold: %s\n", std::string(what).c_str());
  std::abort();
}

// Requires that `status` has one of `codes` and a message; OK is not a refusal.
inline void RequireRefusal(const absl::Status& status,
                           std::initializer_list<absl::StatusCode> codes) {
  for (const absl::StatusCode code : codes) {
    if (status.code() == code && !status.message().empty()) return;
  }
  Require(false, status.ToString());
}

}  // namespace attendant

#endif  // ATTENDANT_TESTS_FUZZ_FUZZ_H_
