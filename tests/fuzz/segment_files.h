// The catalog whose segments' files are fuzzed.
#ifndef ATTENDANT_TESTS_FUZZ_SEGMENT_FILES_H_
#define ATTENDANT_TESTS_FUZZ_SEGMENT_FILES_H_

#include "core/storage/records/store.h"

namespace attendant {

inline CatalogRecord SegmentRecord() {
  CatalogRecord record;
  record.name = "shop";
  record.uid = "0123456789abcdef";
  KeyFieldSchema field;
  field.name = "vec";
  field.dim = 3;
  field.score_kind = ScoreKind::kCosine;
  field.index_kind = IndexKind::kIvf;
  record.schema.key_fields = {field, field};
  record.schema.key_fields[1].name = "title";
  record.schema.key_fields[1].dim = 2;
  record.schema.key_fields[1].score_kind = ScoreKind::kDot;
  record.schema.value_dim = 2;
  record.schema.attributes = {{"name", AttributeType::kString},
                              {"price", AttributeType::kDouble},
                              {"tags", AttributeType::kStringList}};
  return record;
}

}  // namespace attendant

#endif  // ATTENDANT_TESTS_FUZZ_SEGMENT_FILES_H_
