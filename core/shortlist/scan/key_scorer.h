// From a query and keys to logits, the same for every index and for single
// rows.
#ifndef ATTENDANT_CORE_SHORTLIST_SCAN_KEY_SCORER_H_
#define ATTENDANT_CORE_SHORTLIST_SCAN_KEY_SCORER_H_

#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "core/shortlist/scan/key_index.h"

namespace attendant {

// InvalidArgument naming "biases": a logit that was finite without its bias is
// not with it.
absl::Status BiasOverflows();

// Scores keys for one query. A key's logit depends on nothing but the query,
// the key and its bias: the same bytes whatever is scored beside it. Allocates
// when made with a projection, and never after. Not thread-safe.
class KeyScorer {
 public:
  // `query`, and all that it points to, must outlive the object.
  explicit KeyScorer(const ScanQuery& query);

  // InvalidArgument if the logit factor is beyond a float.
  absl::Status Validate() const;

  // True if similarities are made of the query's products with the keys as an
  // index holds them, which several queries may take together.
  static bool TakesDots(const ScanQuery& query) {
    return query.projection == nullptr &&
           query.score_kind != ScoreKind::kAdditive;
  }

  // Floats of a key as an index holds it.
  std::int64_t key_dim() const { return key_dim_; }

  // similarities[i] of n keys, key i at keys + i * key_dim with inverse norm
  // inverse_norms[i].
  void Similarities(const float* keys, const float* inverse_norms,
                    std::int64_t n, float* similarities);

  // The same of keys at these positions of `keys` and `inverse_norms`, in any
  // order.
  void SimilaritiesAt(const float* keys, const float* inverse_norms,
                      std::span<const std::int32_t> positions,
                      float* similarities);

  // Makes similarities of products as Kernels::DotRows gives them, in place:
  // the bytes that Similarities gives. TakesDots.
  void FromDots(const float* inverse_norms, std::int64_t n, float* dots) const;

  // logits[i] of n rows with these similarities. LogitOverflows of "query", or
  // BiasOverflows, if one is not finite.
  absl::Status Logits(const float* similarities, const RowIndex* rows,
                      std::int64_t n, float* logits) const;

 private:
  // Projected at a time: so many rows of kMaxDimension are 1 MiB.
  static constexpr std::int64_t kProjectedRows = 32;

  // Of keys of dim floats.
  void Score(const float* keys, const float* inverse_norms, std::int64_t n,
             float* similarities) const;

  const ScanQuery& query_;
  const std::int64_t dim_;  // of the query, and of keys once projected
  const std::int64_t key_dim_;
  const float factor_;
  std::vector<float> projected_;  // [kProjectedRows, dim]
};

// Logits and similarities [n] of single rows, scored from their fp32 keys;
// where a row has no key both are -infinity. Masks and row_end of the query are
// not looked at. Errors as KeyIndex::Scan.
absl::Status ScoreRows(const KeyIndex& index, const ScanQuery& query,
                       std::span<const RowIndex> rows,
                       std::span<float> similarities, std::span<float> logits);

}  // namespace attendant

#endif  // ATTENDANT_CORE_SHORTLIST_SCAN_KEY_SCORER_H_
