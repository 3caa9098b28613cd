// Items as lines of JSON, one item per line:
//
//   {"id": "...", "keys": {"FIELD": [0.5, ...], ...}, "value": [1, ...],
//    "attributes": {"NAME": ..., ...}, "opaque_value": "base64"}
//
// Everything but the id is optional. A line may also be an item as ProtoJSON
// writes it: {"floats": {"values": [...]}} for a vector, {"doubleValue": 4.99}
// for an attribute, "opaqueValue" and "sequence", which is ignored.
#ifndef ATTENDANT_CLIENT_COMMANDS_ITEMS_ITEM_LINES_H_
#define ATTENDANT_CLIENT_COMMANDS_ITEMS_ITEM_LINES_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "attendant/v1/catalog_service.pb.h"
#include "attendant/v1/item_service.pb.h"
#include "client/commands/items/item_source.h"
#include "client/files/input.h"
#include "nlohmann/json.hpp"

namespace attendant {

// Returns the item's line with its line end. Read back, the item has the same
// bits. Internal if a vector from the server is not a whole number of floats.
absl::StatusOr<std::string> ItemToLine(const v1::Item& item);

// A file of such lines, plain or gzipped, read one line at a time; or the reply
// that `items get --json` prints, {"items": [...], ...} over several lines. A
// line that is not an item is a row with an error, and later rows can be read.
// Rows are numbered by line, those of a reply by position. Blank lines are
// skipped.
class ItemLines : public ItemSource {
 public:
  // Reads the file once, to count its lines. An error of the file system, or
  // InvalidArgument if it can't be read twice, is CSV or damaged, or has a line
  // (or is a reply) of more than 16 MiB.
  static absl::StatusOr<std::unique_ptr<ItemLines>> Open(
      const std::string& path, const v1::CatalogSchema& schema);

  std::int64_t row_count() const override { return row_count_; }
  absl::StatusOr<std::optional<SourceRow>> Next() override;
  absl::StatusOr<UnseenParts> Unseen() override;

 private:
  ItemLines(LineReader lines, std::int64_t row_count,
            std::optional<nlohmann::json> reply,
            const v1::CatalogSchema& schema)
      : schema_(schema),
        row_count_(row_count),
        reply_(std::move(reply)),
        lines_(std::move(lines)) {}

  const v1::CatalogSchema schema_;
  const std::int64_t row_count_;
  const std::optional<nlohmann::json> reply_;  // its items, if it is one
  LineReader lines_;
  std::int64_t read_count_ = 0;
  std::string line_;
};

}  // namespace attendant

#endif  // ATTENDANT_CLIENT_COMMANDS_ITEMS_ITEM_LINES_H_
