// Bytes of memory by purpose.
#ifndef ATTENDANT_CORE_BASE_MEMORY_PARTS_H_
#define ATTENDANT_CORE_BASE_MEMORY_PARTS_H_

#include <cstdint>

namespace attendant {

// Every part is in bytes, >= 0. Add the parts of several objects with +=.
struct MemoryParts {
  std::int64_t keys = 0;   // floats of keys
  std::int64_t codes = 0;  // keys and values in fewer bits
  // Search structures over keys: lists, trees, graphs, norms, calibration.
  std::int64_t index = 0;
  std::int64_t attributes = 0;
  std::int64_t values = 0;      // vectors and opaque bytes
  std::int64_t ids = 0;         // item ids and the table from id to row
  std::int64_t tombstones = 0;  // which rows are dead
  std::int64_t encoders = 0;    // text encoders
  std::int64_t database = 0;    // write buffers, table indexes and filters
  // Mapped files, not part of sum(): the kernel keeps in memory only what it
  // has room for.
  std::int64_t mapped = 0;

  std::int64_t sum() const {
    return keys + codes + index + attributes + values + ids + tombstones +
           encoders + database;
  }
  MemoryParts& operator+=(const MemoryParts& other) {
    keys += other.keys;
    codes += other.codes;
    index += other.index;
    attributes += other.attributes;
    values += other.values;
    ids += other.ids;
    tombstones += other.tombstones;
    encoders += other.encoders;
    database += other.database;
    mapped += other.mapped;
    return *this;
  }
  bool operator==(const MemoryParts&) const = default;
};

}  // namespace attendant

#endif  // ATTENDANT_CORE_BASE_MEMORY_PARTS_H_
