// Where the items of an import come from.
#ifndef ATTENDANT_CLIENT_COMMANDS_ITEM_SOURCE_H_
#define ATTENDANT_CLIENT_COMMANDS_ITEM_SOURCE_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "attendant/v1/item_service.pb.h"

namespace attendant {

struct SourceRow {
  std::int64_t number = 0;  // from 1, for people to find it
  std::string id;           // empty if the row has none
  // InvalidArgument, saying got and want, where the row is no item.
  absl::StatusOr<v1::Item> item;
};

// Not thread-safe.
class ItemSource {
 public:
  virtual ~ItemSource() = default;

  virtual std::int64_t row_count() const = 0;
  // The next row; nothing after the last. An error where there is no reading
  // on.
  virtual absl::StatusOr<std::optional<SourceRow>> Next() = 0;
};

}  // namespace attendant

#endif  // ATTENDANT_CLIENT_COMMANDS_ITEM_SOURCE_H_
