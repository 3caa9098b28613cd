// The kinds of index that a key field can have.
#ifndef ATTENDANT_CORE_BASE_INDEX_KIND_H_
#define ATTENDANT_CORE_BASE_INDEX_KIND_H_

#include "absl/strings/string_view.h"

namespace attendant {

// core/shortlist/scan/key_index.h describes the kinds. kAuto chooses one by the
// number of keys.
enum class IndexKind {
  kAuto = 1,
  kFlat = 2,
  kIvf = 3,
  kHnsw = 4,
  kLsh = 5,
  kPq = 6,
};

// Returns "AUTO", "FLAT" and so on; empty if `kind` is not a valid kind.
inline absl::string_view Name(IndexKind kind) {
  switch (kind) {
    case IndexKind::kAuto:
      return "AUTO";
    case IndexKind::kFlat:
      return "FLAT";
    case IndexKind::kIvf:
      return "IVF";
    case IndexKind::kHnsw:
      return "HNSW";
    case IndexKind::kLsh:
      return "LSH";
    case IndexKind::kPq:
      return "PQ";
  }
  return "";
}

// True if an index of this kind may keep its fp32 keys in a file: a query reads
// few of them and knows which ones before it reads the first.
constexpr bool MayKeepKeysOnDisk(IndexKind kind) {
  return kind == IndexKind::kIvf || kind == IndexKind::kPq;
}

}  // namespace attendant

#endif  // ATTENDANT_CORE_BASE_INDEX_KIND_H_
