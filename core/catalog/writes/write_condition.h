// What must be true of an item for a write to change it.
#ifndef ATTENDANT_CORE_CATALOG_WRITES_WRITE_CONDITION_H_
#define ATTENDANT_CORE_CATALOG_WRITES_WRITE_CONDITION_H_

#include <cstdint>
#include <optional>

namespace attendant {

// A precondition for writing an item; with nothing set there is none.
struct WriteCondition {
  // The item must not exist.
  bool absent = false;
  // The item must exist and its last write must have this number
  // (StoredItem::sequence), >= 0.
  std::optional<std::int64_t> sequence;
};

}  // namespace attendant

#endif  // ATTENDANT_CORE_CATALOG_WRITES_WRITE_CONDITION_H_
