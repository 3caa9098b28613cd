// Detects a matrix that was read transposed.
#ifndef ATTENDANT_CORE_ATTENTION_MODELS_PROBE_H_
#define ATTENDANT_CORE_ATTENTION_MODELS_PROBE_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "core/attention/models/model.h"

namespace attendant {

// A projection of a model.
enum class ProjectionKind {
  kQuery = 1,   // W_Q; W of an additive network; q W of a bilinear form
  kKey = 2,     // W_K; U of an additive network; W k of a bilinear form
  kValue = 3,   // W_V
  kOutput = 4,  // W_O
};

// An input of a projection and the output that it must have, bias included.
// Detects a transposed matrix, which has the same shape if it is square.
struct ProjectionProbe {
  ProjectionKind projection = ProjectionKind::kQuery;
  std::vector<float> input;
  std::vector<float> output;
};

// The error allowed in a component of an output, relative to the output's norm.
inline constexpr double kProbeTolerance = 1e-4;

// OK if every component of the input's projection, computed in doubles, is
// within kProbeTolerance x |output| of the output. Otherwise InvalidArgument
// naming a field below `field` ("probes[2]"), the greatest difference, and
// whether the transposed matrix would match. The model must be valid.
// Thread-safe.
absl::Status CheckProbe(const AttentionModel& model,
                        const ProjectionProbe& probe, absl::string_view field);

}  // namespace attendant

#endif  // ATTENDANT_CORE_ATTENTION_MODELS_PROBE_H_
