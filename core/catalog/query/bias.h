// Terms that items' attributes add to their logits: popularity, recency.
#ifndef ATTENDANT_CORE_CATALOG_QUERY_BIAS_H_
#define ATTENDANT_CORE_CATALOG_QUERY_BIAS_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "core/catalog/query/attend.h"
#include "core/catalog/rows/row_table.h"
#include "core/shortlist/scan/key_index.h"

namespace attendant {

// One BiasTerm, resolved: factor x number, or for a timestamp, factor x max(0,
// now - timestamp in seconds).
struct ResolvedBias {
  int attribute = 0;
  double factor = 1;
  bool is_age = false;
};

// Resolves `terms` against the schema. InvalidArgument, naming biases[i], if a
// term does not fit; ResourceExhausted if there are more than kMaxBiasCount.
absl::StatusOr<std::vector<ResolvedBias>> ResolveBiases(
    const CatalogSchema& schema, const std::vector<BiasTerm>& terms);

// The biases of one segment's rows, summed in doubles. `biases` and `rows` must
// outlive the object. Thread-safe.
class RowBias : public LogitBias {
 public:
  RowBias(const std::vector<ResolvedBias>& biases, absl::Time now,
          const RowTable& rows);

  void AddTo(const RowIndex* rows, std::int64_t n,
             float* logits) const override;

 private:
  const std::vector<ResolvedBias>& biases_;
  const double now_seconds_;  // since 1970
  const RowTable& rows_;
};

}  // namespace attendant

#endif  // ATTENDANT_CORE_CATALOG_QUERY_BIAS_H_
