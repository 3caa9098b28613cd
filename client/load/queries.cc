#include "client/load/queries.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <random>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/files/input.h"
#include "client/files/vector_file.h"
#include "client/wire_vector.h"
#include "core/base/status.h"

namespace attendant {
namespace {

constexpr std::int64_t kListPageSize = 1000;
constexpr std::int64_t kGetBatchSize = 256;

}  // namespace

void AddNoise(double noise, std::mt19937_64& random, std::vector<float>& key) {
  double squared_norm = 0;
  for (const float component : key) squared_norm += component * component;
  std::normal_distribution<double> normal;
  const double deviation =
      noise * std::sqrt(squared_norm / static_cast<double>(key.size()));
  for (float& component : key) {
    component += static_cast<float>(deviation * normal(random));
  }
}

absl::StatusOr<std::vector<std::string>> ListIds(Client& client,
                                                 const std::string& catalog) {
  v1::ListItemsRequest request;
  request.set_catalog(catalog);
  request.set_page_size(kListPageSize);
  request.mutable_read_mask()->add_paths("attributes");
  std::vector<std::string> ids;
  do {
    ATTENDANT_ASSIGN_OR_RETURN(const v1::ListItemsResponse page,
                               client.ListItems(request));
    for (const v1::Item& item : page.items()) ids.push_back(item.id());
    request.set_page_token(page.next_page_token());
  } while (!request.page_token().empty());
  return ids;
}

absl::StatusOr<std::vector<std::vector<float>>> ReadQueries(
    const std::string& path) {
  ATTENDANT_ASSIGN_OR_RETURN(const std::unique_ptr<VectorFile> file,
                             OpenVectorFile(path));
  if (file->row_count() == 0) return FileError(path, "holds no row");
  std::vector<std::vector<float>> queries(file->row_count(),
                                          std::vector<float>(file->dim()));
  for (std::int64_t row = 0; row < file->row_count(); ++row) {
    ATTENDANT_RETURN_IF_ERROR(file->ReadRow(row, queries[row]));
  }
  return queries;
}

absl::StatusOr<std::vector<std::vector<float>>> SampleQueries(
    Client& client, const SampledQueryOptions& options) {
  ATTENDANT_ASSIGN_OR_RETURN(std::vector<std::string> ids,
                             ListIds(client, options.catalog));
  std::mt19937_64 random(options.seed);
  std::shuffle(ids.begin(), ids.end(), random);
  if (static_cast<std::int64_t>(ids.size()) > options.max_count) {
    ids.resize(options.max_count);
  }

  std::vector<std::vector<float>> queries;
  for (std::size_t begin = 0; begin < ids.size(); begin += kGetBatchSize) {
    v1::BatchGetItemsRequest request;
    request.set_catalog(options.catalog);
    request.mutable_read_mask()->add_paths("keys");
    const std::size_t end =
        std::min<std::size_t>(ids.size(), begin + kGetBatchSize);
    for (std::size_t i = begin; i < end; ++i) request.add_ids(ids[i]);
    ATTENDANT_ASSIGN_OR_RETURN(const v1::BatchGetItemsResponse items,
                               client.BatchGetItems(request));
    for (const v1::Item& item : items.items()) {
      const auto key = item.keys().find(options.key_field);
      if (key == item.keys().end()) continue;
      ATTENDANT_ASSIGN_OR_RETURN(std::vector<float> query,
                                 FromVector(key->second));
      queries.push_back(std::move(query));
      AddNoise(options.noise, random, queries.back());
    }
  }
  if (queries.empty()) {
    return absl::FailedPreconditionError(
        absl::StrCat("catalog ", options.catalog, " has no item with a key ",
                     "in field ", options.key_field, " to make queries of"));
  }
  return queries;
}

}  // namespace attendant
