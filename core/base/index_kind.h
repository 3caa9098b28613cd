// Which index a key field has.
#ifndef ATTENDANT_CORE_BASE_INDEX_KIND_H_
#define ATTENDANT_CORE_BASE_INDEX_KIND_H_

namespace attendant {

// What the kinds do is said in core/shortlist/key_index.h. kAuto: chosen by the
// number of keys.
enum class IndexKind {
  kAuto = 1,
  kFlat = 2,
  kIvf = 3,
  kHnsw = 4,
  kLsh = 5,
  kPq = 6,
};

}  // namespace attendant

#endif  // ATTENDANT_CORE_BASE_INDEX_KIND_H_
