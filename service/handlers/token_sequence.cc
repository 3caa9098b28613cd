#include "service/handlers/token_sequence.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/status.h"
#include "core/catalog/query/rank_items.h"
#include "core/catalog/segments/item_keys.h"
#include "service/calls/read_after_write.h"
#include "service/convert/vector.h"

namespace attendant {
namespace {

absl::StatusOr<Matrix> RowsFromProto(const v1::TokenVectors& wire,
                                     absl::string_view path) {
  ATTENDANT_RETURN_IF_ERROR(CheckCount(wire.vectors_size(), 1,
                                       kMaxSequenceCount,
                                       absl::StrCat(path, ".vectors")));
  Matrix rows;
  rows.row_count = wire.vectors_size();
  for (int i = 0; i < wire.vectors_size(); ++i) {
    const auto vector_path = [&] {
      return absl::StrCat(path, ".vectors[", i, "]");
    };
    const absl::StatusOr<std::vector<float>> row =
        VectorFromProto(wire.vectors(i));
    if (!row.ok()) return PrefixField(row.status(), vector_path() + ".");
    const absl::Status finite = ValidateFinite(*row, "");
    if (!finite.ok()) return PrefixField(finite, vector_path());
    const auto dim = static_cast<std::int64_t>(row->size());
    if (i == 0) {
      rows.column_count = dim;
    } else if (dim != rows.column_count) {
      return InvalidField(
          vector_path(), absl::StrCat(dim, " components"),
          absl::StrCat(rows.column_count, ", as in the first vector"));
    }
    // Not reserved: the first vector's dimension need not hold for the others.
    rows.data.insert(rows.data.end(), row->begin(), row->end());
  }
  return rows;
}

absl::StatusOr<Matrix> ItemsFromProto(const Backend& backend,
                                      const v1::TokenItems& wire,
                                      const std::string& path,
                                      const Interrupt& interrupt) {
  ATTENDANT_ASSIGN_OR_RETURN(
      const auto catalog,
      FindCatalogShowing(backend, wire.catalog(),
                         absl::StrCat(path, ".catalog"), wire.state_token(),
                         absl::StrCat(path, ".state_token")));
  const std::string ids_path = absl::StrCat(path, ".ids");
  ATTENDANT_RETURN_IF_ERROR(
      CheckCount(wire.ids_size(), 1, kMaxSequenceCount, ids_path));
  const auto snapshot = catalog->snapshot();
  ATTENDANT_ASSIGN_OR_RETURN(const int field,
                             FindKeyField(*snapshot->schema, wire.key_field(),
                                          absl::StrCat(path, ".key_field")));
  const std::vector<ItemId> ids(wire.ids().begin(), wire.ids().end());
  return KeysOfItems(*snapshot, field, ids, ids_path, interrupt);
}

}  // namespace

absl::StatusOr<Matrix> TokensFromProto(const Backend& backend,
                                       const v1::TokenSequence& wire,
                                       absl::string_view path,
                                       const Interrupt& interrupt) {
  switch (wire.kind_case()) {
    case v1::TokenSequence::kVectors:
      return RowsFromProto(wire.vectors(), absl::StrCat(path, ".vectors"));
    case v1::TokenSequence::kItems:
      return ItemsFromProto(backend, wire.items(), absl::StrCat(path, ".items"),
                            interrupt);
    case v1::TokenSequence::KIND_NOT_SET:
      break;
  }
  return InvalidField(path, "nothing", "vectors or items");
}

}  // namespace attendant
