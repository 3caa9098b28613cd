// Helpers shared by the conversion tests.
#ifndef ATTENDANT_TESTS_SERVICE_CONVERT_CONVERT_FIXTURE_H_
#define ATTENDANT_TESTS_SERVICE_CONVERT_CONVERT_FIXTURE_H_

#include <gmock/gmock.h>

#include <string>

#include "absl/status/status.h"
#include "core/base/status.h"
#include "core/storage/records/item.h"
#include "tests/support/status_matchers.h"

namespace attendant {

// Expects `status` to be InvalidArgument, naming `field` and containing
// `message`.
inline void ExpectInvalid(const absl::Status& status, const std::string& field,
                          const std::string& message) {
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kInvalidArgument,
                               ::testing::HasSubstr(message)));
  EXPECT_EQ(FieldOf(status).value_or("none"), field) << status;
}

inline CatalogSchema ShopSchema() {
  CatalogSchema schema;
  schema.key_fields.push_back({.name = "title", .dim = 2});
  schema.key_fields.push_back({.name = "image", .dim = 3});
  schema.value_dim = 2;
  schema.attributes = {
      {"sold", AttributeType::kBool},
      {"stock", AttributeType::kInt64},
      {"price", AttributeType::kDouble},
      {"name", AttributeType::kString},
      {"tags", AttributeType::kStringList},
      {"added", AttributeType::kTimestamp},
  };
  return schema;
}

}  // namespace attendant

#endif  // ATTENDANT_TESTS_SERVICE_CONVERT_CONVERT_FIXTURE_H_
