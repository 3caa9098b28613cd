// Small mutations of bytes that parsers must survive.
#ifndef ATTENDANT_TESTS_FUZZ_MUTATE_H_
#define ATTENDANT_TESTS_FUZZ_MUTATE_H_

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <vector>

namespace attendant {

// Returns one of the seeds with one to four mutations: flips bits, changes
// bytes, sets 4- or 8-byte numbers to extreme values, and removes, repeats or
// imports parts from another seed. The same `random` gives the same sequence in
// every process.
inline std::string Mutate(const std::vector<std::string>& seeds,
                          std::mt19937_64& random) {
  const auto below = [&](std::size_t count) {
    return count == 0 ? 0 : static_cast<std::size_t>(random() % count);
  };
  const auto any_seed = [&]() -> const std::string& {
    return seeds[below(seeds.size())];
  };
  std::string bytes = any_seed();
  for (std::size_t change = 1 + below(4); change > 0; --change) {
    const std::size_t at = below(bytes.size());
    const std::size_t size =
        below(std::min<std::size_t>(bytes.size() - at, 32));
    switch (below(7)) {
      case 0:
        if (!bytes.empty()) bytes[at] ^= static_cast<char>(1 << below(8));
        break;
      case 1:
        if (!bytes.empty()) bytes[at] = static_cast<char>(random());
        break;
      case 2: {
        constexpr std::uint64_t kNumbers[] = {
            0,          1,          0x7f,       0x80,
            0xffff,     0x7fffffff, 0x80000000, 0xffffffff,
            1ULL << 62, ~0ULL >> 1, 1ULL << 63, ~0ULL};
        const std::uint64_t number = kNumbers[below(std::size(kNumbers))];
        const std::size_t width = below(2) == 0 ? 4 : 8;
        if (bytes.size() - at >= width) std::memcpy(&bytes[at], &number, width);
        break;
      }
      case 3:
        bytes.erase(at, size);
        break;
      case 4:
        bytes.insert(at, bytes.substr(at, size));
        break;
      case 5: {
        const std::string& other = any_seed();
        const std::size_t from = below(other.size());
        bytes.insert(at, other.substr(from, 1 + below(64)));
        break;
      }
      default:
        bytes.resize(at);
    }
  }
  return bytes;
}

}  // namespace attendant

#endif  // ATTENDANT_TESTS_FUZZ_MUTATE_H_
