// Files to import, whose rows become items by their ids.
#ifndef ATTENDANT_CLIENT_COMMANDS_ITEMS_IMPORT_ROWS_H_
#define ATTENDANT_CLIENT_COMMANDS_ITEMS_IMPORT_ROWS_H_

#include <CLI/CLI.hpp>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "attendant/v1/catalog_service.pb.h"
#include "attendant/v1/item_service.pb.h"
#include "client/commands/items/item_source.h"
#include "client/files/vector_file.h"
#include "nlohmann/json.hpp"

namespace attendant {

// Paths, as the command line names them.
struct ImportInputs {
  std::vector<std::string> directories;  // that `attendant fit` wrote
  std::string ids;                       // of the rows of `keys` and `values`
  std::vector<std::string> keys;         // "FIELD=FILE"
  std::string values;                    // or empty
  std::string attributes;                // or empty
  std::vector<std::string> columns;      // of `attributes`; all if empty
  // The rows change parts of existing items, so a row needs no key.
  bool partial = false;
};

// Converts a text to JSON of an attribute's type, for ToAttribute: true, false,
// numbers, or a list of texts written as a JSON array. Returns the text as a
// string if it is not of the type.
nlohmann::json ValueOfText(const std::string& text, v1::AttributeType type);

// Returns the inputs as flags, quoted for a shell, with a space before each.
std::string ShellFlags(const ImportInputs& inputs);

struct InputOptions {
  CLI::Option* from;
  CLI::Option* ids;
  CLI::Option* keys;  // needs `ids`, as --values does
  CLI::Option* attributes;
};

// Adds the flags of a command that reads such files.
InputOptions AddInputFlags(CLI::App& command, ImportInputs& inputs);

// Rows in the order in which their ids first appear. Open checks everything but
// the numbers in vector files. Not thread-safe.
class ImportRows : public ItemSource {
 public:
  // InvalidArgument, naming the file and line or row, if a file violates its
  // format, has another number of rows than its ids, or does not fit the
  // schema. Unless the inputs are partial, ReadItem returns the error of a row
  // of attributes whose id can be read.
  static absl::StatusOr<std::unique_ptr<ImportRows>> Open(
      const ImportInputs& inputs, const v1::CatalogSchema& schema);

  std::int64_t row_count() const override {
    return static_cast<std::int64_t>(ids_.size());
  }
  const std::string& id(std::int64_t row) const { return ids_[row]; }
  std::int64_t without_attributes_count() const override {
    return without_attributes_count_;
  }

  // Reads a row in [0, row_count). InvalidArgument if it holds a number that is
  // not finite, or its row of attributes was wrong, or it lacks a key although
  // the inputs are not partial. Other rows can be read after that.
  absl::StatusOr<v1::Item> ReadItem(std::int64_t row);
  absl::StatusOr<std::optional<SourceRow>> Next() override;
  absl::StatusOr<UnseenParts> Unseen() override;

 private:
  // A file whose rows are keys of a field, or values if the field is empty.
  struct Source {
    std::string field;
    std::unique_ptr<VectorFile> file;
    // The file's row for each of our rows; none if it is -1 or missing.
    std::vector<std::int64_t> file_rows;
  };

  ImportRows(const v1::CatalogSchema& schema, bool partial)
      : schema_(schema), partial_(partial) {}

  absl::Status AddDirectory(const std::string& directory);
  absl::Status AddSource(const std::string& field, const std::string& path,
                         const std::string& ids_path,
                         const std::vector<std::string>& ids);
  // Reads the named columns, or all if `columns` is empty.
  absl::Status AddAttributes(const std::string& path,
                             const std::vector<std::string>& columns);
  absl::Status AddAttributeLines(const std::string& path,
                                 const std::vector<std::string>& columns);
  absl::Status AddAttributeCsv(const std::string& path,
                               const std::vector<std::string>& columns);
  // Adds an item's attributes, by name. `seen` holds the rows that the same
  // file has given so far.
  absl::Status AddAttributesOf(const std::string& id,
                               const nlohmann::json& attributes,
                               absl::flat_hash_set<std::int64_t>& seen);
  // Keeps the error of a row of attributes for ReadItem. Returns it if `id` is
  // not valid.
  absl::Status Reject(const std::string& id, const absl::Status& error);
  // Returns our row of an id, a new one if the id has none.
  std::int64_t RowOf(const std::string& id);

  const v1::CatalogSchema schema_;
  const bool partial_;
  std::vector<std::string> ids_;
  absl::flat_hash_map<std::string, std::int64_t> row_of_;
  std::vector<Source> sources_;
  // Items with attributes and opaque values only, by row, and the file that
  // they come from.
  absl::flat_hash_map<std::int64_t, v1::Item> attributes_;
  std::string attributes_path_;
  // The first error in the attributes of a row.
  absl::flat_hash_map<std::int64_t, absl::Status> rejected_;
  bool counts_without_attributes_ = false;
  std::int64_t without_attributes_count_ = 0;
  std::vector<float> components_;
  std::int64_t next_row_ = 0;
};

}  // namespace attendant

#endif  // ATTENDANT_CLIENT_COMMANDS_ITEMS_IMPORT_ROWS_H_
