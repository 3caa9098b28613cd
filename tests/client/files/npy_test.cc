#include "client/files/npy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/client/temporary_file.h"
#include "tests/support/status_matchers.h"

namespace attendant {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

template <typename T>
std::string Bytes(const std::vector<T>& values) {
  return std::string(reinterpret_cast<const char*>(values.data()),
                     values.size() * sizeof(T));
}

// Builds a file from the format's specification: magic, version, length,
// dictionary, data.
std::string HandMade(int version, const std::string& dictionary,
                     const std::string& data) {
  std::string bytes = "\x93NUMPY";
  bytes.push_back(static_cast<char>(version));
  bytes.push_back('\0');
  const int length_bytes = version == 1 ? 2 : 4;
  for (int i = 0; i < length_bytes; ++i) {
    bytes.push_back(static_cast<char>((dictionary.size() >> (8 * i)) & 0xff));
  }
  return bytes + dictionary + data;
}

constexpr char kFloats2x3[] =
    "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }\n";

std::vector<float> RowOf(VectorFile& file, std::int64_t row) {
  std::vector<float> components(static_cast<std::size_t>(file.dim()));
  EXPECT_OK(file.ReadRow(row, components));
  return components;
}

TEST(NpyTest, ReadsAllVersionsInAnyOrderOfRows) {
  for (const int version : {1, 2, 3}) {
    const TemporaryFile file(
        "keys.npy",
        HandMade(version, kFloats2x3, Bytes<float>({1, 2, 3, 4, 5, 6})));
    ASSERT_OK_AND_ASSIGN(const auto npy, OpenNpy(file.path()));
    EXPECT_EQ(npy->row_count(), 2);
    EXPECT_EQ(npy->dim(), 3);
    EXPECT_THAT(RowOf(*npy, 1), ElementsAre(4, 5, 6));
    EXPECT_THAT(RowOf(*npy, 0), ElementsAre(1, 2, 3));
    EXPECT_THAT(RowOf(*npy, 1), ElementsAre(4, 5, 6));
  }
}

TEST(NpyTest, ReadsDoublesAsFloats) {
  const TemporaryFile file(
      "keys.npy",
      HandMade(1, "{\"shape\":(1,2),\"fortran_order\":False,\"descr\":\"<f8\"}",
               Bytes<double>({0.1, -2})));
  ASSERT_OK_AND_ASSIGN(const auto npy, OpenNpy(file.path()));
  EXPECT_THAT(RowOf(*npy, 0), ElementsAre(0.1F, -2));
}

TEST(NpyTest, ReadsHalvesAsFloats) {
  const TemporaryFile file(
      "keys.npy",
      HandMade(1, "{'descr': '<f2', 'fortran_order': False, 'shape': (2, 2)}",
               Bytes<std::uint16_t>({0x3800, 0xc200, 0x0001, 0x7c00})));
  ASSERT_OK_AND_ASSIGN(const auto npy, OpenNpy(file.path()));
  EXPECT_THAT(RowOf(*npy, 0), ElementsAre(0.5F, -3));
  std::vector<float> row(2);
  EXPECT_THAT(npy->ReadRow(1, row),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("row 2: column 2: got inf")));
  EXPECT_EQ(row[0], 0x1p-24F);
}

TEST(NpyTest, ReadsOneDimensionAsOneRow) {
  const TemporaryFile file("query.npy", NpyBytes(std::vector<double>{1, 2, 3}));
  ASSERT_OK_AND_ASSIGN(const auto npy, OpenNpy(file.path()));
  EXPECT_EQ(npy->row_count(), 1);
  EXPECT_THAT(RowOf(*npy, 0), ElementsAre(1, 2, 3));
}

TEST(NpyTest, ReadsWhatItWrites) {
  // More rows than a buffer holds.
  std::vector<float> values(3 * 40000);
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<float>(i);
  }
  const std::string bytes = NpyBytes(values, 3);
  EXPECT_EQ((bytes.size() - values.size() * sizeof(float)) % 64, 0U);
  const TemporaryFile file("keys.npy", bytes);
  ASSERT_OK_AND_ASSIGN(const auto npy, OpenNpy(file.path()));
  ASSERT_EQ(npy->row_count(), 40000);
  for (std::int64_t row = 0; row < npy->row_count(); ++row) {
    const auto first = static_cast<float>(3 * row);
    ASSERT_THAT(RowOf(*npy, row), ElementsAre(first, first + 1, first + 2));
  }
}

TEST(NpyTest, RefusesEveryTruncation) {
  const std::string whole =
      HandMade(1, kFloats2x3, Bytes<float>({1, 2, 3, 4, 5, 6}));
  for (std::size_t size = 0; size < whole.size(); ++size) {
    const TemporaryFile file("keys.npy", whole.substr(0, size));
    EXPECT_THAT(OpenNpy(file.path()),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         StartsWith(file.path() + ": ")))
        << size;
  }
  const TemporaryFile longer("keys.npy", whole + "x");
  EXPECT_THAT(OpenNpy(longer.path()),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("got 25 bytes of data, want (2, 3) x 4")));
}

TEST(NpyTest, SaysWhatItDoesNotRead) {
  const struct {
    const char* dictionary;
    const char* message;
  } cases[] = {
      {"{'descr': '<i8', 'fortran_order': False, 'shape': (2, 3), }",
       "got dtype '<i8', want '<f4', '<f2' or '<f8': save "
       "array.astype('float32')"},
      {"{'descr': '>f4', 'fortran_order': False, 'shape': (2, 3), }", "'>f4'"},
      {"{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3), }",
       "Fortran order"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (), }",
       "got 0 dimensions"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (1, 2, 3), }",
       "got 3 dimensions"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (2, 0), }",
       "rows of 0 components"},
      {"{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (2,), }",
       "'descr'"},
      {"{'descr': '<f4', 'shape': (2, 3), }", "'fortran_order'"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), 'x': 1}",
       "field 'x'"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (-2, 3), }",
       "'shape'"},
      {"no dictionary", "start"},
  };
  for (const auto& test : cases) {
    const TemporaryFile file(
        "keys.npy",
        HandMade(1, test.dictionary, Bytes<float>({1, 2, 3, 4, 5, 6})));
    EXPECT_THAT(
        OpenNpy(file.path()),
        StatusIs(absl::StatusCode::kInvalidArgument,
                 AllOf(StartsWith(file.path()), HasSubstr(test.message))))
        << test.dictionary;
  }
}

TEST(NpyTest, BelievesNoShapeThatTheFileCannotHold) {
  for (const char* shape :
       {"(9223372036854775807, 1)", "(4611686018427387904, 4)",
        "(0, 9223372036854775807)", "(9223372036854775807,)",
        "(99999999999999999999, 1)", "(1152921504606846976, 16)"}) {
    const TemporaryFile file(
        "keys.npy",
        HandMade(1,
                 absl::StrCat("{'descr': '<f4', 'fortran_order': False, "
                              "'shape': ",
                              shape, "}"),
                 Bytes<float>({1, 2})));
    EXPECT_THAT(
        OpenNpy(file.path()),
        StatusIs(absl::StatusCode::kInvalidArgument, StartsWith(file.path())))
        << shape;
  }
  std::string bytes = HandMade(2, kFloats2x3, Bytes<float>({1}));
  bytes[11] = '\x7f';  // a header of 2 GiB
  const TemporaryFile file("keys.npy", bytes);
  EXPECT_THAT(OpenNpy(file.path()), StatusIs(absl::StatusCode::kInvalidArgument,
                                             HasSubstr("got a header of")));
}

TEST(NpyTest, NamesRowAndColumnOfWhatIsNotFinite) {
  std::vector<float> values(20 * 2, 1);
  values[16 * 2 + 1] = std::numeric_limits<float>::quiet_NaN();
  const TemporaryFile file("keys.npy", NpyBytes(values, 2));
  ASSERT_OK_AND_ASSIGN(const auto npy, OpenNpy(file.path()));
  std::vector<float> row(2);
  EXPECT_OK(npy->ReadRow(15, row));
  EXPECT_THAT(npy->ReadRow(16, row),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       file.path() +
                           ": row 17: column 2: got nan, want a finite 32-bit "
                           "float"));
  EXPECT_OK(npy->ReadRow(17, row));
}

TEST(NpyTest, RefusesDoublesThatNoFloatHolds) {
  const TemporaryFile file("keys.npy", NpyBytes(std::vector<double>{1, -1e39}));
  ASSERT_OK_AND_ASSIGN(const auto npy, OpenNpy(file.path()));
  std::vector<float> row(2);
  EXPECT_THAT(npy->ReadRow(0, row),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("row 1: column 2: got -inf")));
}

TEST(NpyTest, NamesTheFileThatIsNotThere) {
  const std::string path = ::testing::TempDir() + "/no/such.npy";
  EXPECT_THAT(OpenNpy(path),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr(path)));
}

}  // namespace
}  // namespace attendant
