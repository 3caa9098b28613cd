// The scratch directory of a fuzz target's process.
#ifndef ATTENDANT_TESTS_FUZZ_SCRATCH_H_
#define ATTENDANT_TESTS_FUZZ_SCRATCH_H_

#include <fstream>
#include <string>

#include "absl/strings/string_view.h"
#include "tests/support/scratch_directory.h"

namespace attendant {

// Below $TEST_TMPDIR, which should be in memory. Removed when the process ends.
inline const ScratchDirectory& Scratch() {
  static const ScratchDirectory directory;
  return directory;
}

// Writes or replaces a file and returns its path.
inline std::string WriteScratch(const std::string& name,
                                absl::string_view bytes) {
  const std::string path = Scratch() / name;
  std::ofstream(path, std::ios::binary | std::ios::trunc)
      .write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  return path;
}

}  // namespace attendant

#endif  // ATTENDANT_TESTS_FUZZ_SCRATCH_H_
