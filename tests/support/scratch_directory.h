// A directory for one test.
#ifndef ATTENDANT_TESTS_SUPPORT_SCRATCH_DIRECTORY_H_
#define ATTENDANT_TESTS_SUPPORT_SCRATCH_DIRECTORY_H_

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <system_error>

namespace attendant {

// Starts empty, below ::testing::TempDir(); removed with its contents on
// destruction.
class ScratchDirectory {
 public:
  ScratchDirectory() {
    static int count = 0;
    path_ = ::testing::TempDir() + "attendant." + std::to_string(getpid()) +
            "." + std::to_string(count++);
    std::filesystem::remove_all(path_);
    std::filesystem::create_directories(path_);
  }
  ~ScratchDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  ScratchDirectory(const ScratchDirectory&) = delete;
  ScratchDirectory& operator=(const ScratchDirectory&) = delete;

  const std::string& path() const { return path_; }
  std::string operator/(const std::string& name) const {
    return path_ + "/" + name;
  }

 private:
  std::string path_;
};

}  // namespace attendant

#endif  // ATTENDANT_TESTS_SUPPORT_SCRATCH_DIRECTORY_H_
