#include "core/catalog/writes/write_checks.h"

#include <algorithm>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "core/base/status.h"

namespace attendant {

std::string PathOf(absl::string_view field, std::size_t i) {
  return absl::StrCat(field, "[", i, "]");
}

absl::Status InItem(const absl::Status& status, std::size_t i) {
  if (status.ok()) return status;
  return PrefixField(status, absl::StrCat(PathOf("items", i), "."));
}

absl::Status ValidateDistinct(std::span<const absl::string_view> ids,
                              absl::string_view field,
                              absl::string_view id_suffix) {
  absl::flat_hash_set<absl::string_view> seen;
  seen.reserve(ids.size());
  for (std::size_t i = 0; i < ids.size(); ++i) {
    absl::Status status = ValidateItemId(ids[i], "");
    if (status.ok() && !seen.insert(ids[i]).second) {
      status = InvalidField("", absl::StrCat("'", ids[i], "' again"),
                            "distinct ids");
    }
    if (!status.ok()) {
      return PrefixField(status, absl::StrCat(PathOf(field, i), id_suffix));
    }
  }
  return absl::OkStatus();
}

absl::Status ValidateConditions(std::span<const WriteCondition> conditions,
                                std::size_t count, bool may_insert) {
  if (conditions.empty()) return absl::OkStatus();
  if (conditions.size() != count) {
    return InvalidField("conditions", absl::StrCat(conditions.size()),
                        absl::StrCat("none, or ", count, ": one for each"));
  }
  for (std::size_t i = 0; i < conditions.size(); ++i) {
    const std::string path = PathOf("conditions", i);
    if (conditions[i].absent && !may_insert) {
      return InvalidField(path, "absent", "a sequence, or no condition");
    }
    if (conditions[i].absent && conditions[i].sequence) {
      return InvalidField(path, "absent and sequence", "one of both");
    }
    if (conditions[i].sequence.value_or(0) < 0) {
      return InvalidField(path, absl::StrCat(*conditions[i].sequence),
                          "a sequence of 0 or more");
    }
  }
  return absl::OkStatus();
}

bool ReadsSequences(std::span<const WriteCondition> conditions) {
  return std::ranges::any_of(conditions, [](const WriteCondition& condition) {
    return condition.sequence.has_value();
  });
}

absl::Status ItemExists(absl::string_view field, absl::string_view id) {
  return FieldError(absl::StatusCode::kAlreadyExists, "ITEM_EXISTS", field,
                    absl::StrCat("'", id, "', which exists"),
                    "an item that does not");
}

absl::Status CheckSequence(const StoredItem* stored, std::int64_t want,
                           absl::string_view path) {
  if (stored != nullptr && stored->sequence == want) return absl::OkStatus();
  return FieldError(absl::StatusCode::kAborted, "SEQUENCE_MISMATCH", path,
                    stored == nullptr ? "no item"
                                      : absl::StrCat("an item of sequence ",
                                                     stored->sequence),
                    absl::StrCat("sequence ", want));
}

}  // namespace attendant
