// Files of segments as they are written.
#include "core/storage/files/segment_directory.h"

#include <atomic>
#include <filesystem>
#include <fstream>
#include <vector>

#include "tests/support/scratch_directory.h"
#include "tests/support/status_matchers.h"

namespace attendant {
namespace {

using ::testing::HasSubstr;

class SegmentDirectoryTest : public ::testing::Test {
 protected:
  const ScratchDirectory scratch_;
  const SegmentDirectory directory_{scratch_ / "segments", Files()};
  const std::vector<float> numbers_ = std::vector<float>(1 << 20, 2);
};

TEST_F(SegmentDirectoryTest, GivesBackWhatItTook) {
  ASSERT_OK_AND_ASSIGN(const auto file, directory_.Create("some", 0));
  file->PutArray(std::span(numbers_));
  ASSERT_OK_AND_ASSIGN(const FileStamp stamp, file->Commit());
  ASSERT_OK_AND_ASSIGN(const auto source, directory_.Open("some", stamp));
  EXPECT_EQ(source->GetArray<std::vector<float>>(), numbers_);
  EXPECT_OK(source->status());
  EXPECT_EQ(source->left(), 0u);
  EXPECT_OK(source->Verify());
}

// The disk may return different bytes each time: the bytes that were used are
// those to verify.
TEST_F(SegmentDirectoryTest, WhatIsVerifiedIsWhatWasRead) {
  ASSERT_OK_AND_ASSIGN(const auto file, directory_.Create("some", 0));
  file->PutArray(std::span(numbers_));
  ASSERT_OK_AND_ASSIGN(const FileStamp stamp, file->Commit());
  ASSERT_OK_AND_ASSIGN(const auto source, directory_.Open("some", stamp));
  const auto change = [&](char byte) {
    std::fstream(scratch_ / "segments/some",
                 std::ios::binary | std::ios::in | std::ios::out)
        .seekp(-1, std::ios::end)
        .put(byte);
  };
  change('x');
  EXPECT_NE(source->GetArray<std::vector<float>>(), numbers_);
  EXPECT_OK(source->status());
  change('\x40');  // of the float 2
  EXPECT_THAT(source->Verify(),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("some")));
  ASSERT_OK_AND_ASSIGN(const auto again, directory_.Open("some", stamp));
  EXPECT_OK(again->Verify());
}

TEST_F(SegmentDirectoryTest, AnEndThatNobodyReadIsMissedToo) {
  ASSERT_OK_AND_ASSIGN(const auto file, directory_.Create("some", 0));
  file->PutArray(std::span(numbers_));
  file->Put('y');
  ASSERT_OK_AND_ASSIGN(const FileStamp stamp, file->Commit());
  std::filesystem::resize_file(scratch_ / "segments/some", stamp.size - 1);
  ASSERT_OK_AND_ASSIGN(const auto source, directory_.Open("some", stamp));
  EXPECT_EQ(source->GetArray<std::vector<float>>(), numbers_);
  EXPECT_OK(source->status());
  EXPECT_THAT(source->Verify(),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("some")));
}

TEST_F(SegmentDirectoryTest, WhatIsGivenUpLeavesNoFile) {
  std::atomic<bool> cancelled = false;
  {
    ASSERT_OK_AND_ASSIGN(const auto file,
                         directory_.Create("some", 0, &cancelled));
    file->PutArray(std::span(numbers_));
    EXPECT_OK(file->status());
    cancelled = true;
    file->PutArray(std::span(numbers_));
    EXPECT_THAT(file->Commit(),
                StatusIs(absl::StatusCode::kCancelled, HasSubstr("deleted")));
  }
  EXPECT_TRUE(std::filesystem::is_empty(scratch_ / "segments"));
}

}  // namespace
}  // namespace attendant
