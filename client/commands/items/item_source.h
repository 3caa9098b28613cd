// The items of an import, from whichever files hold them.
#ifndef ATTENDANT_CLIENT_COMMANDS_ITEMS_ITEM_SOURCE_H_
#define ATTENDANT_CLIENT_COMMANDS_ITEMS_ITEM_SOURCE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/status/statusor.h"
#include "attendant/v1/catalog_service.pb.h"
#include "attendant/v1/item_service.pb.h"

namespace attendant {

struct SourceRow {
  std::int64_t number = 0;  // from 1, for error messages
  std::string id;           // empty if the row has none
  // InvalidArgument, saying got and want, if the row is not an item.
  absl::StatusOr<v1::Item> item;
};

// The parts of items that a schema declares and that no item seen so far has:
// what an import that replaces items would remove from them. Not thread-safe.
class UnseenParts {
 public:
  explicit UnseenParts(const v1::CatalogSchema& schema);

  // Removes the parts that `item` has, and remembers its id.
  void See(const v1::Item& item);
  void SeeId(const std::string& id) { ids_.insert(id); }

  // True if every declared part was seen.
  bool empty() const { return paths_.empty(); }
  // The unseen parts as paths of a field mask, in the schema's order. Includes
  // the opaque value, which no schema declares, only if another part is unseen:
  // most files have none.
  std::vector<std::string> paths() const;
  // True if an item of this id was seen.
  bool HasId(const std::string& id) const { return ids_.contains(id); }

 private:
  std::vector<std::string> paths_;
  bool opaque_value_seen_ = false;
  absl::flat_hash_set<std::string> ids_;
};

// Returns the parts that `item` has, for people: "its key in text", "its
// value", "price".
std::vector<std::string> PartNames(const v1::Item& item);

// A sequence of items. Not thread-safe.
class ItemSource {
 public:
  virtual ~ItemSource() = default;

  virtual std::int64_t row_count() const = 0;
  // The number of items with neither attributes nor an opaque value that Next
  // has returned, if a file of attributes was given; 0 otherwise.
  virtual std::int64_t without_attributes_count() const { return 0; }
  // Returns the next row, or nothing after the last. An error means that later
  // rows can't be read.
  virtual absl::StatusOr<std::optional<SourceRow>> Next() = 0;
  // Returns the parts that no row has, with the ids of all rows unless it is
  // empty. May read all rows; does not affect Next.
  virtual absl::StatusOr<UnseenParts> Unseen() = 0;
};

}  // namespace attendant

#endif  // ATTENDANT_CLIENT_COMMANDS_ITEMS_ITEM_SOURCE_H_
