// Where the items of an import come from.
#ifndef ATTENDANT_CLIENT_COMMANDS_ITEMS_ITEM_SOURCE_H_
#define ATTENDANT_CLIENT_COMMANDS_ITEMS_ITEM_SOURCE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "attendant/v1/catalog_service.pb.h"
#include "attendant/v1/item_service.pb.h"

namespace attendant {

struct SourceRow {
  std::int64_t number = 0;  // from 1, for people to find it
  std::string id;           // empty if the row has none
  // InvalidArgument, saying got and want, where the row is no item.
  absl::StatusOr<v1::Item> item;
};

// The parts of items that a schema declares, but for those that some item was
// seen to have. Not thread-safe.
class UnseenParts {
 public:
  explicit UnseenParts(const v1::CatalogSchema& schema);

  void See(const v1::Item& item);

  // Whether all were seen.
  bool empty() const { return names_.empty(); }
  // As people are told of them, in the schema's order: "the key in text", "the
  // value", "price". Beside others opaque values, which no schema declares.
  std::vector<std::string> names() const;

 private:
  std::vector<std::string> names_;
  bool opaque_value_seen_ = false;
};

// Not thread-safe.
class ItemSource {
 public:
  virtual ~ItemSource() = default;

  virtual std::int64_t row_count() const = 0;
  // The next row; nothing after the last. An error where there is no reading
  // on.
  virtual absl::StatusOr<std::optional<SourceRow>> Next() = 0;
  // What no row has. May read all of them, whatever Next has returned.
  virtual absl::StatusOr<UnseenParts> Unseen() = 0;
};

}  // namespace attendant

#endif  // ATTENDANT_CLIENT_COMMANDS_ITEMS_ITEM_SOURCE_H_
