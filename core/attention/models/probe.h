// Catching a matrix that was read the wrong way round.
#ifndef ATTENDANT_CORE_ATTENTION_MODELS_PROBE_H_
#define ATTENDANT_CORE_ATTENTION_MODELS_PROBE_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "core/attention/models/model.h"

namespace attendant {

// Which projection of a model.
enum class ProjectionKind {
  kQuery = 1,   // W_Q; W of an additive network; q W of a bilinear form
  kKey = 2,     // W_K; U of an additive network; W k of a bilinear form
  kValue = 3,   // W_V
  kOutput = 4,  // W_O
};

// What goes into a projection and what must come out, bias added. A matrix that
// was transposed has the same shape if it is square; this tells.
struct ProjectionProbe {
  ProjectionKind projection = ProjectionKind::kQuery;
  std::vector<float> input;
  std::vector<float> output;
};

// Of the output's norm: what the components of an output may be off.
inline constexpr double kProbeTolerance = 1e-4;

// OK if every component of what the projection makes of the input is within
// kProbeTolerance x |output| of the output; computed in doubles. Else
// InvalidArgument naming a field after `field` ("probes[2]"), the greatest
// difference, and whether the matrix would hold the other way round. The model
// is valid. Thread-safe.
absl::Status CheckProbe(const AttentionModel& model,
                        const ProjectionProbe& probe, absl::string_view field);

}  // namespace attendant

#endif  // ATTENDANT_CORE_ATTENTION_MODELS_PROBE_H_
