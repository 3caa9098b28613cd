#include "core/storage/files/unlinked_files.h"

#include <gmock/gmock.h>
#include <signal.h>
#include <sys/resource.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <limits>
#include <vector>

#include "tests/support/scratch_directory.h"
#include "tests/support/status_matchers.h"

namespace attendant {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::vector<std::string> NamesIn(const std::string& directory) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    names.push_back(entry.path().filename());
  }
  return names;
}

std::vector<std::byte> SomeBytes(std::size_t count) {
  std::vector<std::byte> bytes(count);
  for (std::size_t i = 0; i < count; ++i) {
    bytes[i] = static_cast<std::byte>(i * 7 + i / 251);
  }
  return bytes;
}

TEST(UnlinkedFilesTest, MapsWhatWasAppended) {
  const ScratchDirectory directory;
  UnlinkedFiles files(directory / "keys");
  const std::vector<std::byte> bytes = SomeBytes(100001);
  FileMapping mapping;
  {
    ASSERT_OK_AND_ASSIGN(const auto file, files.Create(100001));
    const auto all = std::span(bytes);
    ASSERT_OK(file->Append(all.first(4096)));
    ASSERT_OK(file->Append(all.subspan(4096, 1)));
    ASSERT_OK(file->Append(all.subspan(4097)));
    EXPECT_THAT(NamesIn(directory / "keys"), IsEmpty());
    ASSERT_OK_AND_ASSIGN(mapping, file->Map());
  }
  // The descriptor is closed, but the file remains.
  ASSERT_EQ(mapping.size(), bytes.size());
  EXPECT_TRUE(std::equal(bytes.begin(), bytes.end(), mapping.random()));
  EXPECT_TRUE(std::equal(bytes.begin(), bytes.end(), mapping.sequential()));
  const FileMapping moved = std::move(mapping);
  EXPECT_EQ(mapping.size(), 0u);
  EXPECT_EQ(moved.random()[100000], bytes[100000]);
}

TEST(UnlinkedFilesTest, ADiskWithoutRoomIsToldBeforehand) {
  const ScratchDirectory directory;
  UnlinkedFiles files(directory / "keys");
  const auto much = std::numeric_limits<std::int64_t>::max() / 2;
  EXPECT_OK(files.CheckRoom(1));
  EXPECT_THAT(
      files.CheckRoom(much),
      StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("is full")));
  EXPECT_THAT(files.Create(much), StatusIs(absl::StatusCode::kResourceExhausted,
                                           HasSubstr("is full")));
  // Other writers may have filled the disk since.
  ASSERT_OK_AND_ASSIGN(const auto file, files.Create(1));
  EXPECT_OK(file->Append(SomeBytes(1)));
}

// Stands in for a disk that fills up halfway through the file.
TEST(UnlinkedFilesTest, AFileThatCanNotGrowSaysSo) {
  const ScratchDirectory directory;
  UnlinkedFiles files(directory / "keys");
  ASSERT_OK_AND_ASSIGN(const auto file, files.Create(5000));
  const auto previous = signal(SIGXFSZ, SIG_IGN);
  rlimit limit;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &limit), 0);
  const rlimit little = {3000, limit.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &little), 0);
  const absl::Status first = file->Append(SomeBytes(2000));
  const absl::Status second = file->Append(SomeBytes(2000));
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
  signal(SIGXFSZ, previous);
  EXPECT_OK(first);
  EXPECT_THAT(second, StatusIs(absl::StatusCode::kResourceExhausted,
                               HasSubstr("File too large")));
}

TEST(UnlinkedFilesTest, OnlyOwnLeftOversAreRemoved) {
  const ScratchDirectory directory;
  UnlinkedFiles files(directory.path());
  std::ofstream(directory / "unnamed-a1B2c3") << "crashed";
  std::ofstream(directory / "another") << "not ours";
  files.RemoveLeftOvers();
  EXPECT_THAT(NamesIn(directory.path()), ElementsAre("another"));
  UnlinkedFiles(directory / "nowhere").RemoveLeftOvers();
}

}  // namespace
}  // namespace attendant
