// A plain model of what a catalog must hold.
#ifndef ATTENDANT_TESTS_DURABILITY_PLAIN_CATALOG_H_
#define ATTENDANT_TESTS_DURABILITY_PLAIN_CATALOG_H_

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "core/storage/records/store.h"

namespace attendant {

// A write as requested.
struct PlainWrite {
  std::string request_id;     // empty: none
  std::vector<Item> upserts;  // distinct ids
  bool if_absent = false;     // if none of them is there
  // At most one of these is used, in place of upserts; ids are distinct.
  std::vector<std::string> deletes;
  std::vector<std::string> updates;  // ids that get `color`
  bool deletes_color = false;        // all that have `color`
  std::int64_t color = 0;
};

// Every item has a title; the color is optional.
inline constexpr int kTitlePosition = 0;
inline constexpr int kColorPosition = 1;

inline bool HasColor(const Item& item, std::int64_t color) {
  return item.attributes.size() > kColorPosition &&
         item.attributes[kColorPosition].second == AttributeValue(color);
}

struct PlainCatalog {
  std::map<std::string, Item> items;
  // By request_id: the answer that a repeated write must get.
  std::map<std::string, WriteOutcome> outcomes;
  std::int64_t sequence = 0;  // of the last acknowledged write

  // Returns the code with which the write must be refused, or kOk.
  absl::StatusCode Refusal(const PlainWrite& write) const {
    for (const Item& item : write.upserts) {
      if (write.if_absent && items.contains(item.id)) {
        return absl::StatusCode::kAlreadyExists;
      }
    }
    for (const std::string& id : write.updates) {
      if (!items.contains(id)) return absl::StatusCode::kNotFound;
    }
    return absl::StatusCode::kOk;
  }

  // Applies the write, which must not be refused, and returns its outcome
  // without sequence and fingerprint.
  WriteOutcome Apply(const PlainWrite& write) {
    WriteOutcome outcome;
    for (const Item& item : write.upserts) {
      ++(items.contains(item.id) ? outcome.updated_count
                                 : outcome.inserted_count);
      items[item.id] = item;
    }
    for (const std::string& id : write.deletes) {
      ++(items.erase(id) > 0 ? outcome.deleted_count : outcome.missing_count);
    }
    for (const std::string& id : write.updates) {
      Attributes& attributes = items.at(id).attributes;
      attributes.resize(kColorPosition);
      attributes.emplace_back(kColorPosition, write.color);
      ++outcome.updated_count;
    }
    if (write.deletes_color) {
      outcome.deleted_count = static_cast<std::int64_t>(
          std::erase_if(items, [&](const auto& entry) {
            return HasColor(entry.second, write.color);
          }));
    }
    return outcome;
  }
};

// A catalog's state, and the alternatives that a restart may find: each
// includes a failed write that may have reached the disk.
struct UncertainCatalog {
  PlainCatalog now;
  std::vector<PlainCatalog> others;
};

// Everything but the items.
struct PlainLists {
  std::set<std::string> catalogs;
  std::map<std::string, std::string> aliases;  // and the catalogs they name
  std::set<std::int64_t> models;               // versions of the one name
  std::int64_t last_model = 0;                 // may be deleted

  // Returns true if no reader can tell the two apart.
  bool LooksLike(const PlainLists& other) const {
    return catalogs == other.catalogs && aliases == other.aliases &&
           models == other.models;
  }
};

}  // namespace attendant

#endif  // ATTENDANT_TESTS_DURABILITY_PLAIN_CATALOG_H_
