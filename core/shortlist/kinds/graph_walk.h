// A walk over a graph of near keys. Internal.
#ifndef ATTENDANT_CORE_SHORTLIST_KINDS_GRAPH_WALK_H_
#define ATTENDANT_CORE_SHORTLIST_KINDS_GRAPH_WALK_H_

#include <faiss/impl/HNSW.h>

#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "core/shortlist/kinds/key_rows.h"
#include "core/shortlist/scan/key_index.h"
#include "core/shortlist/scan/key_scorer.h"
#include "core/shortlist/scan/visited_keys.h"

namespace attendant {

// Links between keys, by position: graphs built by FAISS, of which GraphWalk
// reads only the links.
struct KeyGraph {
  faiss::HNSW by_angle;
  // Set if norms differ.
  std::optional<faiss::HNSW> by_product;

  // The graph in which walks start.
  const faiss::HNSW& entrance() const {
    return by_product ? *by_product : by_angle;
  }
};

// Algorithms 2 and 5 of Malkov, Yashunin 2018, for one query at a time.
// Reusable for other queries, and keeps its memory. Not thread-safe.
class GraphWalk {
 public:
  // Descends the entrance graph to its lowest level, then follows the lowest
  // links of all graphs from the best `width` candidates, width >= 1.
  // Similarities are KeyScorer's. Ignores masks. Returns the error of the
  // query's interrupt, if any.
  absl::Status Run(const KeyGraph& graph, const KeyRows& keys,
                   const ScanQuery& query, std::int64_t width);

  // Positions scored on the lowest level, each once, in the order of the walk,
  // and their similarities.
  std::span<const std::int32_t> positions() const {
    return visited_.positions();
  }
  std::span<const float> similarities() const { return similarities_; }
  bool Scored(std::int32_t position) const { return visited_.Has(position); }
  // True if a wider walk would reach no more keys.
  bool exhausted() const { return exhausted_; }

 private:
  using Candidate = std::pair<float, std::int32_t>;  // similarity, position

  // Returns the best position that a greedy walk over the upper levels finds.
  std::int32_t Descend(const KeyGraph& graph, const KeyRows& keys,
                       KeyScorer& scorer) const;
  absl::Status WalkLowest(const KeyGraph& graph, const KeyRows& keys,
                          const ScanQuery& query, KeyScorer& scorer,
                          std::int32_t entry, std::int64_t width);

  VisitedKeys visited_;
  std::vector<float> similarities_;
  std::vector<Candidate> waiting_;  // heap, best in front
  std::vector<Candidate> best_;     // heap, worst in front
  std::vector<std::int32_t> next_;  // scratch
  bool exhausted_ = false;
};

}  // namespace attendant

#endif  // ATTENDANT_CORE_SHORTLIST_KINDS_GRAPH_WALK_H_
