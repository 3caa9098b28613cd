#include "bench/data/data_set.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <filesystem>
#include <optional>
#include <random>
#include <system_error>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "bench/data/source.h"
#include "core/base/status.h"

namespace attendant {
namespace {

// Returns 200000 for "200k", 1000000 for "1m".
std::optional<std::int64_t> ParseCount(absl::string_view text) {
  std::int64_t unit = 1;
  if (absl::ConsumeSuffix(&text, "k")) unit = 1000;
  if (absl::ConsumeSuffix(&text, "m")) unit = 1000000;
  std::int64_t count = 0;
  if (!absl::SimpleAtoi(text, &count) || count < 1 || count > 100000) {
    return std::nullopt;
  }
  return count * unit;
}

// Each query lies at a random place between an image and a random direction.
absl::StatusOr<Vectors> MakeForeignWordNet() {
  ATTENDANT_ASSIGN_OR_RETURN(Vectors vectors, ReadWordNet());
  ATTENDANT_ASSIGN_OR_RETURN(const Vectors images, ReadFashionMnist());
  if (images.dim != vectors.dim) {
    return absl::InternalError("images and glosses of different dimensions");
  }
  vectors.queries = images.queries;
  std::mt19937_64 random(kDataSeed + 3);
  std::normal_distribution<double> normal;
  std::uniform_real_distribution<double> uniform;
  const double unit = 1 / std::sqrt(static_cast<double>(vectors.dim));
  const auto dim = static_cast<std::size_t>(vectors.dim);
  for (std::size_t begin = 0; begin < vectors.queries.size(); begin += dim) {
    const double share = uniform(random);
    for (std::size_t d = begin; d < begin + dim; ++d) {
      vectors.queries[d] = static_cast<float>((1 - share) * vectors.queries[d] +
                                              share * unit * normal(random));
    }
  }
  NormaliseRows(vectors.dim, vectors.queries);
  return vectors;
}

absl::StatusOr<Vectors> Make(absl::string_view name) {
  constexpr std::int64_t kFormCount = 100000;  // keys of "norms" and "foreign"
  constexpr std::int64_t kGrownKeys = 500;     // a cluster
  if (name == "fashion") return ReadFashionMnist();
  if (name == "wordnet") return ReadWordNet();
  if (name == "wordnet-foreign") return MakeForeignWordNet();
  if (name == "retail") return ReadOnlineRetail();
  if (name == "norms") {
    return MakeMixture({.key_count = kFormCount, .least_norm = 0.1});
  }
  if (name == "foreign") {
    return MakeMixture({.key_count = kFormCount, .foreign_queries = true});
  }
  absl::string_view count_text = name;
  if (absl::ConsumePrefix(&count_text, "mixture-")) {
    const std::optional<std::int64_t> count = ParseCount(count_text);
    if (count.has_value()) return MakeMixture({.key_count = *count});
  }
  if (absl::ConsumePrefix(&count_text, "grown-")) {
    const std::optional<std::int64_t> count = ParseCount(count_text);
    if (count.has_value()) {
      return MakeMixture(
          {.key_count = *count,
           .cluster_count = std::max<std::int64_t>(1, *count / kGrownKeys)});
    }
  }
  return absl::NotFoundError(absl::StrCat(
      "no data set ", name,
      ": there are mixture-N and grown-N (as in mixture-200k), fashion, "
      "wordnet, wordnet-foreign, retail, norms and foreign"));
}

}  // namespace

absl::StatusOr<DataSet> LoadDataSet(absl::string_view name,
                                    const std::string& directory) {
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  if (error) {
    return absl::InternalError(absl::StrCat(directory, ": ", error.message()));
  }
  const std::string keys_path = absl::StrCat(directory, "/", name, ".keys");
  const std::string queries_path =
      absl::StrCat(directory, "/", name, ".queries");
  if (!std::filesystem::exists(keys_path) ||
      !std::filesystem::exists(queries_path)) {
    ATTENDANT_ASSIGN_OR_RETURN(const Vectors vectors, Make(name));
    ATTENDANT_RETURN_IF_ERROR(
        MatrixFile<float>::Write(queries_path, vectors.dim, vectors.queries));
    ATTENDANT_RETURN_IF_ERROR(
        MatrixFile<float>::Write(keys_path, vectors.dim, vectors.keys));
  }
  DataSet data;
  data.name = std::string(name);
  ATTENDANT_ASSIGN_OR_RETURN(data.keys, MatrixFile<float>::Open(keys_path));
  ATTENDANT_ASSIGN_OR_RETURN(data.queries,
                             MatrixFile<float>::Open(queries_path));
  data.dim = data.keys.column_count();
  return data;
}

}  // namespace attendant
