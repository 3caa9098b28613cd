// Which index a key field has.
#ifndef ATTENDANT_CORE_BASE_INDEX_KIND_H_
#define ATTENDANT_CORE_BASE_INDEX_KIND_H_

#include "absl/strings/string_view.h"

namespace attendant {

// What the kinds do is said in core/shortlist/scan/key_index.h. kAuto: chosen
// by the number of keys.
enum class IndexKind {
  kAuto = 1,
  kFlat = 2,
  kIvf = 3,
  kHnsw = 4,
  kLsh = 5,
  kPq = 6,
};

// "AUTO", "FLAT" and so on; empty for what is no kind.
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

// Whether an index of this kind may keep its fp32 keys in a file: a query
// reads few of them there, and knows which before it reads the first.
constexpr bool MayKeepKeysOnDisk(IndexKind kind) {
  return kind == IndexKind::kIvf || kind == IndexKind::kPq;
}

}  // namespace attendant

#endif  // ATTENDANT_CORE_BASE_INDEX_KIND_H_
