#include "client/load/requests/queries.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <random>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/api/batches.h"
#include "client/api/pages.h"
#include "client/api/wire_vector.h"
#include "core/base/status.h"

namespace attendant {
namespace {

constexpr std::int64_t kListPageSize = 1000;

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
  ATTENDANT_RETURN_IF_ERROR(
      ForEachPage(client, &Client::ListItems, request,
                  [&ids](const v1::ListItemsResponse& page) {
                    for (const v1::Item& item : page.items()) {
                      ids.push_back(item.id());
                    }
                    return absl::OkStatus();
                  }));
  return ids;
}

absl::StatusOr<std::vector<v1::Item>> SampleItems(Client& client,
                                                  const std::string& catalog,
                                                  std::int64_t max_count,
                                                  std::uint64_t seed) {
  ATTENDANT_ASSIGN_OR_RETURN(std::vector<std::string> ids,
                             ListIds(client, catalog));
  std::mt19937_64 random(seed);
  std::ranges::shuffle(ids, random);
  if (static_cast<std::int64_t>(ids.size()) > max_count) {
    ids.resize(static_cast<std::size_t>(max_count));
  }
  std::vector<v1::Item> sampled;
  v1::BatchGetItemsRequest request;
  request.set_catalog(catalog);
  request.mutable_read_mask()->add_paths("keys");
  request.mutable_read_mask()->add_paths("attributes");
  ATTENDANT_RETURN_IF_ERROR(SendInBatches(
      static_cast<std::int64_t>(ids.size()),
      [&](std::int64_t begin, std::int64_t end) -> absl::Status {
        request.mutable_ids()->Assign(ids.begin() + begin, ids.begin() + end);
        ATTENDANT_ASSIGN_OR_RETURN(v1::BatchGetItemsResponse items,
                                   client.BatchGetItems(request));
        for (v1::Item& item : *items.mutable_items()) {
          sampled.push_back(std::move(item));
        }
        return absl::OkStatus();
      }));
  return sampled;
}

absl::StatusOr<std::vector<std::vector<float>>> SampleQueries(
    Client& client, const SampledQueryOptions& options) {
  ATTENDANT_ASSIGN_OR_RETURN(
      const std::vector<v1::Item> items,
      SampleItems(client, options.catalog, options.max_count, options.seed));
  std::mt19937_64 random(options.seed);
  std::vector<std::vector<float>> queries;
  for (const v1::Item& item : items) {
    const auto key = item.keys().find(options.key_field);
    if (key == item.keys().end()) continue;
    ATTENDANT_ASSIGN_OR_RETURN(std::vector<float> query,
                               FromVector(key->second));
    queries.push_back(std::move(query));
    AddNoise(options.noise, random, queries.back());
  }
  if (queries.empty()) {
    return absl::FailedPreconditionError(
        absl::StrCat("catalog ", options.catalog, " has no item with a key ",
                     "in field ", options.key_field, " to make queries of"));
  }
  return queries;
}

}  // namespace attendant
