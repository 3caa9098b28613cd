#include "client/files/tensor_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "client/files/npy.h"
#include "tests/client/safetensors_bytes.h"
#include "tests/client/temporary_file.h"
#include "tests/support/status_matchers.h"

namespace attendant {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr std::int64_t kMany = 1000;

TEST(TensorFilesTest, GathersFilesAndDirectories) {
  const ScratchDirectory directory;
  const ScratchDirectory other;
  WriteIn(directory, "out_proj.weight.npy",
          NpyBytes(std::vector<float>{1, 2, 3, 4}, 2));
  WriteIn(directory, "README", "not an array");
  const std::string alone =
      WriteIn(other, "v.npy", NpyBytes(std::vector<double>{5, 6, 7}));
  const std::string many =
      WriteIn(other, "m.safetensors",
              SafetensorsBytes({F32Tensor("W", {1, 1, 2}, {8, 9})}));
  ASSERT_OK_AND_ASSIGN(const TensorFiles files,
                       TensorFiles::Open({directory.path(), alone, many}));
  EXPECT_THAT(files.names(), ElementsAre("W", "out_proj.weight", "v"));
  ASSERT_OK_AND_ASSIGN(const Tensor matrix,
                       files.Read("out_proj.weight", kMany));
  EXPECT_THAT(matrix.shape, ElementsAre(2, 2));
  EXPECT_THAT(matrix.data, ElementsAre(1, 2, 3, 4));
  ASSERT_OK_AND_ASSIGN(const Tensor vector, files.Read("v", kMany));
  EXPECT_THAT(vector.shape, ElementsAre(1, 3));
  EXPECT_THAT(vector.data, ElementsAre(5, 6, 7));
  ASSERT_OK_AND_ASSIGN(const Tensor cube, files.Read("W", kMany));
  EXPECT_THAT(cube.shape, ElementsAre(1, 1, 2));
  EXPECT_EQ(files.FindShape("b"), nullptr);
}

TEST(TensorFilesTest, RefusesWhatItCannotTell) {
  const ScratchDirectory directory;
  EXPECT_THAT(TensorFiles::Open({}), StatusIs(kInvalid, HasSubstr("no files")));
  EXPECT_THAT(TensorFiles::Open({directory.path()}),
              StatusIs(kInvalid, HasSubstr("no .npy files")));
  const std::string text = WriteIn(directory, "weights.csv", "1 2");
  EXPECT_THAT(TensorFiles::Open({text}),
              StatusIs(kInvalid, AllOf(HasSubstr(text),
                                       HasSubstr("want a .safetensors file"))));
  EXPECT_THAT(TensorFiles::Open({directory / "missing.npy"}),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("missing.npy")));
  const std::string one =
      WriteIn(directory, "W.npy", NpyBytes(std::vector<double>{1}));
  const std::string two = WriteIn(directory, "w.safetensors",
                                  SafetensorsBytes({F32Tensor("W", {1}, {1})}));
  EXPECT_THAT(TensorFiles::Open({one, two}),
              StatusIs(kInvalid, AllOf(HasSubstr(two), HasSubstr(one))));
}

// The size is checked by the shape, before any data are read.
TEST(TensorFilesTest, TooLargeAnArrayIsNotRead) {
  const TemporaryFile file(
      "m.safetensors",
      SafetensorsBytes({F32Tensor("W", {2, 3}, {1, 2, 3, 4, 5, 6})}));
  ASSERT_OK_AND_ASSIGN(const TensorFiles files,
                       TensorFiles::Open({file.path()}));
  EXPECT_OK(files.Read("W", 6));
  EXPECT_THAT(files.Read("W", 5),
              StatusIs(kInvalid, AllOf(HasSubstr("tensor W: got [2, 3]"),
                                       HasSubstr("at most 5"))));
}

}  // namespace
}  // namespace attendant
