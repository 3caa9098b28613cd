// Files to import, joined into items by id.
#ifndef ATTENDANT_CLIENT_COMMANDS_ITEMS_IMPORT_ROWS_H_
#define ATTENDANT_CLIENT_COMMANDS_ITEMS_IMPORT_ROWS_H_

#include <CLI/CLI.hpp>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "attendant/v1/catalog_service.pb.h"
#include "attendant/v1/item_service.pb.h"
#include "client/commands/items/item_source.h"
#include "client/files/vector_file.h"

namespace attendant {

// Paths, as the command line names them.
struct ImportInputs {
  std::vector<std::string> directories;  // that `attendant fit` wrote
  std::string ids;                       // of the files below, row by row
  std::vector<std::string> keys;         // "FIELD=FILE"
  std::string values;                    // or empty
  std::string attributes;                // or empty
  // Parts of items that are there: one need not have a key.
  bool partial = false;
};

struct InputOptions {
  CLI::Option* from;
  CLI::Option* ids;
  CLI::Option* keys;  // needs ids, and so does --values
  CLI::Option* attributes;
};

// The flags of a command that reads such files.
InputOptions AddInputFlags(CLI::App& command, ImportInputs& inputs);

// Rows in the order in which their ids first appear. Everything but the numbers
// in vector files is checked when it is opened. Not thread-safe.
class ImportRows : public ItemSource {
 public:
  // InvalidArgument, naming the file and line or row, if a file is not what its
  // format says, disagrees with another one in length, or does not fit the
  // schema.
  static absl::StatusOr<std::unique_ptr<ImportRows>> Open(
      const ImportInputs& inputs, const v1::CatalogSchema& schema);

  std::int64_t row_count() const override {
    return static_cast<std::int64_t>(ids_.size());
  }
  const std::string& id(std::int64_t row) const {
    return ids_[static_cast<std::size_t>(row)];
  }

  // InvalidArgument if the row holds a number that is not finite, or has no
  // key where it must. Other rows can be read after that.
  absl::StatusOr<v1::Item> ReadItem(std::int64_t row);
  absl::StatusOr<std::optional<SourceRow>> Next() override;
  absl::StatusOr<UnseenParts> Unseen() override;

 private:
  // A file whose rows are keys of a field, or values if the field is empty.
  struct Source {
    std::string field;
    std::unique_ptr<VectorFile> file;
    std::vector<std::int64_t> file_rows;  // by row of ours; -1 or past: none
  };

  ImportRows(const v1::CatalogSchema& schema, bool partial)
      : schema_(schema), partial_(partial) {}

  absl::Status AddDirectory(const std::string& directory);
  absl::Status AddSource(const std::string& field, const std::string& path,
                         const std::string& ids_path,
                         const std::vector<std::string>& ids);
  absl::Status AddAttributes(const std::string& path);
  // Our row of an id, a new one if it was not seen before.
  std::int64_t RowOf(const std::string& id);

  const v1::CatalogSchema schema_;
  const bool partial_;
  std::vector<std::string> ids_;
  absl::flat_hash_map<std::string, std::int64_t> row_of_;
  std::vector<Source> sources_;
  // Items with attributes and opaque values only, by row; and where they come
  // from.
  absl::flat_hash_map<std::int64_t, v1::Item> attributes_;
  std::string attributes_path_;
  std::vector<float> components_;
  std::int64_t next_row_ = 0;
};

}  // namespace attendant

#endif  // ATTENDANT_CLIENT_COMMANDS_ITEMS_IMPORT_ROWS_H_
