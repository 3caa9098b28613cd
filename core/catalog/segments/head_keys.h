// The keys that a model makes of an item's key: one a head, made once when the
// item is written.
#ifndef ATTENDANT_CORE_CATALOG_SEGMENTS_HEAD_KEYS_H_
#define ATTENDANT_CORE_CATALOG_SEGMENTS_HEAD_KEYS_H_

#include <cstdint>

#include "core/attention/models/model.h"
#include "core/base/index_kind.h"
#include "core/shortlist/scan/key_index.h"

namespace attendant {

// Keys that are stored for an item under a model: one a head, W_K k + b_K, for
// multi-head attention; one, U k, for an additive network; none for a bilinear
// form, which projects the query, or without a model.
int StoredHeadCount(const AttentionModel* model);

// True if keys are to be projected, or dropped, when one model takes the place
// of the other.
bool ChangesStoredKeys(const AttentionModel* a, const AttentionModel* b);

// Components of all stored keys of an item together.
std::int64_t StoredDim(const AttentionModel* model);

// What all stored keys of an item are, one after the other.
KeyProjection StoredProjection(const AttentionModel& model);

// What one head makes of a key, head in [0, StoredHeadCount).
KeyProjection HeadProjection(const AttentionModel& model, int head);

// The index that items' own keys are in under a model, where the field wants
// one: queries go to the heads of multi-head attention instead.
IndexKind KeyIndexKind(const AttentionModel* model, IndexKind wanted);

// The same of head keys: no index knows how an additive network ranks.
IndexKind HeadIndexKind(const AttentionModel* model, IndexKind wanted);

}  // namespace attendant

#endif  // ATTENDANT_CORE_CATALOG_SEGMENTS_HEAD_KEYS_H_
