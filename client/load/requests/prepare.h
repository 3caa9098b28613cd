// Makes a catalog to run load tests on.
#ifndef ATTENDANT_CLIENT_LOAD_REQUESTS_PREPARE_H_
#define ATTENDANT_CLIENT_LOAD_REQUESTS_PREPARE_H_

#include <cstdint>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/api/client.h"

namespace attendant {

struct PrepareOptions {
  std::string catalog;
  std::int64_t item_count = 100000;
  std::int64_t dim = 128;
  // Centres are drawn from N(0, I), items from N(centre, I).
  std::int64_t cluster_count = 2000;
  std::uint64_t seed = 1;
  // Deletes a catalog of that name first.
  bool replace = false;
};

struct PrepareResult {
  std::int64_t item_count = 0;
  // The time from making the first item to the last acknowledgement.
  absl::Duration import_time;
};

// Draws L2-normalised vectors in Gaussian clusters, which depend on the seed
// only. Not thread-safe.
class ClusteredVectors {
 public:
  ClusteredVectors(std::int64_t dim, std::int64_t cluster_count,
                   std::uint64_t seed);
  std::vector<float> Next();

 private:
  std::mt19937_64 random_;
  std::normal_distribution<float> normal_;
  std::vector<std::vector<float>> centres_;
};

// Creates the catalog with one key field, "key", compared by DOT, at a
// temperature that concentrates attention on a cluster, and imports items
// "item-0", "item-1", ... Returns AlreadyExists if the catalog exists and has
// items, unless `options.replace`, and the server's errors.
absl::StatusOr<PrepareResult> Prepare(
    Client& client, const PrepareOptions& options,
    const std::function<void(std::int64_t acknowledged_count)>& progress);

// Waits until no index of the catalog is being trained. DeadlineExceeded if
// that takes longer than `timeout`.
absl::Status WaitForIndex(Client& client, const std::string& catalog,
                          absl::Duration timeout);

}  // namespace attendant

#endif  // ATTENDANT_CLIENT_LOAD_REQUESTS_PREPARE_H_
