#include "core/catalog/filter/evaluate_filter.h"

#include <gmock/gmock.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "core/catalog/filter/number_range.h"
#include "tests/core/catalog/random_filter.h"
#include "tests/support/look_counter.h"
#include "tests/support/status_matchers.h"

namespace attendant {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using enum ComparisonKind;

constexpr std::uint64_t kSeed = 20240607;

class EvaluateFilterTest : public ::testing::Test {
 protected:
  void Append(const Attributes& attributes) {
    attributes_.push_back(attributes);
    rows_.Append(absl::StrCat("item", attributes_.size()), {}, attributes);
  }

  // Rows that pass, below row_end.
  std::vector<RowIndex> Passing(const Filter& filter, const FilterScope& scope,
                                RowIndex row_end) {
    const auto bitmap =
        EvaluateFilter(filter, schema_, rows_, row_end, scope, Interrupt());
    EXPECT_OK(bitmap);
    std::vector<RowIndex> passing;
    for (RowIndex row = 0; row < bitmap->size(); ++row) {
      if (bitmap->Test(row)) passing.push_back(row);
    }
    return passing;
  }
  std::vector<RowIndex> Passing(const Filter& filter) {
    return Passing(filter, {}, static_cast<RowIndex>(attributes_.size()));
  }

  const CatalogSchema schema_ = FilterSchema();
  RowTable rows_{0, 10000};
  std::vector<Attributes> attributes_;
};

TEST_F(EvaluateFilterTest, AgreesWithTheSlowTwinAndTheScope) {
  RandomFilters random(kSeed);
  // Several blocks, ending within a word.
  constexpr RowIndex kRows = 5003;
  for (RowIndex row = 0; row < kRows; ++row) {
    Attributes attributes;
    for (int a = 0; a < 6; ++a) {
      // Lists appear late, so that the first block has none.
      if (random.Below(4) == 0 || (a == 4 && row < 2500)) continue;
      attributes.emplace_back(a, random.Value(schema_.attributes[a].type));
    }
    Append(attributes);
  }
  Bitmap only(rows_.capacity());
  Bitmap excluded(rows_.capacity());
  for (RowIndex row = 0; row < kRows; ++row) {
    // No row of the second block remains.
    if (row / 2048 != 1 && random.Below(2) == 0) only.Set(row);
    if (random.Below(3) == 0) excluded.Set(row);
  }
  for (int i = 0; i < 300; ++i) {
    const Filter filter =
        random.Tree(schema_, i < 100 ? 0 : 3, /*with_lists=*/true);
    const auto row_end = static_cast<RowIndex>(kRows - random.Below(200));
    FilterScope scope;
    if (random.Below(2) == 0) scope.only = &only;
    if (random.Below(2) == 0) scope.excluded = &excluded;
    std::vector<RowIndex> expected;
    for (RowIndex row = 0; row < row_end; ++row) {
      if (scope.only != nullptr && !only.Test(row)) continue;
      if (scope.excluded != nullptr && excluded.Test(row)) continue;
      if (IsTrueOf(filter, schema_, attributes_[row])) expected.push_back(row);
    }
    ASSERT_EQ(Passing(filter, scope, row_end), expected)
        << "seed " << kSeed << ", filter " << i;
  }
}

TEST_F(EvaluateFilterTest, AMissingAttributeFailsComparisonsAndPassesNot) {
  Append({});
  Append({{1, std::int64_t{5}}});
  Append({{1, std::int64_t{6}}});
  const auto stock = [](ComparisonKind kind) {
    return Filter::Compare("stock", kind, std::int64_t{5});
  };
  EXPECT_THAT(Passing(stock(kEqual)), ElementsAre(1));
  EXPECT_THAT(Passing(stock(kNotEqual)), ElementsAre(2));
  EXPECT_THAT(Passing(Filter::Not(stock(kEqual))), ElementsAre(0, 2));
  EXPECT_THAT(Passing(Filter::Not(Filter::Not(stock(kEqual)))), ElementsAre(1));
  EXPECT_THAT(Passing(Filter::Exists("stock")), ElementsAre(1, 2));
  EXPECT_THAT(Passing(Filter::Not(Filter::Exists("stock"))), ElementsAre(0));
  // An attribute that no row has.
  EXPECT_THAT(Passing(Filter::Exists("unused")), IsEmpty());
  EXPECT_THAT(Passing(Filter::Compare("unused", kNotEqual, std::int64_t{0})),
              IsEmpty());
  EXPECT_THAT(Passing(Filter::Not(Filter::Exists("unused"))),
              ElementsAre(0, 1, 2));
}

TEST_F(EvaluateFilterTest, IntegersAndDoublesCompareExactly) {
  constexpr std::int64_t kPower = std::int64_t{1} << 53;
  Append({{1, kPower}, {2, 0x1p53}});
  Append({{1, kPower + 1}, {2, 0x1p53 + 2}});
  const auto doubles_than = [](ComparisonKind kind, std::int64_t number) {
    return Filter::Compare("price", kind, number);
  };
  const auto integers_than = [](ComparisonKind kind, double number) {
    return Filter::Compare("stock", kind, number);
  };
  EXPECT_THAT(Passing(doubles_than(kEqual, kPower + 1)), IsEmpty());
  EXPECT_THAT(Passing(doubles_than(kNotEqual, kPower + 1)), ElementsAre(0, 1));
  EXPECT_THAT(Passing(doubles_than(kLess, kPower + 1)), ElementsAre(0));
  EXPECT_THAT(Passing(doubles_than(kGreaterOrEqual, kPower + 1)),
              ElementsAre(1));
  EXPECT_THAT(Passing(integers_than(kEqual, 0x1p53)), ElementsAre(0));
  EXPECT_THAT(Passing(integers_than(kGreater, 0x1p53)), ElementsAre(1));
  EXPECT_THAT(Passing(integers_than(kLess, 0x1p63)), ElementsAre(0, 1));
  EXPECT_THAT(Passing(integers_than(kGreater, 0x1p63)), IsEmpty());
}

TEST_F(EvaluateFilterTest, ItemsMomentsCompareByTheMicrosecond) {
  Append({{5, absl::FromUnixMicros(-1) + absl::Nanoseconds(999)}});
  Append({{5, absl::UnixEpoch()}});
  const auto listed = [](ComparisonKind kind, absl::Time time) {
    return Filter::Compare("listed", kind, time);
  };
  EXPECT_THAT(Passing(listed(kLess, absl::UnixEpoch())), ElementsAre(0));
  EXPECT_THAT(Passing(listed(kEqual, absl::FromUnixMicros(-1))),
              ElementsAre(0));
}

TEST_F(EvaluateFilterTest, AFiltersMomentMayLieBetweenTwoMicroseconds) {
  Append({{5, absl::FromUnixMicros(-1)}});
  Append({{5, absl::UnixEpoch()}});
  Append({{5, absl::FromUnixMicros(1)}});
  const absl::Time between = absl::UnixEpoch() + absl::Nanoseconds(1);
  const auto listed = [&](ComparisonKind kind) {
    return Passing(Filter::Compare("listed", kind, between));
  };
  EXPECT_THAT(listed(kEqual), IsEmpty());
  EXPECT_THAT(listed(kNotEqual), ElementsAre(0, 1, 2));
  EXPECT_THAT(listed(kLess), ElementsAre(0, 1));
  EXPECT_THAT(listed(kLessOrEqual), ElementsAre(0, 1));
  EXPECT_THAT(listed(kGreater), ElementsAre(2));
  EXPECT_THAT(listed(kGreaterOrEqual), ElementsAre(2));
  // Enough values that they are looked up in a set.
  std::vector<AttributeValue> many(100, between);
  EXPECT_THAT(Passing(Filter::In("listed", many)), IsEmpty());
  many.emplace_back(absl::UnixEpoch());
  EXPECT_THAT(Passing(Filter::In("listed", many)), ElementsAre(1));
  // The earliest and latest times have no neighbour beyond them.
  const auto before = [&](absl::Time time) {
    return Passing(Filter::Compare("listed", kLess, time));
  };
  EXPECT_THAT(before(absl::InfiniteFuture()), ElementsAre(0, 1, 2));
  EXPECT_THAT(before(absl::InfinitePast()), IsEmpty());
}

TEST_F(EvaluateFilterTest, AnExpiredDeadlineStopsIt) {
  Append({{1, std::int64_t{5}}});
  const std::atomic<bool> cancelled = true;
  Interrupt interrupt;
  interrupt.cancelled = &cancelled;
  EXPECT_THAT(
      EvaluateFilter(Filter::Exists("stock"), schema_, rows_, 1, {}, interrupt),
      StatusIs(absl::StatusCode::kCancelled, testing::_));
}

// No row is looked at. The time goes into one pass over the distinct texts,
// which makes at least 10^7 comparisons of characters.
TEST_F(EvaluateFilterTest, TheDeadlineStopsAPassOverTheTexts) {
  RowTable rows(0, 20000);
  for (RowIndex row = 0; row < 20000; ++row) {
    const std::string name = std::to_string(row);
    rows.Append(name, {}, {{3, std::string(500, 'a') + name}});
  }
  for (const Filter& filter :
       {Filter::Contains("color", "ab"),
        Filter::Not(Filter::AnyOf({Filter::Contains("color", "ab")}))}) {
    Interrupt interrupt;
    interrupt.deadline = SteadyAfter(absl::Milliseconds(1));
    EXPECT_THAT(EvaluateFilter(filter, schema_, rows, 0, {}, interrupt),
                StatusIs(absl::StatusCode::kDeadlineExceeded, testing::_));
  }
}

// The text matches the pattern everywhere except at its end.
TEST_F(EvaluateFilterTest, LongTextsTakeNoLongerThanTheyAreLong) {
  constexpr RowIndex kRows = 64;
  RowTable rows(0, kRows);
  for (RowIndex row = 0; row < kRows; ++row) {
    rows.Append(std::to_string(row), {},
                {{3, std::string((1 << 20) - row, 'a')}});
  }
  const Filter filter =
      Filter::Contains("color", std::string(16000, 'a') + "b");
  LookCounter looks;
  Interrupt interrupt;
  interrupt.yielder = &looks;
  // Comparing from every byte would take 10^12 byte comparisons.
  interrupt.deadline = SteadyAfter(absl::Seconds(5));
  ASSERT_OK_AND_ASSIGN(
      const Bitmap passing,
      EvaluateFilter(filter, schema_, rows, kRows, {}, interrupt));
  for (RowIndex row = 0; row < kRows; ++row) EXPECT_FALSE(passing.Test(row));
  // One look at each element, however few there are.
  EXPECT_GE(looks.count, kRows);
}

TEST_F(EvaluateFilterTest, ManyTermsAreLookedAtMoreOften) {
  constexpr RowIndex kRows = 32768;
  RowTable rows(0, kRows);
  for (RowIndex row = 0; row < kRows; ++row) {
    rows.Append(std::to_string(row), {}, {});
  }
  const auto count_looks = [&](std::size_t term_count) {
    LookCounter looks;
    Interrupt interrupt;
    interrupt.yielder = &looks;
    EXPECT_OK(EvaluateFilter(
        Filter::AnyOf(std::vector<Filter>(term_count, Filter::Exists("color"))),
        schema_, rows, kRows, {}, interrupt));
    return looks.count;
  };
  // Plus a look at each term.
  EXPECT_GE(count_looks(100) - 100, 8 * (count_looks(1) - 1));
}

TEST_F(EvaluateFilterTest, SetsOfTextsAreBounded) {
  constexpr RowIndex kRows = 400000;
  RowTable rows(0, kRows);
  for (RowIndex row = 0; row < kRows; ++row) {
    const std::string name = std::to_string(row);
    rows.Append(name, {}, {{3, name}});
  }
  const auto evaluate = [&](const Filter& part) {
    std::vector<Filter> parts(8000, part);
    return EvaluateFilter(Filter::AnyOf(std::move(parts)), schema_, rows, 64,
                          {}, Interrupt());
  };
  // No set is built for a single text.
  ASSERT_OK_AND_ASSIGN(const Bitmap passing,
                       evaluate(Filter::Compare("color", ComparisonKind::kEqual,
                                                std::string("7"))));
  EXPECT_TRUE(passing.Test(7));
  EXPECT_FALSE(passing.Test(8));
  EXPECT_THAT(
      evaluate(Filter::In("color", {std::string("7"), std::string("8")})),
      StatusIs(absl::StatusCode::kResourceExhausted,
               testing::HasSubstr("more than 256 MiB")));
}

TEST(NumberRangeTest, AgreesWithExactComparison) {
  // Numbers near which one type has values that the other lacks.
  std::vector<std::int64_t> integers = {
      0, 1, -1, INT64_MIN, INT64_MIN + 1, INT64_MAX, INT64_MAX - 1};
  std::vector<double> doubles = {0.0,  -0.0,  0.5,   -0.5,   1,
                                 1e19, 1e300, -1e19, -1e300, 5e-324};
  for (const int bits : {52, 53, 54, 62}) {
    for (std::int64_t near = -3; near <= 3; ++near) {
      integers.push_back((std::int64_t{1} << bits) + near);
      integers.push_back(-(std::int64_t{1} << bits) + near);
    }
  }
  for (const int bits : {52, 53, 54, 62, 63}) {
    for (const double sign : {1, -1}) {
      const double power = sign * std::ldexp(1, bits);
      for (const double to : {-HUGE_VAL, HUGE_VAL}) {
        doubles.push_back(power);
        doubles.push_back(std::nextafter(power, to));
        doubles.push_back(std::nextafter(std::nextafter(power, to), to));
      }
    }
  }
  std::vector<AttributeValue> values(integers.begin(), integers.end());
  values.insert(values.end(), doubles.begin(), doubles.end());
  for (const AttributeValue& value : values) {
    for (const ComparisonKind kind :
         {kEqual, kLess, kLessOrEqual, kGreater, kGreaterOrEqual}) {
      const auto expected = [&, kind](const AttributeValue& x) {
        return IsTrueOf(Filter::Compare("stock", kind, value), FilterSchema(),
                        {{1, x}});
      };
      const auto integer_range = IntegersThat(kind, value);
      for (const std::int64_t x : integers) {
        EXPECT_EQ(integer_range && integer_range->low <= x &&
                      x <= integer_range->high,
                  expected(x));
      }
      const auto double_range = DoublesThat(kind, value);
      for (const double x : doubles) {
        EXPECT_EQ(
            double_range && double_range->low <= x && x <= double_range->high,
            expected(x));
      }
    }
  }
}

// One writer appends while a filter is evaluated over published rows.
TEST(EvaluateFilterThreadsTest, SeesPublishedRowsWhileTheWriterAppends) {
  constexpr RowIndex kRows = 3000;
  const CatalogSchema schema = FilterSchema();
  RowTable rows(0, kRows);
  std::atomic<RowIndex> published = 0;
  const auto attributes_of = [](RowIndex row) {
    return Attributes{
        {1, std::int64_t{row}},
        {2, row / 2.0},
        {3, absl::StrCat("text", row)},
        {4, std::vector<std::string>{"all", absl::StrCat(row % 3)}}};
  };
  const Filter filter = Filter::AllOf(
      {Filter::Compare("stock", kGreaterOrEqual, std::int64_t{10}),
       Filter::Compare("price", kGreaterOrEqual, 5.0),
       Filter::Contains("color", "text"), Filter::Contains("tags", "1"),
       Filter::Compare("color", kNotEqual, std::string("text13"))});
  std::thread reader([&] {
    RowIndex end = 0;
    while (end < kRows) {
      end = published.load(std::memory_order_acquire);
      ASSERT_OK_AND_ASSIGN(
          const Bitmap passing,
          EvaluateFilter(filter, schema, rows, end, {}, Interrupt()));
      for (RowIndex row = std::max(0, end - 100); row < kRows; ++row) {
        ASSERT_EQ(passing.Test(row),
                  row < end && row >= 10 && row % 3 == 1 && row != 13)
            << row << " of " << end;
      }
    }
  });
  for (RowIndex row = 0; row < kRows; ++row) {
    rows.Append(std::to_string(row), {}, attributes_of(row));
    published.store(row + 1, std::memory_order_release);
  }
  reader.join();
}

}  // namespace
}  // namespace attendant
