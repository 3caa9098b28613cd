#include <algorithm>
#include <fstream>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "bench/data/source.h"
#include "core/base/status.h"
#include "core/encode/text_lsi.h"

namespace attendant {
namespace {

constexpr std::int64_t kDim = 128;

// Returns one gloss per synset: the text after the bar in the files data.*.
absl::StatusOr<std::vector<std::string>> ReadGlosses() {
  std::vector<std::string> glosses;
  for (const char* part : {"noun", "verb", "adj", "adv"}) {
    const std::string path = absl::StrCat("/usr/share/wordnet/data.", part);
    std::ifstream file(path);
    if (!file) return absl::NotFoundError(path);
    for (std::string line; std::getline(file, line);) {
      const std::size_t bar = line.find(" | ");
      // Lines of the licence at the top are indented.
      if (line.starts_with(' ') || bar == std::string::npos) continue;
      glosses.push_back(line.substr(bar + 3));
    }
  }
  return glosses;
}

std::string EverySecondWord(const std::string& text) {
  const std::vector<std::string> words =
      absl::StrSplit(text, ' ', absl::SkipWhitespace());
  std::vector<std::string> kept;
  for (std::size_t w = 0; w < words.size(); w += 2) kept.push_back(words[w]);
  return absl::StrJoin(kept, " ");
}

}  // namespace

absl::StatusOr<Vectors> ReadWordNet() {
  ATTENDANT_ASSIGN_OR_RETURN(std::vector<std::string> glosses, ReadGlosses());
  ATTENDANT_ASSIGN_OR_RETURN(
      const TextLsiModel model,
      FitTextLsi({{.name = "gloss", .weight = 1, .texts = glosses}},
                 {.dim = kDim, .progress = nullptr}));
  Vectors vectors;
  vectors.dim = kDim;
  vectors.keys = model.keys;
  // Spreads queries over all glosses; skips glosses without a known word.
  for (std::int64_t q = 0; q < kDataQueryCount; ++q) {
    const auto gloss = static_cast<std::size_t>(
        q * static_cast<std::int64_t>(glosses.size()) / kDataQueryCount);
    for (std::size_t i = gloss; i < glosses.size(); ++i) {
      const absl::StatusOr<std::vector<float>> query =
          model.encoder.Encode(EverySecondWord(glosses[i]));
      if (!query.ok()) continue;
      vectors.queries.insert(vectors.queries.end(), query->begin(),
                             query->end());
      break;
    }
  }
  NormaliseRows(kDim, vectors.keys);
  NormaliseRows(kDim, vectors.queries);
  return vectors;
}

}  // namespace attendant
