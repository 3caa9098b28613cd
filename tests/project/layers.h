// Holds the sources to the arrows between their folders, which link lines
// can't: system headers are visible to every target.
#ifndef ATTENDANT_TESTS_PROJECT_LAYERS_H_
#define ATTENDANT_TESTS_PROJECT_LAYERS_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace attendant {

// What includes of the file break the arrows, as "PATH:LINE: INCLUDE: why".
// `path` is relative to the root of the project.
std::vector<std::string> FindLayerViolations(absl::string_view path,
                                             absl::string_view text);

struct TreeReport {
  int file_count = 0;
  std::vector<std::string> violations;
};

// The same for all sources in core/, service/ and client/ below `root`.
TreeReport FindTreeViolations(const std::string& root);

}  // namespace attendant

#endif  // ATTENDANT_TESTS_PROJECT_LAYERS_H_
