// Position encodings of tokens.
#ifndef ATTENDANT_CORE_ATTENTION_SEQUENCES_POSITIONS_H_
#define ATTENDANT_CORE_ATTENTION_SEQUENCES_POSITIONS_H_

#include <cstdint>

#include "absl/status/status.h"
#include "core/base/interrupt.h"

namespace attendant {

enum class PositionKind {
  kNone = 1,        // no encoding: permuting tokens permutes outputs
  kSinusoidal = 2,  // AddSinusoids
};

// Adds to each of `count` rows of `dim` floats the encoding of its position
// (Vaswani et al. 2017, sec. 3.5): sin(position x 10000^(-2i / dim)) to
// component 2i and the cosine to component 2i + 1. Thread-safe. Cancelled and
// DeadlineExceeded from the interrupt; some of the rows are then unchanged.
absl::Status AddSinusoids(std::int64_t count, std::int64_t dim,
                          const Interrupt& interrupt, float* rows);

}  // namespace attendant

#endif  // ATTENDANT_CORE_ATTENTION_SEQUENCES_POSITIONS_H_
