// scripts/packages.txt is the only list of Debian packages.
#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <regex>
#include <set>
#include <string>
#include <vector>

namespace attendant {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Returns the packages that a script's line installs by name; variables are
// allowed.
std::vector<std::string> InstalledByName(const std::string& line) {
  static const std::regex command(R"(\bapt(-get)?\s+(.*\s)?install\s+(.*))");
  static const std::regex word(R"([a-z0-9][a-z0-9+.-]+)");
  std::vector<std::string> names;
  std::smatch match;
  if (!std::regex_search(line, match, command)) return names;
  std::istringstream words(match[3].str());
  for (std::string token; words >> token;) {
    if (std::regex_match(token, word)) names.push_back(token);
  }
  return names;
}

TEST(PackagesTest, NamesInACommandAreFound) {
  EXPECT_THAT(InstalledByName("sudo apt-get -y install -q g++ libfaiss-dev"),
              ElementsAre("g++", "libfaiss-dev"));
  EXPECT_THAT(InstalledByName("apt install cmake"), ElementsAre("cmake"));
  EXPECT_THAT(InstalledByName("apt-get install -y \"${missing[@]}\" $more"),
              IsEmpty());
  EXPECT_THAT(InstalledByName("apt-get update"), IsEmpty());
  EXPECT_THAT(InstalledByName("cmake --install build"), IsEmpty());
}

TEST(PackagesTest, NoScriptHasAListOfItsOwn) {
  int file_count = 0;
  for (const std::string folder : {"scripts", ".ci", "examples"}) {
    const fs::path root = fs::path(PROJECT_SOURCE_DIR) / folder;
    if (!fs::exists(root)) continue;
    for (const auto& entry : fs::recursive_directory_iterator(root)) {
      const std::string extension = entry.path().extension().string();
      if (!entry.is_regular_file() ||
          (extension != "" && extension != ".sh" && extension != ".py")) {
        continue;
      }
      ++file_count;
      std::ifstream file(entry.path());
      for (std::string line; std::getline(file, line);) {
        EXPECT_THAT(InstalledByName(line), IsEmpty())
            << entry.path() << ": " << line;
      }
    }
  }
  EXPECT_GT(file_count, 0);
}

TEST(PackagesTest, ListNamesEachPackageOnce) {
  std::ifstream file(fs::path(PROJECT_SOURCE_DIR) / "scripts/packages.txt");
  const std::regex package(R"(([a-z0-9][a-z0-9+.-]+)( \[[a-z]+\])?)");
  std::set<std::string> packages;
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line[0] == '#') continue;
    std::smatch match;
    ASSERT_TRUE(std::regex_match(line, match, package)) << line;
    EXPECT_TRUE(packages.insert(match[1]).second) << line;
  }
  EXPECT_EQ(packages.count("librocksdb-dev"), 1u);
}

}  // namespace
}  // namespace attendant
