#include "client/files/safetensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>

#include "tests/client/safetensors_bytes.h"
#include "tests/client/temporary_file.h"
#include "tests/support/status_matchers.h"

namespace attendant {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

absl::StatusOr<SafetensorsFile> Open(const std::string& bytes) {
  const TemporaryFile file("model.safetensors", bytes);
  return SafetensorsFile::Open(file.path());
}

absl::StatusOr<SafetensorsFile> OpenHeader(const std::string& header,
                                           const std::string& data = "") {
  return Open(SafetensorsBytes(header, data));
}

// Writes a file with one tensor "t" and reads it.
absl::StatusOr<std::vector<float>> ReadOne(const std::string& dtype,
                                           std::vector<std::int64_t> shape,
                                           const std::string& bytes) {
  const auto file =
      Open(SafetensorsBytes({{"t", dtype, std::move(shape), bytes}}));
  if (!file.ok()) return file.status();
  return file->Read("t");
}

TEST(SafetensorsTest, ReadsTensorsByName) {
  ASSERT_OK_AND_ASSIGN(
      const SafetensorsFile file,
      Open(SafetensorsBytes({F32Tensor("weight", {2, 3}, {1, 2, 3, 4, 5, 6}),
                             F32Tensor("bias", {2}, {-1, 0.5F}),
                             F32Tensor("scalar", {}, {7}),
                             F32Tensor("empty", {0, 9}, {})})));
  EXPECT_EQ(file.tensors().size(), 4u);
  EXPECT_THAT(file.tensors().at("weight").shape, ElementsAre(2, 3));
  EXPECT_THAT(*file.Read("weight"), ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_THAT(*file.Read("bias"), ElementsAre(-1, 0.5F));
  EXPECT_THAT(*file.Read("scalar"), ElementsAre(7));
  EXPECT_THAT(*file.Read("empty"), ElementsAre());
}

TEST(SafetensorsTest, ReadsDoubles) {
  EXPECT_THAT(*ReadOne("F64", {2}, BytesOf<double>({0.1, -1e-300})),
              ElementsAre(0.1F, -0.0F));
  EXPECT_THAT(
      ReadOne("F64", {1}, BytesOf<double>({1e39})),
      StatusIs(kInvalid, HasSubstr("tensor t: component 0: got 1e+39")));
}

// Compares every finite binary16 and bfloat16 with its definition.
TEST(SafetensorsTest, ReadsEveryHalf) {
  std::vector<std::uint16_t> bits;
  std::vector<float> want;
  for (int i = 0; i < 1 << 16; ++i) {
    const int exponent = i >> 10 & 0x1f;
    if (exponent == 0x1f) continue;
    const double significand = (i & 0x3ff) / 1024.0 + (exponent > 0 ? 1 : 0);
    const double sign = (i >> 15) != 0 ? -1 : 1;
    bits.push_back(static_cast<std::uint16_t>(i));
    want.push_back(static_cast<float>(
        sign * significand * std::pow(2.0, std::max(exponent, 1) - 15)));
  }
  const auto count = static_cast<std::int64_t>(bits.size());
  EXPECT_EQ(*ReadOne("F16", {count}, BytesOf(bits)), want);
}

TEST(SafetensorsTest, ReadsEveryBrainFloat) {
  std::vector<std::uint16_t> bits;
  std::vector<float> want;
  for (int i = 0; i < 1 << 16; ++i) {
    const int exponent = i >> 7 & 0xff;
    if (exponent == 0xff) continue;
    const double significand = (i & 0x7f) / 128.0 + (exponent > 0 ? 1 : 0);
    const double sign = (i >> 15) != 0 ? -1 : 1;
    bits.push_back(static_cast<std::uint16_t>(i));
    want.push_back(static_cast<float>(
        sign * significand * std::pow(2.0, std::max(exponent, 1) - 127)));
  }
  const auto count = static_cast<std::int64_t>(bits.size());
  EXPECT_EQ(*ReadOne("BF16", {count}, BytesOf(bits)), want);
}

TEST(SafetensorsTest, WhatIsNotFiniteIsNamed) {
  const auto refused = StatusIs(
      kInvalid, AllOf(HasSubstr("model.safetensors: tensor t: component 1"),
                      HasSubstr("want a finite 32-bit float")));
  EXPECT_THAT(ReadOne("F16", {2}, BytesOf<std::uint16_t>({0, 0x7c00})),
              refused);
  EXPECT_THAT(ReadOne("F16", {2}, BytesOf<std::uint16_t>({0, 0x7e00})),
              refused);
  EXPECT_THAT(ReadOne("BF16", {2}, BytesOf<std::uint16_t>({0, 0xff80})),
              refused);
  EXPECT_THAT(ReadOne("F32", {2}, BytesOf<float>({0, NAN})), refused);
  EXPECT_THAT(ReadOne("F64", {2}, BytesOf<double>({0, INFINITY})), refused);
}

// Tensors that are not read may have any type.
TEST(SafetensorsTest, OtherTypesAreRefusedWhenRead) {
  ASSERT_OK_AND_ASSIGN(
      const SafetensorsFile file,
      Open(SafetensorsBytes({{"steps", "I64", {1}, BytesOf<std::int64_t>({1})},
                             F32Tensor("t", {1}, {1})})));
  EXPECT_THAT(*file.Read("t"), ElementsAre(1));
  EXPECT_THAT(file.Read("steps"),
              StatusIs(kInvalid, HasSubstr("tensor steps: got dtype I64, "
                                           "want F32, F16, BF16 or F64")));
}

TEST(SafetensorsTest, NamesWhatIsWrongWithAHeader) {
  EXPECT_THAT(Open(""), StatusIs(kInvalid, HasSubstr("too short")));
  EXPECT_THAT(Open(std::string(8, '\xff')),
              StatusIs(kInvalid, HasSubstr("got a header of 18446744073709551"
                                           "615 bytes, want at most 0")));
  EXPECT_THAT(OpenHeader("[]"),
              StatusIs(kInvalid, HasSubstr("not a JSON object")));
  EXPECT_THAT(OpenHeader("{"),
              StatusIs(kInvalid, HasSubstr("not a JSON object")));
  EXPECT_THAT(OpenHeader(R"({"t": 1})"),
              StatusIs(kInvalid, HasSubstr("tensor t: not an object")));
  const std::string data(8, '\0');
  for (const auto& [entry, what] :
       std::vector<std::pair<std::string, std::string>>{
           {R"("shape": [2], "data_offsets": [0, 8])", "dtype"},
           {R"("dtype": 4, "shape": [2], "data_offsets": [0, 8])", "dtype"},
           {R"("dtype": "F32", "data_offsets": [0, 8])", "shape"},
           {R"("dtype": "F32", "shape": [-2], "data_offsets": [0, 8])",
            "shape"},
           {R"("dtype": "F32", "shape": [2.0], "data_offsets": [0, 8])",
            "shape"},
           {R"("dtype": "F32", "shape": [2])", "data_offsets"},
           {R"("dtype": "F32", "shape": [2], "data_offsets": [0])",
            "data_offsets"},
           {R"("dtype": "F32", "shape": [2], "data_offsets": [8, 0])",
            "the bytes [8, 0), want some of 8"},
           {R"("dtype": "F32", "shape": [4], "data_offsets": [0, 16])",
            "the bytes [0, 16), want some of 8"},
           {R"("dtype": "F32", "shape": [1], "data_offsets": [0, 8])",
            "got 8 bytes, want [1] x 4"},
           {R"("dtype": "F32", "shape": [2], "data_offsets":
               [18446744073709551608, 8])",
            "data_offsets"},
           {R"("dtype": "F32", "shape": [4294967296, 4294967296, 2],
               "data_offsets": [0, 8])",
            "got 8 bytes"}}) {
    EXPECT_THAT(
        OpenHeader(absl::StrCat("{\"t\": {", entry, "}}"), data),
        StatusIs(kInvalid, AllOf(HasSubstr("tensor t: "), HasSubstr(what))))
        << entry;
  }
}

TEST(SafetensorsTest, TensorsThatShareBytesAreRefused) {
  const auto header = [](const std::string& offsets) {
    return absl::StrCat(
        R"({"a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}, )",
        R"("b": {"dtype": "F32", "shape": [2], "data_offsets": )", offsets,
        R"(}, "c": {"dtype": "F32", "shape": [0], "data_offsets": [4, 4]}})");
  };
  const std::string data(16, '\0');
  // Empty tensors share no bytes.
  EXPECT_OK(OpenHeader(header("[8, 16]"), data));
  EXPECT_THAT(
      OpenHeader(header("[7, 15]"), data),
      StatusIs(kInvalid, HasSubstr("tensor b: it shares bytes with a")));
  EXPECT_THAT(OpenHeader(header("[0, 8]"), data),
              StatusIs(kInvalid, HasSubstr("shares bytes with")));
}

TEST(SafetensorsTest, NamesThatAreThereTwiceAreRefused) {
  const std::string first =
      R"("a": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]})";
  const std::string second =
      R"("a": {"dtype": "F32", "shape": [1], "data_offsets": [4, 8]})";
  const std::string data(8, '\0');
  EXPECT_THAT(
      OpenHeader(absl::StrCat("{", first, ", ", second, "}"), data),
      StatusIs(kInvalid, HasSubstr("an object with two members \"a\"")));
  EXPECT_THAT(
      OpenHeader(
          R"({"a": {"dtype": "F32", "shape": [1], "shape": [2],
              "data_offsets": [0, 8]}})",
          data),
      StatusIs(kInvalid, HasSubstr("an object with two members \"shape\"")));
  // The same name may appear in different objects.
  EXPECT_OK(OpenHeader(
      R"({"shape": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}})",
      data));
}

TEST(SafetensorsTest, HeadersThatLieAreRefusedBeforeTheyAreBelieved) {
  std::string bytes = SafetensorsBytes("{}", "");
  bytes[5] = 1;  // a terabyte
  EXPECT_THAT(Open(bytes), StatusIs(kInvalid, HasSubstr("want at most 2")));
}

// Changes every byte, and truncates to every length: the file is refused, or
// all reads stay within it. Sanitizers would report a read past the end.
TEST(SafetensorsTest, NoDamageIsReadPastTheEnd) {
  const std::string bytes =
      SafetensorsBytes({F32Tensor("a", {2}, {1, 2}),
                        {"b", "F16", {3}, BytesOf<std::uint16_t>({1, 2, 3})}});
  int refused = 0;
  const auto check = [&](const std::string& path) {
    const auto file = SafetensorsFile::Open(path);
    if (!file.ok()) {
      EXPECT_EQ(file.status().code(), kInvalid);
      ++refused;
      return;
    }
    for (const auto& [name, entry] : file->tensors()) {
      const auto components = file->Read(name);
      if (!components.ok()) {
        EXPECT_EQ(components.status().code(), kInvalid);
        continue;
      }
      EXPECT_LE(components->size(), bytes.size() / 2);
    }
  };
  const TemporaryFile file("model.safetensors", bytes);
  std::fstream stream(file.path(),
                      std::ios::in | std::ios::out | std::ios::binary);
  const auto put = [&](std::size_t at, char value) {
    stream.seekp(static_cast<std::streamoff>(at));
    stream.put(value);
    stream.flush();
  };
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    for (const char value : {'\0', '\x7f', '\xff', '0', '9', '-', '"', '}'}) {
      put(i, value);
      check(file.path());
    }
    put(i, bytes[i]);
  }
  EXPECT_GT(refused, 0);
  EXPECT_OK(SafetensorsFile::Open(file.path()));
  refused = 0;
  for (std::size_t size = bytes.size(); size-- > 0;) {
    std::filesystem::resize_file(file.path(), size);
    check(file.path());
  }
  EXPECT_EQ(refused, static_cast<int>(bytes.size()));
}

}  // namespace
}  // namespace attendant
