// Checks FaultyFileSystem's power cut: unsynced data may be lost, synced data
// stays.
#include "tests/durability/faulty_file_system.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/storage/files/files.h"
#include "tests/support/scratch_directory.h"
#include "tests/support/status_matchers.h"

namespace attendant {
namespace {

using ::testing::HasSubstr;

constexpr int kSeeds = 40;

std::string Left(const std::string& path) {
  const auto bytes = Files().ReadFile(path);
  EXPECT_OK(bytes);
  return bytes.ok() && bytes->has_value() ? **bytes : "none";
}

// Returns the contents of "data/file" that `change` and a cut leave, over many
// seeds.
template <typename Change>
std::set<std::string> AllThatMayBeLeft(Change change, bool zeros = false) {
  std::set<std::string> left;
  for (int seed = 0; seed < kSeeds; ++seed) {
    const ScratchDirectory directory;
    const std::string root = directory / "data";
    auto files = std::make_shared<FaultyFileSystem>(root, seed);
    EXPECT_OK(Files(files).MakeDirectory(root));
    change(*files, Files(files), root);
    if (!files->cut()) {
      files->CutPowerAt(1, zeros);
      EXPECT_OK(Files(files).ReplaceFile(root + "/after", "the cut"));
    }
    EXPECT_TRUE(files->cut());
    files->RestoreAfterCut();
    EXPECT_FALSE(files->cut());
    left.insert(Left(root + "/file"));
  }
  return left;
}

std::unique_ptr<rocksdb::FSWritableFile> NewFile(FaultyFileSystem& files,
                                                 const std::string& path) {
  std::unique_ptr<rocksdb::FSWritableFile> file;
  EXPECT_TRUE(files.NewWritableFile(path, {}, &file, nullptr).ok());
  return file;
}

TEST(FaultyFileSystemTest, WhatIsCommittedStays) {
  EXPECT_EQ(AllThatMayBeLeft([](FaultyFileSystem&, const Files& files,
                                const std::string& root) {
              EXPECT_OK(files.ReplaceFile(root + "/file", "old"));
              EXPECT_OK(files.ReplaceFile(root + "/file", "new"));
            }),
            std::set<std::string>{"new"});
}

TEST(FaultyFileSystemTest, ANameThatIsNotSyncedMayGo) {
  EXPECT_EQ(AllThatMayBeLeft([](FaultyFileSystem& files, const Files&,
                                const std::string& root) {
              const auto file = NewFile(files, root + "/file");
              EXPECT_TRUE(file->Append("x", {}, nullptr).ok());
              EXPECT_TRUE(file->Sync({}, nullptr).ok());
            }),
            (std::set<std::string>{"none", "x"}));
}

TEST(FaultyFileSystemTest, ARemovalThatIsNotSyncedMayBeUndone) {
  EXPECT_EQ(AllThatMayBeLeft([](FaultyFileSystem&, const Files& files,
                                const std::string& root) {
              EXPECT_OK(files.ReplaceFile(root + "/file", "old"));
              EXPECT_OK(files.RemoveFile(root + "/file"));
            }),
            (std::set<std::string>{"none", "old"}));
}

TEST(FaultyFileSystemTest, ARenameThatIsNotSyncedMayBeUndone) {
  EXPECT_EQ(AllThatMayBeLeft([](FaultyFileSystem& files, const Files& our,
                                const std::string& root) {
              EXPECT_OK(our.ReplaceFile(root + "/file", "old"));
              EXPECT_OK(our.ReplaceFile(root + "/other", "new"));
              EXPECT_TRUE(
                  files.RenameFile(root + "/other", root + "/file", {}, nullptr)
                      .ok());
            }),
            (std::set<std::string>{"old", "new"}));
}

TEST(FaultyFileSystemTest, OfATailThatIsNotSyncedAPrefixIsLeft) {
  EXPECT_EQ(AllThatMayBeLeft([](FaultyFileSystem& files, const Files& our,
                                const std::string& root) {
              const auto file = NewFile(files, root + "/file");
              EXPECT_TRUE(file->Append("ab", {}, nullptr).ok());
              EXPECT_TRUE(file->Sync({}, nullptr).ok());
              EXPECT_OK(our.SyncDirectory(root));
              EXPECT_TRUE(file->Append("cd", {}, nullptr).ok());
            }),
            (std::set<std::string>{"ab", "abc", "abcd"}));
}

TEST(FaultyFileSystemTest, ATailMayBeZeros) {
  bool any = false;
  for (const std::string& left : AllThatMayBeLeft(
           [](FaultyFileSystem&files, const Files&our, const std::string&root) {
             const auto file = NewFile(files, root + "/file");
             EXPECT_TRUE(file->Append("ab", {}, nullptr).ok());
             EXPECT_TRUE(file->Sync({}, nullptr).ok());
             EXPECT_OK(our.SyncDirectory(root));
             EXPECT_TRUE(file->Append("cd", {}, nullptr).ok());
           },
           /*zeros=*/true)) {
    EXPECT_EQ(left.substr(0, 2), "ab");
    any |= left.find('\0') != left.npos;
  }
  EXPECT_TRUE(any);
}

TEST(FaultyFileSystemTest, ADirectoryThatIsNotSyncedGoesWithItsFiles) {
  const ScratchDirectory directory;
  const std::string root = directory / "data";
  bool gone = false;
  for (int seed = 0; seed < kSeeds; ++seed) {
    auto files = std::make_shared<FaultyFileSystem>(root, seed);
    ASSERT_OK(Files(files).MakeDirectory(root));
    ASSERT_TRUE(files->CreateDir(root + "/below", {}, nullptr).ok());
    ASSERT_OK(Files(files).ReplaceFile(root + "/below/file", "x"));
    files->CutPowerAt(1, false);
    ASSERT_OK(Files(files).RemoveFile(root + "/below/file"));
    files->RestoreAfterCut();
    gone |= !std::filesystem::exists(root + "/below");
    std::filesystem::remove_all(root);
  }
  EXPECT_TRUE(gone);
}

TEST(FaultyFileSystemTest, ARenamedDirectoryKeepsItsFiles) {
  const ScratchDirectory directory;
  const std::string root = directory / "data";
  std::set<std::string> left;
  for (int seed = 0; seed < kSeeds; ++seed) {
    auto faulty = std::make_shared<FaultyFileSystem>(root, seed);
    const Files files(faulty);
    ASSERT_OK(files.MakeDirectory(root + "/draft/below"));
    ASSERT_OK(files.ReplaceFile(root + "/draft/below/file", "x"));
    ASSERT_TRUE(
        faulty->RenameFile(root + "/draft", root + "/named", {}, nullptr).ok());
    if (seed % 2 == 0) {
      ASSERT_OK(files.SyncDirectory(root));
    }
    faulty->CutPowerAt(1, false);
    ASSERT_OK(files.RemoveFile(root + "/named/below/file"));
    faulty->RestoreAfterCut();
    ASSERT_OK_AND_ASSIGN(const bool is_named,
                         files.PathExists(root + "/named"));
    const std::string name = is_named ? "named" : "draft";
    EXPECT_EQ(Left(root + "/" + name + "/below/file"), "x");
    EXPECT_TRUE(seed % 2 == 1 || name == "named");
    left.insert(name);
    std::filesystem::remove_all(root);
  }
  EXPECT_EQ(left, (std::set<std::string>{"draft", "named"}));
}

TEST(FaultyFileSystemTest, WhatComesAfterTheCutIsForNothing) {
  EXPECT_EQ(AllThatMayBeLeft([](FaultyFileSystem& files, const Files& our,
                                const std::string& root) {
              EXPECT_OK(our.ReplaceFile(root + "/file", "old"));
              files.CutPowerAt(1, false);
              EXPECT_OK(our.ReplaceFile(root + "/file", "new"));
            }),
            std::set<std::string>{"old"});
}

TEST(FaultyFileSystemTest, AFaultBefallsTheCallThatItIsMeantFor) {
  const ScratchDirectory directory;
  auto faulty = std::make_shared<FaultyFileSystem>(directory.path(), 1);
  const Files files(faulty);
  const std::string path = directory / "file";
  for (const FileCall call : {FileCall::kCreate, FileCall::kWrite,
                              FileCall::kSync, FileCall::kRename}) {
    faulty->InjectNothing();
    faulty->Inject({FileFault::Kind::kFail, call, 2, "file"});
    ASSERT_OK(files.ReplaceFile(directory / "another", "x"));
    ASSERT_OK(files.ReplaceFile(path, "x"));
    EXPECT_FALSE(faulty->befell());
    EXPECT_THAT(files.ReplaceFile(path, "y"),
                StatusIs(absl::StatusCode::kInternal, HasSubstr("injected")));
    EXPECT_TRUE(faulty->befell());
    EXPECT_EQ(Left(path), "x");
    ASSERT_OK(files.ReplaceFile(path, "x"));
  }
  faulty->Inject({FileFault::Kind::kFail, FileCall::kRemove, 1, "file"});
  EXPECT_FALSE(files.RemoveFile(path).ok());
  faulty->Inject({FileFault::Kind::kFail, FileCall::kOpen, 1, "file"});
  EXPECT_FALSE(files.ReadFile(path).ok());
  faulty->Inject({FileFault::Kind::kNoSpace, FileCall::kWrite, 1, "file"});
  EXPECT_EQ(files.ReplaceFile(path, "y").code(),
            absl::StatusCode::kResourceExhausted);
  faulty->Inject({FileFault::Kind::kDelay, FileCall::kWrite, 1, "file"});
  EXPECT_OK(files.ReplaceFile(path, "y"));
  EXPECT_TRUE(faulty->befell());
  faulty->Inject({FileFault::Kind::kFail, FileCall::kWrite, 1, "file"});
  faulty->InjectNothing();
  EXPECT_FALSE(faulty->befell());
  EXPECT_OK(files.ReplaceFile(path, "z"));
}

TEST(FaultyFileSystemTest, FaultsThatStruckAreKeptWithTheirPaths) {
  const ScratchDirectory directory;
  auto faulty = std::make_shared<FaultyFileSystem>(directory.path(), 1);
  const Files files(faulty);
  faulty->Inject({FileFault::Kind::kDelay, FileCall::kRename, 2, ""});
  EXPECT_OK(files.ReplaceFile(directory / "one", "x"));
  EXPECT_THAT(faulty->struck(), ::testing::IsEmpty());
  EXPECT_OK(files.ReplaceFile(directory / "two", "x"));
  faulty->InjectNothing();
  faulty->Inject({FileFault::Kind::kNoSpace, FileCall::kRemove, 1, "o"});
  EXPECT_FALSE(files.RemoveFile(directory / "one").ok());
  const std::vector<FileFault> struck = faulty->struck();
  ASSERT_EQ(struck.size(), 2);
  EXPECT_EQ(struck[0].kind, FileFault::Kind::kDelay);
  EXPECT_EQ(struck[0].call, FileCall::kRename);
  EXPECT_EQ(struck[0].path_part, "two");
  EXPECT_EQ(struck[1].kind, FileFault::Kind::kNoSpace);
  EXPECT_EQ(struck[1].path_part, "one");
}

TEST(FaultyFileSystemTest, AShortenedWriteIsHalfDone) {
  const ScratchDirectory directory;
  FaultyFileSystem files(directory.path(), 1);
  const auto file = NewFile(files, directory / "file");
  files.Inject({FileFault::Kind::kShorten, FileCall::kWrite, 1, ""});
  EXPECT_FALSE(file->Append("abcd", {}, nullptr).ok());
  EXPECT_EQ(Left(directory / "file"), "ab");
}

}  // namespace
}  // namespace attendant
