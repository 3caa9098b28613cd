#include "core/encode/text_encoder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <xxhash.h>

#include <cmath>
#include <limits>

#include "core/base/status.h"
#include "tests/support/status_matchers.h"

namespace attendant {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;

std::vector<std::string> Terms(absl::string_view text) {
  return TermsOf(text).value();
}

TEST(TermsOfTest, WordsAndTheirThreeGramsInOrder) {
  EXPECT_THAT(Terms("Alarm, clock"),
              ElementsAre("alarm", "#_al", "#ala", "#lar", "#arm", "#rm_",
                          "clock", "#_cl", "#clo", "#loc", "#ock", "#ck_"));
}

TEST(TermsOfTest, ShortWordsKeepTheirBoundaries) {
  EXPECT_THAT(Terms("a 10"), ElementsAre("a", "#_a_", "10", "#_10", "#10_"));
}

TEST(TermsOfTest, RepetitionsStay) {
  EXPECT_THAT(Terms("a-a"), ElementsAre("a", "#_a_", "a", "#_a_"));
}

TEST(TermsOfTest, AllButLettersAndDigitsSeparates) {
  EXPECT_THAT(Terms("a_b#c"),
              ElementsAre("a", "#_a_", "b", "#_b_", "c", "#_c_"));
  EXPECT_THAT(Terms(" \t.,;!_#"), IsEmpty());
  EXPECT_THAT(Terms(""), IsEmpty());
  EXPECT_THAT(Terms(absl::string_view("a\0b", 3)),
              ElementsAre("a", "#_a_", "b", "#_b_"));
}

TEST(TermsOfTest, GramsAreOfCharactersNotBytes) {
  EXPECT_THAT(Terms("CAFÉ"),
              ElementsAre("café", "#_ca", "#caf", "#afé", "#fé_"));
  EXPECT_THAT(Terms("目覚まし時計"),
              ElementsAre("目覚まし時計", "#_目覚", "#目覚ま", "#覚まし",
                          "#まし時", "#し時計", "#時計_"));
}

TEST(TermsOfTest, EqualTextsInOtherFormsGiveEqualTerms) {
  EXPECT_EQ(Terms("cafe\u0301"), Terms("café"));  // a combining accent
  EXPECT_EQ(Terms("ﬁne"), Terms("fine"));         // a ligature
  EXPECT_EQ(Terms("ＡＢＣ１"), Terms("abc1"));    // full width
  EXPECT_EQ(Terms("STRASSE"), Terms("Straße"));   // full case folding
  EXPECT_EQ(Terms("co\u00ADop"), Terms("coop"));  // a soft hyphen
}

TEST(TermsOfTest, MarksOfAWordStayInIt) {
  EXPECT_EQ(Terms("घड़ी").size(), 1 + 4);  // 4 codepoints, two of them marks
}

TEST(TermsOfTest, MalformedUtf8IsAnError) {
  for (const absl::string_view text :
       {"\xff", "abc\xc3", "\xc0\xaf", "\xed\xa0\x80", "a\x80z"}) {
    EXPECT_THAT(TermsOf(text), StatusIs(kInvalid, HasSubstr("want UTF-8")));
  }
}

// Returns terms a, b and #_a_ in two dimensions.
TextEncoderParts Parts() {
  return {.terms = {"a", "b", "#_a_"},
          .idf = {2, 1, .5f},
          .dim = 2,
          .projection = {1, 0, 0, 1, 1, 1}};
}

TEST(TextEncoderTest, WeighsKnownTermsByTfIdf) {
  ASSERT_OK_AND_ASSIGN(const TextEncoder encoder, TextEncoder::Create(Parts()));
  ASSERT_OK_AND_ASSIGN(const auto weights, encoder.Weigh("b A unknown a"));
  const double log_two = 1 + std::log(2);
  const double norm =
      std::sqrt(4 * log_two * log_two + 1 + .25 * log_two * log_two);
  ASSERT_THAT(weights,
              ElementsAre(Pair(0, 2 * log_two / norm), Pair(1, 1 / norm),
                          Pair(2, .5 * log_two / norm)));
  ASSERT_OK_AND_ASSIGN(const auto query, encoder.Encode("b A unknown a"));
  EXPECT_THAT(query,
              ElementsAre(static_cast<float>(2.5 * log_two / norm),
                          static_cast<float>((1 + .5 * log_two) / norm)));
}

TEST(TextEncoderTest, NoKnownTermIsAnErrorThatSaysSo) {
  ASSERT_OK_AND_ASSIGN(const TextEncoder encoder, TextEncoder::Create(Parts()));
  for (const absl::string_view text : {"zebra", "?!"}) {
    const auto query = encoder.Encode(text);
    EXPECT_THAT(query, StatusIs(kInvalid, HasSubstr("no known term")));
    EXPECT_EQ(FieldOf(query.status()), "text");
    ASSERT_OK_AND_ASSIGN(const auto weights, encoder.Weigh(text));
    EXPECT_THAT(weights, IsEmpty());
  }
}

TEST(TextEncoderTest, InfiniteQueriesAreErrors) {
  TextEncoderParts parts = Parts();
  parts.projection.assign(6, std::numeric_limits<float>::max());
  ASSERT_OK_AND_ASSIGN(const TextEncoder encoder,
                       TextEncoder::Create(std::move(parts)));
  EXPECT_OK(encoder.Encode("b"));
  const auto query = encoder.Encode("a b");
  EXPECT_THAT(query, StatusIs(kInvalid, HasSubstr("infinite")));
  EXPECT_EQ(FieldOf(query.status()), "text");
}

TEST(TextEncoderTest, TextsOfOtherLengthsOrBytesAreErrors) {
  ASSERT_OK_AND_ASSIGN(const TextEncoder encoder, TextEncoder::Create(Parts()));
  std::string longest = "a";
  longest.resize(16384, ' ');
  EXPECT_OK(encoder.Encode(longest));
  const std::string longer = longest + " ";
  for (const auto& [text, code] :
       {std::pair(std::string(), kInvalid),
        {std::string("a \xff"), kInvalid},
        {longer, absl::StatusCode::kResourceExhausted}}) {
    const auto query = encoder.Encode(text);
    EXPECT_THAT(query, StatusIs(code, HasSubstr("text: got")));
    EXPECT_EQ(FieldOf(query.status()), "text");
  }
}

TEST(TextEncoderTest, CreateRefusesPartsThatDoNotFit) {
  const auto expect_field = [](const TextEncoderParts& parts,
                               absl::string_view field) {
    const auto encoder = TextEncoder::Create(parts);
    EXPECT_THAT(encoder, StatusIs(kInvalid, HasSubstr("want")));
    EXPECT_EQ(FieldOf(encoder.status()), std::string(field));
  };
  TextEncoderParts parts = Parts();
  parts.terms[2] = "a";
  expect_field(parts, "terms[2]");
  parts.terms[2] = "";
  expect_field(parts, "terms[2]");
  parts.terms.pop_back();
  expect_field(parts, "idf");
  expect_field({}, "terms");
  parts = Parts();
  parts.idf[1] = -1;
  expect_field(parts, "idf[1]");
  parts.idf[1] = std::numeric_limits<float>::infinity();
  expect_field(parts, "idf[1]");
  parts = Parts();
  parts.dim = 0;
  expect_field(parts, "projection_float32_le");
  parts.dim = 3;
  expect_field(parts, "projection_float32_le");
  parts = Parts();
  parts.projection[5] = std::nanf("");
  EXPECT_THAT(TextEncoder::Create(parts),
              StatusIs(kInvalid, HasSubstr("projection_float32_le[5]")));
}

TEST(TextEncoderTest, BytesGiveTheSameEncoderBack) {
  ASSERT_OK_AND_ASSIGN(const TextEncoder encoder, TextEncoder::Create(Parts()));
  ASSERT_OK_AND_ASSIGN(const TextEncoder back,
                       TextEncoder::Deserialize(encoder.Serialize()));
  EXPECT_EQ(back.parts(), encoder.parts());
  EXPECT_EQ(back.Encode("a b").value(), encoder.Encode("a b").value());
}

TEST(TextEncoderTest, DamagedBytesAreDataLoss) {
  ASSERT_OK_AND_ASSIGN(const TextEncoder encoder, TextEncoder::Create(Parts()));
  const std::string bytes = encoder.Serialize();
  const auto damaged = StatusIs(absl::StatusCode::kDataLoss,
                                HasSubstr("text encoder is damaged"));
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_THAT(TextEncoder::Deserialize(bytes.substr(0, size)), damaged);
  }
  EXPECT_THAT(TextEncoder::Deserialize(bytes + '\0'), damaged);
  for (std::size_t at = 0; at < bytes.size(); ++at) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string flipped = bytes;
      flipped[at] = static_cast<char>(flipped[at] ^ (1 << bit));
      EXPECT_THAT(TextEncoder::Deserialize(flipped), damaged) << at;
    }
  }
}

// Appends a checksum as text_encoder_codec.cc documents it.
std::string WithChecksum(std::string body) {
  const std::uint64_t hash = XXH3_64bits(body.data(), body.size());
  for (int i = 0; i < 8; ++i) body.push_back(static_cast<char>(hash >> 8 * i));
  return body;
}

TEST(TextEncoderTest, SizesThatLieAreDataLossNotAllocations) {
  ASSERT_OK_AND_ASSIGN(const TextEncoder encoder, TextEncoder::Create(Parts()));
  std::string body = encoder.Serialize();
  body.resize(body.size() - 8);
  ASSERT_OK(TextEncoder::Deserialize(WithChecksum(body)));
  // Changes every byte of version, dim, term count and the first term's size,
  // and tries every length, with a valid checksum.
  for (std::size_t at = 4; at < 28; ++at) {
    for (const char byte : {'\x01', '\x7f', '\xff'}) {
      if (body[at] == byte) continue;
      std::string lie = body;
      lie[at] = byte;
      EXPECT_THAT(TextEncoder::Deserialize(WithChecksum(lie)),
                  StatusIs(absl::StatusCode::kDataLoss, HasSubstr("damaged")))
          << at;
    }
  }
  for (std::size_t size = 0; size < body.size(); ++size) {
    EXPECT_THAT(TextEncoder::Deserialize(WithChecksum(body.substr(0, size))),
                StatusIs(absl::StatusCode::kDataLoss, HasSubstr("damaged")));
  }
}

}  // namespace
}  // namespace attendant
