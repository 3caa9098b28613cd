// Checks of writes, and their errors. Errors name the field that is wrong.
#ifndef ATTENDANT_CORE_CATALOG_WRITES_WRITE_CHECKS_H_
#define ATTENDANT_CORE_CATALOG_WRITES_WRITE_CHECKS_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "core/catalog/writes/write_condition.h"
#include "core/storage/records/item.h"

namespace attendant {

// Returns "field[i]".
std::string PathOf(absl::string_view field, std::size_t i);

// Adds items[i] to the field of an error about an item.
absl::Status InItem(const absl::Status& status, std::size_t i);

// OK if ids are valid and distinct, else InvalidArgument naming field[i]
// followed by id_suffix.
absl::Status ValidateDistinct(std::span<const absl::string_view> ids,
                              absl::string_view field,
                              absl::string_view id_suffix);

// OK if there are no conditions, or `count` that can hold, else InvalidArgument
// naming "conditions". Only a write that may insert items has conditions with
// `absent`.
absl::Status ValidateConditions(std::span<const WriteCondition> conditions,
                                std::size_t count, bool may_insert);

// True if the stored items must be read to check the conditions.
bool ReadsSequences(std::span<const WriteCondition> conditions);

// Returns AlreadyExists, ITEM_EXISTS.
absl::Status ItemExists(absl::string_view field, absl::string_view id);

// OK if the item's last write has the wanted sequence, else Aborted,
// SEQUENCE_MISMATCH. `stored` is null if there is no item.
absl::Status CheckSequence(const StoredItem* stored, std::int64_t want,
                           absl::string_view path);

}  // namespace attendant

#endif  // ATTENDANT_CORE_CATALOG_WRITES_WRITE_CHECKS_H_
