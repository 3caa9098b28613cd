// A file that lives as long as a test.
#ifndef ATTENDANT_TESTS_CLIENT_TEMPORARY_FILE_H_
#define ATTENDANT_TESTS_CLIENT_TEMPORARY_FILE_H_

#include <fstream>
#include <string>

#include "tests/support/scratch_directory.h"

namespace attendant {

// Writes a file and returns its path.
inline std::string WriteIn(const ScratchDirectory& directory,
                           const std::string& name,
                           const std::string& content) {
  std::ofstream(directory / name, std::ios::binary) << content;
  return directory / name;
}

// A file in a directory of its own, removed with the object.
class TemporaryFile {
 public:
  TemporaryFile(const std::string& name, const std::string& content)
      : path_(WriteIn(directory_, name, content)) {}

  const std::string& path() const { return path_; }

 private:
  ScratchDirectory directory_;
  std::string path_;
};

}  // namespace attendant

#endif  // ATTENDANT_TESTS_CLIENT_TEMPORARY_FILE_H_
