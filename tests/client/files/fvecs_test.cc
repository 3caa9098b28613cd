#include "client/files/fvecs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "tests/client/temporary_file.h"
#include "tests/support/status_matchers.h"

namespace attendant {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

std::string Row(std::int32_t dim, const std::vector<float>& components) {
  return std::string(reinterpret_cast<const char*>(&dim), sizeof(dim)) +
         std::string(reinterpret_cast<const char*>(components.data()),
                     components.size() * sizeof(float));
}

TEST(FvecsTest, ReadsRows) {
  const TemporaryFile file("keys.fvecs",
                           Row(2, {1, 2}) + Row(2, {3, 4}) + Row(2, {5, 6}));
  ASSERT_OK_AND_ASSIGN(const auto fvecs, OpenVectorFile(file.path()));
  EXPECT_EQ(fvecs->row_count(), 3);
  EXPECT_EQ(fvecs->dim(), 2);
  std::vector<float> row(2);
  ASSERT_OK(fvecs->ReadRow(2, row));
  EXPECT_THAT(row, ElementsAre(5, 6));
  ASSERT_OK(fvecs->ReadRow(0, row));
  EXPECT_THAT(row, ElementsAre(1, 2));
}

TEST(FvecsTest, RefusesEveryTruncation) {
  const std::string whole = Row(2, {1, 2}) + Row(2, {3, 4});
  for (std::size_t size = 0; size < whole.size(); ++size) {
    if (size == whole.size() / 2) continue;  // one row is a file too
    const TemporaryFile file("keys.fvecs", whole.substr(0, size));
    EXPECT_THAT(OpenFvecs(file.path()),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         StartsWith(file.path() + ": ")))
        << size;
  }
}

TEST(FvecsTest, RefusesDimensionsOutOfRange) {
  for (const std::int32_t dim :
       {0, -1, 1000001, std::numeric_limits<std::int32_t>::max()}) {
    const TemporaryFile file("keys.fvecs", Row(dim, {1, 2}));
    EXPECT_THAT(OpenFvecs(file.path()),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr("row 1 has dimension")))
        << dim;
  }
}

TEST(FvecsTest, NamesTheRowOfAnotherDimension) {
  const TemporaryFile file("keys.fvecs", Row(2, {1, 2}) + Row(3, {3, 4}));
  ASSERT_OK_AND_ASSIGN(const auto fvecs, OpenFvecs(file.path()));
  std::vector<float> row(2);
  EXPECT_THAT(fvecs->ReadRow(1, row),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       file.path() + ": row 2: got dimension 3, want 2 as in "
                                     "the first row"));
}

TEST(FvecsTest, OpensByTheEndOfTheName) {
  const TemporaryFile file("keys.bin", Row(2, {1, 2}));
  EXPECT_THAT(OpenVectorFile(file.path()),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("neither in .npy, .fvecs, .txt nor .csv")));
}

}  // namespace
}  // namespace attendant
