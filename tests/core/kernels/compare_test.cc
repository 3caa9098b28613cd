#include "core/kernels/compare.h"

#include <gmock/gmock.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "tests/core/kernels/kernels_fixture.h"

namespace attendant {
namespace {

constexpr std::int64_t kLeast = std::numeric_limits<std::int64_t>::min();
constexpr std::int64_t kGreatest = std::numeric_limits<std::int64_t>::max();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Zero, one, lengths around the 64-row word and its multiples, and odd lengths.
const std::int64_t kRowCounts[] = {0,   1,   7,   63,  64, 65,
                                   127, 128, 129, 200, 321};

class CompareTest : public LevelTest {
 protected:
  const CompareKernels& kernels() const {
    return CompareKernelsFor(GetParam());
  }

  // Compares the result for each prefix of `rows`, also from an unaligned
  // start, with `passes` of each row.
  template <typename T, typename Run, typename Passes>
  void Check(const std::vector<T>& rows, Run run, Passes passes) {
    for (const std::int64_t offset : {0, 1}) {
      for (const std::int64_t n : kRowCounts) {
        std::vector<std::uint64_t> words(static_cast<std::size_t>(n / 64 + 2),
                                         0x5555);
        run(rows.data() + offset, n, words.data());
        for (std::int64_t i = 0; i < (n + 63) / 64 * 64; ++i) {
          const bool bit = (words[i / 64] >> (i % 64)) & 1;
          const bool expected = i < n && passes(rows[offset + i]);
          ASSERT_EQ(bit, expected) << "row " << i << " of " << n;
        }
        // Nothing is written past the last word.
        ASSERT_EQ(words[(n + 63) / 64], 0x5555U);
      }
    }
  }

  std::mt19937_64 random_{20240607};
};

TEST_P(CompareTest, IntegersPassWithinARange) {
  std::vector<std::int64_t> numbers;
  for (int i = 0; i < 322; ++i) {
    const std::int64_t edges[] = {
        kLeast, kGreatest, 0, -1, 5, static_cast<std::int64_t>(random_() % 11)};
    numbers.push_back(edges[random_() % 6]);
  }
  const std::int64_t bounds[] = {kLeast, kLeast + 1,    -1,       0, 5,
                                 7,      kGreatest - 1, kGreatest};
  for (const std::int64_t low : bounds) {
    for (const std::int64_t high : bounds) {
      Check(
          numbers,
          [&](const std::int64_t* rows, std::int64_t n, std::uint64_t* words) {
            kernels().Integers(rows, n, low, high, words);
          },
          [&](std::int64_t x) { return low <= x && x <= high; });
    }
  }
}

TEST_P(CompareTest, DoublesPassWithinARange) {
  std::vector<double> numbers;
  for (int i = 0; i < 322; ++i) {
    const double edges[] = {
        0.0,        -0.0,  NAN,     kInfinity,
        -kInfinity, 1e308, -5e-324, static_cast<double>(random_() % 7)};
    numbers.push_back(edges[random_() % 8]);
  }
  const double bounds[] = {-kInfinity, -1, -5e-324, -0.0,
                           0.0,        3,  1e308,   kInfinity};
  for (const double low : bounds) {
    for (const double high : bounds) {
      Check(
          numbers,
          [&](const double* rows, std::int64_t n, std::uint64_t* words) {
            kernels().Doubles(rows, n, low, high, words);
          },
          [&](double x) { return low <= x && x <= high; });
    }
  }
}

TEST_P(CompareTest, CodesPassIfChosen) {
  for (const std::int32_t code_count : {1, 31, 32, 33, 100}) {
    std::vector<std::uint32_t> chosen(
        static_cast<std::size_t>((code_count + 31) / 32));
    for (std::uint32_t& word : chosen) {
      word = static_cast<std::uint32_t>(random_());
    }
    std::vector<std::int32_t> codes;
    for (int i = 0; i < 322; ++i) {
      // A row without a value may hold an invalid code.
      codes.push_back(random_() % 8 == 0
                          ? static_cast<std::int32_t>(random_())
                          : static_cast<std::int32_t>(random_() % 110));
    }
    Check(
        codes,
        [&](const std::int32_t* rows, std::int64_t n, std::uint64_t* words) {
          kernels().Codes(rows, n, chosen.data(), code_count, words);
        },
        [&](std::int32_t code) {
          return 0 <= code && code < code_count &&
                 ((chosen[code / 32] >> (code % 32)) & 1) != 0;
        });
    Check(
        codes,
        [&](const std::int32_t* rows, std::int64_t n, std::uint64_t* words) {
          kernels().Code(rows, n, code_count, words);
        },
        [&](std::int32_t code) { return code == code_count; });
  }
}

TEST_P(CompareTest, CountsBitsOfOneAndNotTheOther) {
  std::vector<std::uint64_t> words;
  std::vector<std::uint64_t> but;
  std::int64_t count = 0;
  for (std::int64_t n = 0; n < 20; ++n) {
    EXPECT_EQ(kernels().CountBits(words.data(), but.data(), n), count);
    const std::vector<std::uint64_t> none(words.size());
    EXPECT_EQ(kernels().CountBits(words.data(), nullptr, n),
              kernels().CountBits(words.data(), none.data(), n));
    words.push_back(n == 3 ? ~std::uint64_t{0} : random_());
    but.push_back(n == 3 ? 0 : random_());
    for (int bit = 0; bit < 64; ++bit) {
      count +=
          ((words.back() >> bit) & 1) != 0 && ((but.back() >> bit) & 1) == 0;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Levels, CompareTest, EveryLevel(), NameOf);

}  // namespace
}  // namespace attendant
