// Flags that ask for approximate attention over a sequence or a history.
#ifndef ATTENDANT_CLIENT_COMMANDS_ATTENTION_APPROXIMATION_FLAGS_H_
#define ATTENDANT_CLIENT_COMMANDS_ATTENTION_APPROXIMATION_FLAGS_H_

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "attendant/v1/sequence_service.pb.h"

namespace attendant {

struct ApproximationFlags {
  std::int32_t lsh_rounds = 0;  // 0: not asked for
  std::int32_t lsh_buckets = 0;
  std::string lsh_seed = "1";
  std::int32_t linformer_rows = 0;
  bool linformer_random = false;
  std::string linformer_seed = "1";

  bool any() const { return lsh_rounds != 0 || linformer_rows != 0; }
};

// Adds the flags to `verb`. `flags` must outlive it.
void AddApproximationFlags(CLI::App& verb, ApproximationFlags& flags);

// Converts flags whose any() is true. InvalidArgument for a seed that is not a
// 64-bit integer.
absl::StatusOr<v1::Approximation> ToApproximation(
    const ApproximationFlags& flags);

}  // namespace attendant

#endif  // ATTENDANT_CLIENT_COMMANDS_ATTENTION_APPROXIMATION_FLAGS_H_
