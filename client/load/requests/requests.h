// The requests of a load test, made of a catalog and what was asked for.
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
  // Of requests of kAttendKind and kFilterKind; empty: made of stored keys.
  std::vector<v1::AttendRequest> queries;
  // Norm of the noise added to stored keys, as a share of theirs.
  double noise = 0.1;
  // Of kFilterKind, in turns; empty: made of stored attributes.
  std::vector<std::string> filters;
  // Items of one request of kWriteKind, in [1, 256].
  int write_item_count = 1;
  std::uint64_t seed = 1;
};

// Reads what a load test asks for. A .jsonl file holds an AttendRequest a line,
// as canonical proto JSON; .npy, .fvecs and .txt files hold vectors.
// InvalidArgument naming file and row if it can't be read or has no row, or by
// its name is none of these.
absl::StatusOr<std::vector<v1::AttendRequest>> ReadQueries(
    const std::string& path);

// A filter that the item passes, by one of its attributes: the draw-th that one
// can be made of, in the order of names; empty if there is none.
std::string FilterOf(const v1::Item& item, std::uint64_t draw);

// The id of one of the tester's own items, "load-SEED-NUMBER".
std::string WrittenItemId(std::uint64_t seed, std::int64_t number);

// The request to write a group of those items, which come back after
// kWrittenItemCount.
inline constexpr std::int64_t kWrittenItemCount = 10000;
v1::BatchUpsertItemsRequest WriteRequest(
    const RequestOptions& options, const std::vector<std::vector<float>>& keys,
    std::int64_t index);

// Deletes those of the tester's own items 0 to count - 1 that the catalog
// holds, and those from `count` on that a load with the same seed left which
// was killed, up to the first batch that finds none. Says how many there were.
// The server's errors; some are then deleted.
absl::StatusOr<std::int64_t> DeleteWrittenItems(Client& client,
                                                const RequestOptions& options,
                                                std::int64_t count);

// The server's errors; FailedPrecondition if the catalog holds nothing that the
// requests could be made of.
absl::StatusOr<RequestMix> MakeRequests(Client& client,
                                        const RequestOptions& options);

}  // namespace attendant

#endif  // ATTENDANT_CLIENT_LOAD_REQUESTS_REQUESTS_H_
