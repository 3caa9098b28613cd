// Measures how far attention is from mutual.
#ifndef ATTENDANT_CORE_ATTENTION_MODELS_ASYMMETRY_H_
#define ATTENDANT_CORE_ATTENTION_MODELS_ASYMMETRY_H_

#include <optional>

#include "absl/status/statusor.h"
#include "core/attention/models/model.h"
#include "core/base/interrupt.h"

namespace attendant {

// Returns |S - S^T| / |S| in the Frobenius norm, where S [query_dim, key_dim]
// is the bilinear form of queries and keys without their biases: W_Q^T W_K
// summed over heads, or W of a bilinear form. The result is in [0, 2]; exactly
// 0 if W_Q equals W_K (a attends to b as b to a) or S = 0; otherwise accurate
// to about 1e-7. Returns nothing for an additive network, or if queries and
// keys differ in dimension.
//
// The model must be valid. Takes at most 2 m^2 n multiplications in doubles, m
// being the smaller and n the larger side of W_Q, and never holds S: some 2 s
// for 1,400 x 1,400, the most that a message of 16 MiB holds. Thread-safe.
// Cancelled and DeadlineExceeded from the interrupt.
absl::StatusOr<std::optional<double>> Asymmetry(
    const AttentionModel& model, const Interrupt& interrupt = {});

}  // namespace attendant

#endif  // ATTENDANT_CORE_ATTENTION_MODELS_ASYMMETRY_H_
