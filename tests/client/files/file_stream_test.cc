#include "client/files/file_stream.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "client/files/input.h"
#include "tests/client/temporary_file.h"
#include "tests/support/status_matchers.h"

namespace attendant {
namespace {

using ::testing::HasSubstr;

std::ptrdiff_t FileCount(const std::string& directory) {
  return std::distance(std::filesystem::directory_iterator(directory), {});
}

TEST(FileStreamTest, AppearsWhenItIsWhole) {
  const ScratchDirectory directory;
  const std::string path = directory / "export";
  ASSERT_OK_AND_ASSIGN(auto file, FileStream::Create(path));
  ASSERT_OK(file->Append("ab"));
  EXPECT_FALSE(std::filesystem::exists(path));
  ASSERT_OK(file->Append("c"));
  ASSERT_OK(file->Commit());
  file.reset();
  ASSERT_OK_AND_ASSIGN(const std::string content, ReadFile(path, 10));
  EXPECT_EQ(content, "abc");
  EXPECT_EQ(FileCount(directory.path()), 1);
}

TEST(FileStreamTest, ADirectoryIsNoFile) {
  const ScratchDirectory directory;
  for (const std::string& path : {directory.path(), directory / ""}) {
    EXPECT_THAT(FileStream::Create(path),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         path + " is a directory; add the name of a file"));
  }
}

TEST(FileStreamTest, WhatIsNotCommittedLeavesNothing) {
  const ScratchDirectory directory;
  ASSERT_OK_AND_ASSIGN(auto file, FileStream::Create(directory / "export"));
  ASSERT_OK(file->Append("abc"));
  file.reset();
  EXPECT_EQ(FileCount(directory.path()), 0);
}

TEST(FileStreamTest, ASignalEndsTheProcessAndLeavesNothing) {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    const ScratchDirectory directory;
    EXPECT_EXIT(
        {
          auto file = FileStream::Create(directory / "export");
          (void)(*file)->Append("abc");
          std::raise(signal);
        },
        ::testing::KilledBySignal(signal), "");
    EXPECT_EQ(FileCount(directory.path()), 0);
  }
}

// Happens if the output is piped to `head`.
TEST(FileStreamTest, AClosedPipeEndsTheProcessAndLeavesNothing) {
  const ScratchDirectory directory;
  EXPECT_EXIT(
      {
        std::signal(SIGPIPE, SIG_DFL);
        int ends[2];
        if (pipe(ends) != 0) std::abort();
        close(ends[0]);
        auto file = FileStream::Create(directory / "export");
        (void)(*file)->Append("abc");
        (void)!write(ends[1], "x", 1);
      },
      ::testing::KilledBySignal(SIGPIPE), "");
  EXPECT_EQ(FileCount(directory.path()), 0);
}

TEST(FileStreamTest, ReplacesNoFileThatIsThereOrCameMeanwhile) {
  const ScratchDirectory directory;
  const std::string path = directory / "export";
  ASSERT_OK_AND_ASSIGN(auto file, FileStream::Create(path));
  ASSERT_OK(file->Append("late"));
  std::ofstream(path) << "other";
  EXPECT_THAT(file->Commit(), StatusIs(absl::StatusCode::kAlreadyExists,
                                       HasSubstr("choose another name")));
  file.reset();
  ASSERT_OK_AND_ASSIGN(const std::string content, ReadFile(path, 10));
  EXPECT_EQ(content, "other");
  EXPECT_EQ(FileCount(directory.path()), 1);
  EXPECT_THAT(FileStream::Create(path).status(),
              StatusIs(absl::StatusCode::kAlreadyExists, HasSubstr(path)));
}

}  // namespace
}  // namespace attendant
