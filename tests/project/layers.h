// Checks includes against the allowed dependencies between folders. Link
// dependencies cannot enforce them: system headers are visible to every target.
#ifndef ATTENDANT_TESTS_PROJECT_LAYERS_H_
#define ATTENDANT_TESTS_PROJECT_LAYERS_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace attendant {

// Returns the includes of the file that violate the layering, as "PATH:LINE:
// INCLUDE: why". `path` is relative to the project root.
std::vector<std::string> FindLayerViolations(absl::string_view path,
                                             absl::string_view text);

struct TreeReport {
  int file_count = 0;
  std::vector<std::string> violations;
};

// Checks all sources in core/, service/ and client/ below `root`.
TreeReport FindTreeViolations(const std::string& root);

}  // namespace attendant

#endif  // ATTENDANT_TESTS_PROJECT_LAYERS_H_
