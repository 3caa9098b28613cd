#include "client/files/output.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <set>
#include <string>

#include "client/files/input.h"
#include "tests/client/temporary_file.h"
#include "tests/support/status_matchers.h"

namespace attendant {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::set<std::string> Names(const std::string& directory) {
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    names.insert(entry.path().filename());
  }
  return names;
}

TEST(OutputTest, WritesAndReplacesFiles) {
  const ScratchDirectory temporary;
  const std::string directory = temporary / "fit/events";
  ASSERT_OK(WriteDirectory(directory, {{"ids.txt", "a"}, {"model.json", "1"}}));
  ASSERT_OK(WriteDirectory(directory, {{"ids.txt", "b"}, {"model.json", "2"}}));
  EXPECT_THAT(Names(directory), ElementsAre("ids.txt", "model.json"));
  ASSERT_OK_AND_ASSIGN(const auto ids, ReadFile(directory + "/ids.txt", 10));
  EXPECT_EQ(ids, "b");
  ASSERT_OK_AND_ASSIGN(const auto model,
                       ReadFile(directory + "/model.json", 10));
  EXPECT_EQ(model, "2");
}

TEST(OutputTest, LeavesNothingAsideWhenItFails) {
  const ScratchDirectory temporary;
  // A directory is in the way of the second file.
  std::filesystem::create_directories(temporary / "keys.npy/x");
  const absl::Status status = WriteDirectory(
      temporary.path(),
      {{"ids.txt", "a"}, {"keys.npy", "b"}, {"model.json", "c"}});
  EXPECT_THAT(std::string(status.message()), HasSubstr("keys.npy"));
  EXPECT_FALSE(status.ok());
  EXPECT_THAT(Names(temporary.path()), ElementsAre("ids.txt", "keys.npy"));
}

std::string ContentOf(const std::string& path) {
  return ReadFile(path, 100).value_or("none");
}

TEST(OutputTest, AFileTakesThePlaceOfTheOneBefore) {
  const ScratchDirectory temporary;
  const std::string path = temporary / "load.html";
  for (const std::string content : {"old", "new"}) {
    ASSERT_OK(CheckWritableFile(path));
    ASSERT_OK(WriteFile(path, content));
    EXPECT_EQ(ContentOf(path), content);
  }
  EXPECT_THAT(Names(temporary.path()), ElementsAre("load.html"));
}

// Happens on a full disk.
TEST(OutputTest, AFileThatCanNotBeWrittenLeavesTheOneBefore) {
  const ScratchDirectory temporary;
  const std::string path = WriteIn(temporary, "load.html", "old");
  EXPECT_EXIT(
      {
        std::signal(SIGXFSZ, SIG_IGN);
        rlimit limit = {};
        limit.rlim_cur = limit.rlim_max = 1000;
        setrlimit(RLIMIT_FSIZE, &limit);
        std::exit(WriteFile(path, std::string(2000, 'x')).ok() ? 0 : 7);
      },
      ::testing::ExitedWithCode(7), "");
  EXPECT_EQ(ContentOf(path), "old");
  EXPECT_THAT(Names(temporary.path()), ElementsAre("load.html"));
}

TEST(OutputTest, ALinkLeadsToTheFileThatIsReplaced) {
  const ScratchDirectory temporary;
  const std::string file = WriteIn(temporary, "file", "old");
  std::filesystem::create_symlink(file, temporary / "link");
  ASSERT_OK(WriteFile(temporary / "link", "new"));
  EXPECT_EQ(ContentOf(file), "new");
  EXPECT_TRUE(std::filesystem::is_symlink(temporary / "link"));
}

TEST(OutputTest, ADeviceStaysWhatItIs) {
  const ScratchDirectory temporary;
  // A rename would replace the link to the device by a file.
  const std::string path = temporary / "null";
  std::filesystem::create_symlink("/dev/null", path);
  EXPECT_OK(CheckWritableFile(path));
  EXPECT_OK(WriteFile(path, "page"));
  EXPECT_TRUE(std::filesystem::is_character_file(path));
}

TEST(OutputTest, TellsBeforehandWhichFileItCannotWrite) {
  const ScratchDirectory temporary;
  const std::string file = WriteIn(temporary, "file", "");
  for (const std::string& path :
       {temporary.path(), file + "/load.html", temporary / "no/load.html"}) {
    EXPECT_FALSE(CheckWritableFile(path).ok()) << path;
    EXPECT_FALSE(WriteFile(path, "page").ok()) << path;
  }
  EXPECT_OK(CheckWritableFile("load.html"));
  EXPECT_THAT(Names(temporary.path()), ElementsAre("file"));
}

TEST(OutputTest, TellsBeforehandWhereItCannotWrite) {
  const ScratchDirectory temporary;
  EXPECT_OK(CheckWritableDirectory(temporary.path()));
  EXPECT_OK(CheckWritableDirectory(temporary / "fit/events/"));
  EXPECT_THAT(Names(temporary.path()), ElementsAre());
  const std::string file = WriteIn(temporary, "file", "");
  for (const std::string& path : {file, file + "/fit/events"}) {
    EXPECT_THAT(
        CheckWritableDirectory(path),
        StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr(path)));
  }
  EXPECT_FALSE(CheckWritableDirectory("").ok());
}

TEST(OutputTest, NamesTheDirectoryItCannotMake) {
  const ScratchDirectory temporary;
  const std::string file = WriteIn(temporary, "file", "");
  EXPECT_THAT(
      std::string(
          WriteDirectory(file + "/fit", {{"model.json", "1"}}).message()),
      HasSubstr(file + "/fit"));
}

}  // namespace
}  // namespace attendant
