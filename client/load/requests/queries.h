// Makes queries from the items of a catalog.
#ifndef ATTENDANT_CLIENT_LOAD_REQUESTS_QUERIES_H_
#define ATTENDANT_CLIENT_LOAD_REQUESTS_QUERIES_H_

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "client/api/client.h"

namespace attendant {

struct SampledQueryOptions {
  std::string catalog;
  std::string key_field;
  std::int64_t max_count = 4096;
  // Norm of the Gaussian noise added to a key, as a share of the key's norm.
  double noise = 0.1;
  std::uint64_t seed = 1;
};

// Adds a Gaussian vector whose expected squared norm is (noise |key|)^2.
void AddNoise(double noise, std::mt19937_64& random, std::vector<float>& key);

// Returns the ids of all items, or the server's errors.
absl::StatusOr<std::vector<std::string>> ListIds(Client& client,
                                                 const std::string& catalog);

// Returns up to max_count stored items, drawn without replacement, with their
// keys and attributes, or the server's errors.
absl::StatusOr<std::vector<v1::Item>> SampleItems(Client& client,
                                                  const std::string& catalog,
                                                  std::int64_t max_count,
                                                  std::uint64_t seed);

// Returns the keys of stored items, drawn without replacement, with noise
// added: queries of a model that knows the items, but not exactly. Returns the
// server's errors, and FailedPrecondition if no item drawn has a key in the
// field.
absl::StatusOr<std::vector<std::vector<float>>> SampleQueries(
    Client& client, const SampledQueryOptions& options);

}  // namespace attendant

#endif  // ATTENDANT_CLIENT_LOAD_REQUESTS_QUERIES_H_
