// Makes the requests of a load test from a catalog and the options.
#ifndef ATTENDANT_CLIENT_LOAD_REQUESTS_REQUESTS_H_
#define ATTENDANT_CLIENT_LOAD_REQUESTS_REQUESTS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/api/client.h"
#include "client/load/requests/request_mix.h"

namespace attendant {

struct RequestOptions {
  std::string catalog;
  std::string key_field;  // not empty
  int result_count = 10;
  std::vector<MixShare> mix = {{kAttendKind, 1}};
  // Queries of kAttendKind and kFilterKind. Empty: made from stored keys.
  std::vector<v1::AttendRequest> queries;
  // Norm of the noise added to stored keys, as a share of the key's norm.
  double noise = 0.1;
  // Filters of kFilterKind, in turns. Empty: made from stored attributes.
  std::vector<std::string> filters;
  // Items in a request of kWriteKind, in [1, 256].
  int write_item_count = 1;
  std::uint64_t seed = 1;
};

// Reads the queries of a load test: from a .jsonl file with an AttendRequest on
// each line, as canonical proto JSON, or from a .npy, .fvecs, .txt or .csv file
// with vectors. InvalidArgument, naming file and row, if the file can't be
// read, has no row, or has another extension.
absl::StatusOr<std::vector<v1::AttendRequest>> ReadQueries(
    const std::string& path);

// Returns a filter that the item passes, made from one of its attributes: among
// those that a filter can be made from, in the order of names, number `draw`
// modulo their count. Empty if there is none.
std::string FilterOf(const v1::Item& item, std::uint64_t draw);

// Returns the id of an item that the load writes, "load-SEED-NUMBER".
std::string WrittenItemId(std::uint64_t seed, std::int64_t number);

// Returns request number `index` to write a group of those items. Their numbers
// start again after kWrittenItemCount.
inline constexpr std::int64_t kWrittenItemCount = 10000;
v1::BatchUpsertItemsRequest WriteRequest(
    const RequestOptions& options, const std::vector<std::vector<float>>& keys,
    std::int64_t index);

// Deletes the items that the load wrote, numbers 0 to count - 1, and those from
// `count` on that a killed load with the same seed left, up to the first batch
// that finds none. Returns how many existed, or the server's errors, after
// which some may be deleted.
absl::StatusOr<std::int64_t> DeleteWrittenItems(Client& client,
                                                const RequestOptions& options,
                                                std::int64_t count);

// Makes the requests. Returns the server's errors, and FailedPrecondition if
// the catalog has nothing to make them from.
absl::StatusOr<RequestMix> MakeRequests(Client& client,
                                        const RequestOptions& options);

}  // namespace attendant

#endif  // ATTENDANT_CLIENT_LOAD_REQUESTS_REQUESTS_H_
