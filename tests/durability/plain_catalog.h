// What a catalog must hold, kept in the plainest way.
#ifndef ATTENDANT_TESTS_DURABILITY_PLAIN_CATALOG_H_
#define ATTENDANT_TESTS_DURABILITY_PLAIN_CATALOG_H_

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "core/storage/store.h"

namespace attendant {

// A write as it was asked for.
struct PlainWrite {
  std::string request_id;            // empty: none
  std::vector<Item> upserts;         // distinct ids
  std::vector<std::string> deletes;  // distinct; if not empty, no upserts
};

struct PlainCatalog {
  std::map<std::string, Item> items;
  // By request_id: what a repeat must be answered with.
  std::map<std::string, WriteOutcome> outcomes;
  std::int64_t sequence = 0;  // of the last acknowledged write

  // Applies the write; returns its outcome, sequence and fingerprint aside.
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
    return outcome;
  }
};

// A catalog's state, and the others that it may be found in after a restart:
// with one of the writes that failed, which may have reached the disk.
struct UncertainCatalog {
  PlainCatalog now;
  std::vector<PlainCatalog> others;
};

// What there is beside items.
struct PlainLists {
  std::set<std::string> catalogs;
  std::map<std::string, std::string> aliases;  // and the catalogs they name
  std::set<std::int64_t> models;               // versions of the one name
  std::int64_t last_model = 0;                 // also of one that was deleted

  // What can be seen of both is the same.
  bool LooksLike(const PlainLists& other) const {
    return catalogs == other.catalogs && aliases == other.aliases &&
           models == other.models;
  }
};

}  // namespace attendant

#endif  // ATTENDANT_TESTS_DURABILITY_PLAIN_CATALOG_H_
