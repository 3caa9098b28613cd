// Shorthand for building wire messages.
#ifndef ATTENDANT_TESTS_INTEGRATION_REQUESTS_H_
#define ATTENDANT_TESTS_INTEGRATION_REQUESTS_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/api/client.h"

namespace attendant {

v1::KeyField KeyFieldOf(const std::string& name, int dimension,
                        v1::ScoreKind score_kind);

v1::Vector VectorOf(const std::vector<double>& components);

v1::Item ItemOf(const std::string& id, const std::string& key_field,
                const std::vector<double>& key);

// Creates a catalog with these key fields and an int64 attribute "version".
absl::Status CreateCatalog(Client& client, const std::string& name,
                           const std::vector<v1::KeyField>& key_fields,
                           int value_dimension = 0);

v1::BatchUpsertItemsRequest UpsertOf(const std::string& catalog,
                                     const std::vector<v1::Item>& items,
                                     const std::string& request_id = "");

v1::BatchDeleteItemsRequest DeleteOf(const std::string& catalog,
                                     const std::vector<std::string>& ids,
                                     const std::string& request_id = "");

// Returns all items by id.
absl::StatusOr<std::map<std::string, v1::Item>> ListAll(
    Client& client, const std::string& catalog);

// Returns each item's "version" attribute by id; 0 if it has none.
absl::StatusOr<std::map<std::string, std::int64_t>> ListVersions(
    Client& client, const std::string& catalog);

}  // namespace attendant

#endif  // ATTENDANT_TESTS_INTEGRATION_REQUESTS_H_
