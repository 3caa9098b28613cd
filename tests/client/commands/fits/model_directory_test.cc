#include "client/commands/fits/model_directory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
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

TEST(ModelDirectoryTest, ReadsWhatItWrites) {
  Model model;
  model.key_field.set_name("events");
  model.key_field.set_dimension(64);
  AttentionDefaults defaults;
  defaults.score_kind = ScoreKind::kCosine;
  defaults.combine_kind = CombineKind::kSumOverSqrtCount;
  defaults.temperature = 0.1 + 0.2;
  SetDefaults(defaults, model.key_field);
  auto& attribute = model.attributes.emplace_back();
  attribute.set_name("name");
  attribute.set_type(v1::ATTRIBUTE_TYPE_STRING);
  model.has_encoder = true;
  const ScratchDirectory directory;
  WriteIn(directory, kModelFile, ModelJson(model));
  ASSERT_OK_AND_ASSIGN(const Model read, ReadModel(directory.path()));
  EXPECT_EQ(read.key_field.DebugString(), model.key_field.DebugString());
  EXPECT_EQ(read.key_field.temperature(), 0.1 + 0.2);
  EXPECT_EQ(read.key_field.score_kind(), v1::SCORE_KIND_COSINE);
  ASSERT_EQ(read.attributes.size(), 1U);
  EXPECT_EQ(read.attributes[0].DebugString(), attribute.DebugString());
  EXPECT_TRUE(read.has_encoder);
}

TEST(ModelDirectoryTest, RefusesEveryTruncation) {
  Model model;
  model.key_field.set_name("events");
  model.key_field.set_dimension(64);
  SetDefaults({}, model.key_field);
  const std::string whole = ModelJson(model);
  for (std::size_t size = 0; size + 2 < whole.size(); ++size) {
    const ScratchDirectory directory;
    const std::string path =
        WriteIn(directory, kModelFile, whole.substr(0, size));
    EXPECT_THAT(ReadModel(directory.path()),
                StatusIs(kInvalid, HasSubstr(path)))
        << size;
  }
}

TEST(ModelDirectoryTest, AnotherDirectoryIsNoFit) {
  const ScratchDirectory directory;
  for (const std::string& other :
       {directory.path(), directory.path() + "/missing"}) {
    EXPECT_THAT(
        ReadModel(other),
        StatusIs(absl::StatusCode::kNotFound,
                 other + ": not a directory that `attendant fit` wrote: it has "
                         "no model.json"));
  }
}

// The server decides which encoders are too large.
TEST(ModelDirectoryTest, EncodersOfAnySizeAreRead) {
  constexpr int kLargeDim = 4096;
  TextEncoderParts parts;
  parts.dim = kLargeDim;
  for (int i = 1000; i < 2100; ++i) {
    parts.terms.push_back(absl::StrCat("t", i));
    parts.idf.push_back(1);
    parts.projection.insert(parts.projection.end(), kLargeDim, 1.0f);
  }
  ASSERT_OK_AND_ASSIGN(const TextEncoder encoder,
                       TextEncoder::Create(std::move(parts)));
  const ScratchDirectory directory;
  WriteIn(directory, kEncoderFile, encoder.Serialize());
  ASSERT_OK_AND_ASSIGN(const v1::TextEncoder wire,
                       ReadTextEncoder(directory.path(), TextModel(kLargeDim)));
  EXPECT_GT(wire.ByteSizeLong(), 16u << 20);
}

// Hence the size that `fit text` reports holds for a request, too.
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
