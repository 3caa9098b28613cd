// The keys that a model computes from an item's key: one per head, computed
// once when the item is written.
#ifndef ATTENDANT_CORE_CATALOG_SEGMENTS_HEAD_KEYS_H_
#define ATTENDANT_CORE_CATALOG_SEGMENTS_HEAD_KEYS_H_

#include <cstdint>

#include "core/attention/models/model.h"
#include "core/base/index_kind.h"
#include "core/shortlist/scan/key_index.h"

namespace attendant {

// The number of keys stored for an item under a model: one per head, W_K k +
// b_K, for multi-head attention; one, U k, for an additive network; none for a
// bilinear form, which projects the query, or without a model.
int StoredHeadCount(const AttentionModel* model);

// True if replacing one model by the other requires stored keys to be projected
// again or dropped.
bool ChangesStoredKeys(const AttentionModel* a, const AttentionModel* b);

// Returns the number of components of all stored keys of an item together.
std::int64_t StoredDim(const AttentionModel* model);

// Returns the projection from a key to all stored keys of an item,
// concatenated.
KeyProjection StoredProjection(const AttentionModel& model);

// Returns the projection of one head, `head` in [0, StoredHeadCount).
KeyProjection HeadProjection(const AttentionModel& model, int head);

// Returns the kind of index for items' own keys under a model, where the field
// wants kind `wanted`. With multi-head attention queries use the heads' indexes
// instead.
IndexKind KeyIndexKind(const AttentionModel* model, IndexKind wanted);

// Returns the kind of index for head keys, likewise. No index supports the
// ranking of an additive network.
IndexKind HeadIndexKind(const AttentionModel* model, IndexKind wanted);

}  // namespace attendant

#endif  // ATTENDANT_CORE_CATALOG_SEGMENTS_HEAD_KEYS_H_
