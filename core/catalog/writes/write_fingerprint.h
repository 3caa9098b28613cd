// Tells whether two writes with one request_id have the same content.
#ifndef ATTENDANT_CORE_CATALOG_WRITES_WRITE_FINGERPRINT_H_
#define ATTENDANT_CORE_CATALOG_WRITES_WRITE_FINGERPRINT_H_

#include <cstdint>
#include <span>

#include "absl/strings/string_view.h"
#include "core/catalog/filter/filter.h"
#include "core/catalog/writes/write_condition.h"
#include "core/storage/records/item.h"
#include "core/storage/records/item_patch.h"

namespace attendant {

// A hash of a write's content. It is stored (WriteOutcome::fingerprint), so it
// must be the same in every process and must not change.
class WriteFingerprint {
 public:
  // `verb` tells writes of different kinds apart.
  explicit WriteFingerprint(absl::string_view verb) : hash_(0) { Add(verb); }

  void Add(absl::string_view bytes);
  void Add(std::int64_t number);
  void Add(const Item& item);
  void Add(const ItemPatch& patch);
  void Add(const Filter& filter);
  void Add(std::span<const WriteCondition> conditions);

  std::uint64_t value() const { return hash_; }

 private:
  std::uint64_t hash_;
};

}  // namespace attendant

#endif  // ATTENDANT_CORE_CATALOG_WRITES_WRITE_FINGERPRINT_H_
