// Computes logits from a query and keys, in the same way for every index and
// for single rows.
#ifndef ATTENDANT_CORE_SHORTLIST_SCAN_KEY_SCORER_H_
#define ATTENDANT_CORE_SHORTLIST_SCAN_KEY_SCORER_H_

#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "core/shortlist/scan/key_index.h"

namespace attendant {

// InvalidArgument naming "biases": adding the bias made a finite logit
// overflow.
absl::Status BiasOverflows();

// Scores keys for one query. A key's logit depends only on the query, the key
// and its bias: its bytes are the same whatever else is scored with it.
// Allocates only in the constructor, and only with a projection. Not
// thread-safe.
class KeyScorer {
 public:
  // `query` and everything it points to must outlive the object.
  explicit KeyScorer(const ScanQuery& query);

  // InvalidArgument if the logit factor overflows a float.
  absl::Status Validate() const;

  // True if similarities are made from the query's products with the keys as an
  // index holds them; several queries may then compute products together.
  static bool TakesDots(const ScanQuery& query) {
    return query.projection == nullptr &&
           query.score_kind != ScoreKind::kAdditive;
  }

  // Number of floats of a key as an index holds it.
  std::int64_t key_dim() const { return key_dim_; }

  // Sets similarities[i] for n keys; key i is at keys + i * key_dim and has
  // inverse norm inverse_norms[i].
  void Similarities(const float* keys, const float* inverse_norms,
                    std::int64_t n, float* similarities);

  // As Similarities for the keys at these positions of `keys` and
  // `inverse_norms`, in any order.
  void SimilaritiesAt(const float* keys, const float* inverse_norms,
                      std::span<const std::int32_t> positions,
                      float* similarities);

  // Turns products as given by Kernels::DotRows into similarities, in place;
  // gives the same bytes as Similarities. Requires TakesDots.
  void FromDots(const float* inverse_norms, std::int64_t n, float* dots) const;

  // Sets logits[i] for n rows with these similarities. LogitOverflows of
  // "query", or BiasOverflows, if a logit is not finite.
  absl::Status Logits(const float* similarities, const RowIndex* rows,
                      std::int64_t n, float* logits) const;

 private:
  // Keys projected at a time: this many rows of kMaxDimension take 1 MiB.
  static constexpr std::int64_t kProjectedRows = 32;

  // Scores keys of dim_ floats.
  void Score(const float* keys, const float* inverse_norms, std::int64_t n,
             float* similarities) const;

  const ScanQuery& query_;
  const std::int64_t dim_;  // of the query, and of projected keys
  const std::int64_t key_dim_;
  const float factor_;
  std::vector<float> projected_;  // [kProjectedRows, dim]
};

// Sets logits and similarities [n] of single rows, scored from their fp32 keys;
// both are -infinity if a row has no key. Ignores the query's masks and
// row_end. Errors as KeyIndex::Scan.
absl::Status ScoreRows(const KeyIndex& index, const ScanQuery& query,
                       std::span<const RowIndex> rows,
                       std::span<float> similarities, std::span<float> logits);

}  // namespace attendant

#endif  // ATTENDANT_CORE_SHORTLIST_SCAN_KEY_SCORER_H_
