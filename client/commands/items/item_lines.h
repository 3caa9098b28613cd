// Items as lines of JSON, one each:
//
//   {"id": "...", "keys": {"FIELD": [0.5, ...], ...}, "value": [1, ...],
//    "attributes": {"NAME": ..., ...}, "opaque_value": "base64"}
//
// All but the id may be left out.
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

namespace attendant {

// The item's line, with its end. Read back, it has the same bits. Internal if a
// vector of the server's is no whole number of floats.
absl::StatusOr<std::string> ItemToLine(const v1::Item& item);

// A file of such lines, plain or gzipped, read one at a time. A line that is no
// item is a row of its own, and the next ones can be read. Rows are numbered by
// their lines; blank ones are skipped.
class ItemLines : public ItemSource {
 public:
  // Reads the file once, to count its lines. Errors of files; InvalidArgument
  // for what can't be read twice, and for a line of more than 16 MiB.
  static absl::StatusOr<std::unique_ptr<ItemLines>> Open(
      const std::string& path, const v1::CatalogSchema& schema);

  std::int64_t row_count() const override { return row_count_; }
  absl::StatusOr<std::optional<SourceRow>> Next() override;
  absl::StatusOr<UnseenParts> Unseen() override;

 private:
  ItemLines(LineReader lines, std::int64_t row_count,
            const v1::CatalogSchema& schema)
      : schema_(schema), row_count_(row_count), lines_(std::move(lines)) {}

  const v1::CatalogSchema schema_;
  const std::int64_t row_count_;
  LineReader lines_;
  std::int64_t read_count_ = 0;
  std::string line_;
};

}  // namespace attendant

#endif  // ATTENDANT_CLIENT_COMMANDS_ITEMS_ITEM_LINES_H_
