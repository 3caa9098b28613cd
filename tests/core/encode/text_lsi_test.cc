#include "core/encode/text_lsi.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "tests/support/reference.h"
#include "tests/support/status_matchers.h"

namespace attendant {
namespace {

using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

const std::vector<std::string>& Names() {
  static const auto& names = *new std::vector<std::string>{
      "ALARM CLOCK BAKELIKE PINK",  "ALARM CLOCK BAKELIKE RED",
      "WHITE TRAVEL ALARM CLOCK",   "RED RETROSPOT UMBRELLA",
      "FOLDING UMBRELLA PINK",      "CHILDRENS UMBRELLA BLUE",
      "GLITTER CHRISTMAS TREE",     "BLACK CHRISTMAS TREE 60CM",
      "TURQUOISE CHRISTMAS TREE",   "REGENCY TEAPOT ROSES",
      "REGENCY TEA STRAINER",       "TEA TIME TEA TOWELS",
      "WHITE HANGING HEART HOLDER", "CREAM HANGING HEART HOLDER",
      "GLASS STAR FROSTED HOLDER",  "KNITTED HOT WATER BOTTLE"};
  return names;
}

TextColumn Column(std::vector<std::string> texts, double weight = 1) {
  return {.name = "name", .weight = weight, .texts = std::move(texts)};
}

TextLsiModel Fit(const std::vector<TextColumn>& columns,
                 std::int64_t dim = 12) {
  TextLsiOptions options;
  options.dim = dim;
  return FitTextLsi(columns, options).value();
}

std::vector<float> Key(const TextLsiModel& model, std::size_t item) {
  const auto dim = static_cast<std::size_t>(model.encoder.parts().dim);
  return {model.keys.begin() + static_cast<std::ptrdiff_t>(item * dim),
          model.keys.begin() + static_cast<std::ptrdiff_t>((item + 1) * dim)};
}

// Returns items by descending weight for a text.
std::vector<std::size_t> Ranking(const TextLsiModel& model,
                                 absl::string_view text) {
  const std::vector<float> query = model.encoder.Encode(text).value();
  const std::int64_t dim = model.encoder.parts().dim;
  const ReferenceMatrix keys{
      .row_count = static_cast<std::int64_t>(model.keys.size()) / dim,
      .dim = dim,
      .data = {model.keys.begin(), model.keys.end()}};
  const std::vector<double> weights =
      AttendReference(std::vector<double>(query.begin(), query.end()), keys,
                      keys, ScoreKind::kCosine, model.defaults.temperature)
          .weights;
  std::vector<std::size_t> order(weights.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::sort(order, [&](std::size_t a, std::size_t b) {
    return weights[a] > weights[b];
  });
  return order;
}

TEST(TextLsiTest, TextOfAnItemEncodesToItsKey) {
  const TextLsiModel model = Fit({Column(Names())});
  ASSERT_EQ(model.keys.size(), Names().size() * 12);
  for (std::size_t item = 0; item < Names().size(); ++item) {
    EXPECT_EQ(model.encoder.Encode(Names()[item]).value(), Key(model, item));
  }
}

TEST(TextLsiTest, AllDimensionsKeepTheTextsCosines) {
  // With every dimension, X V V^T = X: keys have norm 1, and the dot product of
  // two keys is that of their TF-IDF vectors. Floats of norm 1 in 16
  // dimensions.
  const TextLsiModel model = Fit({Column(Names())}, 1000);
  for (std::size_t a = 0; a < Names().size(); ++a) {
    const auto weights = model.encoder.Weigh(Names()[a]).value();
    for (std::size_t b = 0; b < Names().size(); ++b) {
      const auto others = model.encoder.Weigh(Names()[b]).value();
      double want = 0;
      for (const auto& [position, weight] : weights) {
        for (const auto& [other, other_weight] : others) {
          if (position == other) want += weight * other_weight;
        }
      }
      const std::vector<float> left = Key(model, a);
      const std::vector<float> right = Key(model, b);
      EXPECT_NEAR(
          std::inner_product(left.begin(), left.end(), right.begin(), 0.), want,
          1e-5);
    }
  }
}

TEST(TextLsiTest, SearchesFindItemsMisspeltOrNot) {
  const TextLsiModel model = Fit({Column(Names())});
  for (const absl::string_view text :
       {"alarm clock", "Alarm Clock!", "alarm clokc", "alram clock",
        "alarmclock"}) {
    const std::vector<std::size_t> order = Ranking(model, text);
    EXPECT_THAT(std::vector<std::size_t>(order.begin(), order.begin() + 3),
                ::testing::UnorderedElementsAre(0, 1, 2))
        << text;
  }
  EXPECT_EQ(Ranking(model, "red umbrella")[0], 3);
}

TEST(TextLsiTest, WordsOutweighTheirThreeGrams) {
  const TextLsiModel model = Fit({Column(Names())});
  ASSERT_OK_AND_ASSIGN(const auto weights, model.encoder.Weigh("umbrella"));
  const std::vector<std::string>& terms = model.encoder.parts().terms;
  double word = 0;
  double gram = 0;
  for (const auto& [position, weight] : weights) {
    const bool is_word = terms[position] == "umbrella";
    (is_word ? word : gram) = std::max(is_word ? word : gram, weight);
  }
  EXPECT_GT(gram, 0);
  EXPECT_GT(word, gram);
}

TEST(TextLsiTest, RareTermsWeighMore) {
  const TextLsiModel model =
      Fit({Column({"red cup", "red pan", "red lid"})}, 3);
  const TextEncoderParts& parts = model.encoder.parts();
  const auto idf = [&](const char* term) {
    const auto at = std::ranges::find(parts.terms, term);
    return parts.idf[at - parts.terms.begin()];
  };
  EXPECT_FLOAT_EQ(idf("red"), std::log(2.f));      // in all three
  EXPECT_FLOAT_EQ(idf("cup"), std::log(1.f + 3));  // in one of three
}

TEST(TextLsiTest, TermsInMostTextsAreKept) {
  TextLsiOptions options;
  options.max_term_count = 4;
  ASSERT_OK_AND_ASSIGN(
      const TextLsiModel model,
      FitTextLsi({Column({"b a", "b c", "b a", "zz"})}, options));
  // b occurs in three, a in two, c and zz in one: ties are ordered by term, "#"
  // before letters.
  EXPECT_THAT(model.encoder.parts().terms,
              ElementsAre("#_b_", "b", "#_a_", "a"));
  // An item without known terms has a zero key, and no part in choosing the
  // temperature.
  EXPECT_THAT(Key(model, 3), Each(0));
  EXPECT_EQ(model.defaults.choice_count, 3);
}

TEST(TextLsiTest, TermsAreAsManyAsFitARequest) {
  // Distinct one-letter words (of CJK Unified Ideographs) with a 3-gram each:
  // 300 x 25 x 2 terms.
  std::vector<std::string> texts(300);
  int letter = 0x4e00;
  for (std::string& text : texts) {
    for (int word = 0; word < 25; ++word, ++letter) {
      text.push_back(static_cast<char>(0xe0 | letter >> 12));
      text.push_back(static_cast<char>(0x80 | (letter >> 6 & 0x3f)));
      text.push_back(static_cast<char>(0x80 | (letter & 0x3f)));
      text.push_back(' ');
    }
  }
  std::vector<std::string> progress;
  TextLsiOptions options;
  options.dim = 1000;  // more than there are
  options.progress = [&](absl::string_view what) {
    progress.emplace_back(what);
  };
  ASSERT_OK_AND_ASSIGN(const TextLsiModel model,
                       FitTextLsi({Column(texts)}, options));
  EXPECT_EQ(model.encoder.parts().dim, 300);
  // 14 MiB / (300 x 4 bytes).
  EXPECT_EQ(model.encoder.parts().terms.size(), 12233u);
  EXPECT_LT(model.encoder.Serialize().size(), 16u << 20);
  EXPECT_THAT(progress, Contains(HasSubstr("12233 terms of 15000 found")));
}

TEST(TextLsiTest, ColumnWeightsShareOutAnItem) {
  const auto similarity = [](double weight) {
    TextColumn description{.name = "description",
                           .weight = weight,
                           .texts = {"sweet", "sour", "bitter"}};
    const TextLsiModel model =
        Fit({Column({"apple", "lemon", "coffee"}), description});
    const std::vector<float> query = model.encoder.Encode("sour").value();
    const std::vector<float> key = Key(model, 1);
    return std::inner_product(query.begin(), query.end(), key.begin(), 0.);
  };
  // The texts share no term: the cosine is weight / sqrt(1 + weight^2).
  EXPECT_NEAR(similarity(1), std::sqrt(.5), 1e-5);
  EXPECT_NEAR(similarity(3), 3 / std::sqrt(10), 1e-5);
}

TEST(TextLsiTest, TemperatureIsChosenByHalfOfTheWords) {
  const TextLsiModel model = Fit({Column(Names())});
  EXPECT_EQ(model.defaults.score_kind, ScoreKind::kCosine);
  EXPECT_EQ(model.defaults.choice_count, 16);
  // Uniform: log 16. Half of a name leaves at most three names of its kind.
  EXPECT_LT(*model.defaults.negative_log_likelihood, std::log(3));
  // As sharp as such distinct names allow: a cosine of 1 against 0 is certain.
  EXPECT_LT(model.defaults.temperature, .2);
}

TEST(TextLsiTest, SmallerRankGivesSmallerDim) {
  const TextLsiModel model = Fit({Column({"one", "two", "two", "one"})}, 128);
  EXPECT_EQ(model.encoder.parts().dim, 2);
  EXPECT_EQ(model.singular_values.size(), 2);
  EXPECT_EQ(model.keys.size(), 8);
}

TEST(TextLsiTest, RefusesColumnsItCanNotRead) {
  const TextLsiOptions options;
  EXPECT_THAT(FitTextLsi({}, options),
              StatusIs(kInvalid, HasSubstr("columns: got none")));
  EXPECT_THAT(FitTextLsi({Column({"a", "b"}), Column({"a"})}, options),
              StatusIs(kInvalid, HasSubstr("columns[name].texts: got 1")));
  EXPECT_THAT(FitTextLsi({Column({"!", ""})}, options),
              StatusIs(kInvalid, HasSubstr("no term at all")));
  EXPECT_THAT(FitTextLsi({Column({})}, options),
              StatusIs(kInvalid, HasSubstr("no term at all")));
  EXPECT_THAT(FitTextLsi({Column({"a", "\xff"})}, options),
              StatusIs(kInvalid, HasSubstr("columns[name][1].text")));
  for (const double weight : {0., -1., std::nan("")}) {
    EXPECT_THAT(FitTextLsi({Column({"a"}, weight)}, options),
                StatusIs(kInvalid, HasSubstr("columns[name].weight")));
  }
  TextLsiOptions bad;
  bad.dim = 0;
  EXPECT_THAT(FitTextLsi({Column({"a"})}, bad),
              StatusIs(kInvalid, HasSubstr("dim")));
  bad = TextLsiOptions();
  bad.max_term_count = 0;
  EXPECT_THAT(FitTextLsi({Column({"a"})}, bad),
              StatusIs(kInvalid, HasSubstr("max_term_count")));
}

}  // namespace
}  // namespace attendant
