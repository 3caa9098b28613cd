// TF-IDF (Salton, Buckley 1988), shared by the encoder and its fit so that an
// item's text and the same text in a query have the same weights.
#ifndef ATTENDANT_CORE_ENCODE_TF_IDF_H_
#define ATTENDANT_CORE_ENCODE_TF_IDF_H_

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"

namespace attendant {

using TermPositions = absl::flat_hash_map<std::string, std::int32_t>;
// (term position, weight), by ascending position.
using TermWeights = std::vector<std::pair<std::int32_t, double>>;

// Returns (1 + log(count)) x idf of the terms that are in `positions`,
// normalised to Euclidean norm 1; empty if there are none, or none with an idf
// > 0.
TermWeights WeighTerms(const std::vector<std::string>& terms,
                       const TermPositions& positions,
                       std::span<const float> idf);

// Divides by the Euclidean norm; clears the weights if all are 0.
void Normalise(TermWeights& weights);

// Returns the sum of weight x row of projection [terms, dim]: dim floats.
std::vector<float> FoldIn(const TermWeights& weights,
                          std::span<const float> projection, std::int64_t dim);

}  // namespace attendant

#endif  // ATTENDANT_CORE_ENCODE_TF_IDF_H_
