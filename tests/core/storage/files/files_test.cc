#include "core/storage/files/files.h"

#include <gmock/gmock.h>
#include <rocksdb/file_system.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/fail_point.h"
#include "core/base/status.h"
#include "tests/support/scratch_directory.h"
#include "tests/support/status_matchers.h"

namespace attendant {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Optional;
using ::testing::UnorderedElementsAre;

class FilesTest : public ::testing::Test {
 protected:
  std::vector<std::string> Names() {
    const auto names = files_.ListDirectory(directory_.path());
    EXPECT_OK(names);
    return names.ok() ? *names : std::vector<std::string>();
  }

  const Files files_;
  ScratchDirectory directory_;
};

TEST_F(FilesTest, AFileIsReadBackWhole) {
  const std::string bytes(200001, 'x');
  const std::string path = directory_ / "file";
  ASSERT_OK(files_.ReplaceFile(path, bytes));
  EXPECT_THAT(*files_.ReadFile(path), Optional(bytes));
  ASSERT_OK(files_.ReplaceFile(path, ""));
  EXPECT_THAT(*files_.ReadFile(path), Optional(std::string()));
  EXPECT_THAT(Names(), ElementsAre("file"));
}

TEST_F(FilesTest, ATailIsTheLastBytes) {
  const std::string path = directory_ / "file";
  ASSERT_OK(files_.ReplaceFile(path, "0123456789"));
  EXPECT_EQ(*files_.ReadTail(path, 3), "789");
  EXPECT_EQ(*files_.ReadTail(path, 11), "0123456789");
  EXPECT_EQ(*files_.ReadTail(path, 0), "");
  EXPECT_THAT(files_.ReadTail(directory_ / "none", 1),
              StatusIs(absl::StatusCode::kInternal, HasSubstr("none")));
}

TEST_F(FilesTest, AMissingFileIsNothing) {
  ASSERT_OK_AND_ASSIGN(const auto bytes, files_.ReadFile(directory_ / "file"));
  EXPECT_FALSE(bytes.has_value());
  EXPECT_FALSE(files_.PathExists(directory_ / "file").value_or(true));
  EXPECT_OK(files_.RemoveFile(directory_ / "file"));
  EXPECT_OK(files_.RemoveTree(directory_ / "file"));
  ASSERT_OK_AND_ASSIGN(const auto names,
                       files_.ListDirectory(directory_ / "file"));
  EXPECT_THAT(names, IsEmpty());
}

TEST_F(FilesTest, AFileGetsItsNameWhenItIsCommitted) {
  const std::string path = directory_ / "file";
  ASSERT_OK(files_.ReplaceFile(path, "old"));
  ASSERT_OK_AND_ASSIGN(const auto file, files_.NewFile(path));
  ASSERT_OK(file->Append("ne"));
  ASSERT_OK(file->Append("w"));
  EXPECT_EQ(file->size(), 3u);
  EXPECT_THAT(*files_.ReadFile(path), Optional(std::string("old")));
  EXPECT_THAT(Names(), UnorderedElementsAre("file", "file.tmp"));
  ASSERT_OK(file->Commit());
  EXPECT_THAT(*files_.ReadFile(path), Optional(std::string("new")));
  EXPECT_THAT(Names(), ElementsAre("file"));
}

TEST_F(FilesTest, WhatIsNotCommittedIsRemoved) {
  { ASSERT_OK(files_.NewFile(directory_ / "file")); }
  EXPECT_THAT(Names(), IsEmpty());
  ASSERT_OK(ArmFailPoint("file.before_rename=error"));
  EXPECT_THAT(files_.ReplaceFile(directory_ / "file", "bytes"),
              StatusIs(absl::StatusCode::kInternal, HasSubstr("fail point")));
  ASSERT_OK(ArmFailPoint(""));
  EXPECT_THAT(Names(), IsEmpty());
}

TEST_F(FilesTest, AFileThatCouldNotBeWrittenCanNotBeCommitted) {
  const auto previous = signal(SIGXFSZ, SIG_IGN);
  rlimit limit;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &limit), 0);
  ASSERT_OK_AND_ASSIGN(auto file, files_.NewFile(directory_ / "file"));
  const rlimit little = {10, limit.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &little), 0);
  const absl::Status status = file->Append("more than ten bytes");
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
  signal(SIGXFSZ, previous);
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kResourceExhausted,
                               HasSubstr("can't write")));
  EXPECT_EQ(file->Append("x"), status);
  EXPECT_EQ(file->Commit(), status);
  file = nullptr;
  EXPECT_THAT(Names(), IsEmpty());
}

TEST_F(FilesTest, DirectoriesAreMadeListedAndRemoved) {
  const std::string deep = directory_ / "a/b/c";
  ASSERT_OK(files_.MakeDirectory(deep));
  ASSERT_OK(files_.MakeDirectory(deep));
  ASSERT_OK(files_.ReplaceFile(deep + "/file", "bytes"));
  ASSERT_OK_AND_ASSIGN(const auto names, files_.ListDirectory(deep));
  EXPECT_THAT(names, ElementsAre("file"));
  EXPECT_FALSE(files_.RemoveFile(deep).ok());  // it is not empty
  ASSERT_OK(files_.RemoveTree(directory_ / "a"));
  EXPECT_THAT(Names(), IsEmpty());
  ASSERT_OK(files_.MakeDirectory(deep));
  ASSERT_OK(files_.RemoveFile(deep));
  EXPECT_FALSE(files_.PathExists(deep).value_or(true));
}

// Fails to sync any directory while told to.
class UnsyncedFileSystem : public rocksdb::FileSystemWrapper {
 public:
  UnsyncedFileSystem() : FileSystemWrapper(rocksdb::FileSystem::Default()) {}
  const char* Name() const override { return "UnsyncedFileSystem"; }
  rocksdb::IOStatus NewDirectory(const std::string& path,
                                 const rocksdb::IOOptions& options,
                                 std::unique_ptr<rocksdb::FSDirectory>* result,
                                 rocksdb::IODebugContext* debug) override {
    if (fails) return rocksdb::IOStatus::IOError("injected", path);
    return target()->NewDirectory(path, options, result, debug);
  }

  bool fails = true;
};

TEST_F(FilesTest, ADirectoryThatCouldNotBeSyncedIsNotThere) {
  const auto file_system = std::make_shared<UnsyncedFileSystem>();
  const Files files(file_system);
  EXPECT_THAT(files.MakeDirectory(directory_ / "above/below"),
              StatusIs(absl::StatusCode::kInternal, HasSubstr("injected")));
  EXPECT_THAT(Names(), IsEmpty());
  file_system->fails = false;
  ASSERT_OK(files.MakeDirectory(directory_ / "above"));
  file_system->fails = true;
  EXPECT_FALSE(files.MakeDirectory(directory_ / "above/below").ok());
  EXPECT_FALSE(files.PathExists(directory_ / "above/below").value_or(true));
  EXPECT_OK(files.MakeDirectory(directory_ / "above"));
}

TEST_F(FilesTest, OfALinkTheTargetStays) {
  ASSERT_OK(files_.MakeDirectory(directory_ / "target"));
  ASSERT_OK(files_.ReplaceFile(directory_ / "target/file", "bytes"));
  ASSERT_OK(files_.MakeDirectory(directory_ / "tree"));
  std::filesystem::create_symlink(directory_ / "target",
                                  directory_ / "tree/link");
  ASSERT_OK(files_.RemoveTree(directory_ / "tree"));
  EXPECT_THAT(Names(), ElementsAre("target"));
  EXPECT_TRUE(files_.PathExists(directory_ / "target/file").value_or(false));
}

TEST_F(FilesTest, WhatCantBeLookedAtIsNotMissing) {
  ASSERT_OK(files_.ReplaceFile(directory_ / "file", "bytes"));
  EXPECT_THAT(files_.PathExists(directory_ / "file/below"),
              StatusIs(absl::StatusCode::kDataLoss,
                       AllOf(HasSubstr("can't look at"),
                             HasSubstr("file/below: Not a directory"))));
}

TEST_F(FilesTest, ErrorsNameThePathAndTheCause) {
  std::ofstream(directory_ / "file") << "text";
  for (const absl::Status& status :
       {files_.MakeDirectory(directory_ / "file/below"),
        files_.ReadFile(directory_ / "file/below").status(),
        files_.ReplaceFile(directory_ / "file/below", ""),
        files_.ListDirectory(directory_ / "file").status()}) {
    EXPECT_THAT(status, StatusIs(absl::StatusCode::kDataLoss,
                                 AllOf(HasSubstr("can't "),
                                       HasSubstr(directory_.path()),
                                       HasSubstr("Not a directory"))));
  }
  EXPECT_THAT(
      files_.SyncDirectory(directory_ / "missing"),
      StatusIs(absl::StatusCode::kInternal,
               AllOf(HasSubstr("can't "), HasSubstr(directory_.path()))));
}

// Not PermissionDenied, which concerns the caller's own rights.
TEST_F(FilesTest, DeniedAccessIsUnavailableWithAReason) {
  for (const auto& [error, why] : {std::pair(EACCES, "Permission denied"),
                                   {EPERM, "Operation not permitted"},
                                   {EROFS, "Read-only file system"}}) {
    const absl::Status status = FileError(error, "can't open", "/data/FORMAT");
    EXPECT_THAT(status,
                StatusIs(absl::StatusCode::kUnavailable,
                         absl::StrCat("can't open /data/FORMAT: ", why)));
    EXPECT_EQ(ReasonOf(status), kFilesNotAccessible);
  }
}

TEST_F(FilesTest, AFileBeyondTheLimitOfTheProcessSaysWhatToRaise) {
  const absl::Status status = FileError(EFBIG, "can't write", "/data/000012");
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kResourceExhausted,
                               AllOf(HasSubstr("File too large"),
                                     HasSubstr("ulimit -f"))));
  EXPECT_EQ(ReasonOf(status), "FILE_TOO_LARGE");
}

TEST_F(FilesTest, ADirectoryThatMayNotBeReadIsNotEmpty) {
  if (geteuid() == 0) GTEST_SKIP() << "root may read everywhere";
  ASSERT_OK(files_.MakeDirectory(directory_ / "above/below"));
  std::filesystem::permissions(directory_ / "above",
                               std::filesystem::perms::none);
  for (const char* path : {"above", "above/below"}) {
    const absl::Status status =
        files_.ListDirectory(directory_ / path).status();
    EXPECT_THAT(status, StatusIs(absl::StatusCode::kUnavailable,
                                 HasSubstr(directory_ / path)));
    EXPECT_EQ(ReasonOf(status), kFilesNotAccessible);
  }
  std::filesystem::permissions(directory_ / "above",
                               std::filesystem::perms::owner_all);
}

TEST_F(FilesTest, FullTablesOfFilesAreToldApart) {
  rlimit limit;
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
  const std::filesystem::path path = directory_ / "file";
  // The sanitizer opens a pipe when it sees a class for the first time.
  ASSERT_OK(files_.NewFile(path).status());
  const rlimit none = {3, limit.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  const absl::Status status = files_.NewFile(path).status();
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
  EXPECT_THAT(ReasonOf(status), Optional(std::string("TOO_MANY_OPEN_FILES")));
}

TEST_F(FilesTest, AFileIsChangedInPlace) {
  EXPECT_OK(files_.OpenInPlace(directory_ / "file"));
  EXPECT_THAT(*files_.ReadFile(directory_ / "file"), Optional(std::string()));
  ASSERT_OK(files_.ReplaceFile(directory_ / "file", "bytes"));
  EXPECT_OK(files_.OpenInPlace(directory_ / "file"));
  EXPECT_THAT(*files_.ReadFile(directory_ / "file"),
              Optional(std::string("bytes")));
}

}  // namespace
}  // namespace attendant
