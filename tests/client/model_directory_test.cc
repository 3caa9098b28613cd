#include "client/commands/model_directory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <utility>

#include "core/encode/text_encoder.h"
#include "tests/client/temporary_file.h"
#include "tests/support/scratch_directory.h"
#include "tests/support/status_matchers.h"

namespace attendant {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

Model TextModel(int dim) {
  Model model;
  model.key_field.set_name("text");
  model.key_field.set_dimension(dim);
  model.has_encoder = true;
  return model;
}

TEST(ModelDirectoryTest, EncoderTooLargeForARequestNamesFileAndRemedy) {
  const ScratchDirectory directory;
  const std::string path = WriteIn(directory, kEncoderFile, "");
  const auto too_large =
      StatusIs(kInvalid, AllOf(HasSubstr(path),
                               HasSubstr(std::to_string(kMaxEncoderBytes)),
                               HasSubstr("smaller --dim")));
  std::filesystem::resize_file(path, kMaxEncoderBytes + 1);
  EXPECT_THAT(ReadTextEncoder(directory.path(), TextModel(2)), too_large);
  EXPECT_THAT(CheckEncoderSize(directory.path(), kMaxEncoderBytes + 1),
              too_large);

  // One byte less is read, and is no encoder.
  std::filesystem::resize_file(path, kMaxEncoderBytes);
  EXPECT_THAT(ReadTextEncoder(directory.path(), TextModel(2)),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr(path)));
  EXPECT_OK(CheckEncoderSize(directory.path(), kMaxEncoderBytes));
}

// Hence what CheckEncoderSize lets through fits a request.
TEST(ModelDirectoryTest, EncoderIsNoLargerOnTheWireThanInItsFile) {
  for (const std::size_t term_size : {1, 127, 128, 5000}) {
    TextEncoderParts parts;
    parts.dim = 3;
    for (char first = 'a'; first <= 'z'; ++first) {
      parts.terms.push_back(std::string(1, first) +
                            std::string(term_size - 1, 'x'));
      parts.idf.push_back(1);
      parts.projection.insert(parts.projection.end(), {1, 2, 3});
    }
    ASSERT_OK_AND_ASSIGN(const TextEncoder encoder,
                         TextEncoder::Create(std::move(parts)));
    const std::string bytes = encoder.Serialize();
    const ScratchDirectory directory;
    WriteIn(directory, kEncoderFile, bytes);
    ASSERT_OK_AND_ASSIGN(const v1::TextEncoder wire,
                         ReadTextEncoder(directory.path(), TextModel(3)));
    EXPECT_EQ(wire.terms_size(), 26);
    EXPECT_LE(wire.ByteSizeLong(), bytes.size()) << term_size;
  }
}

}  // namespace
}  // namespace attendant
