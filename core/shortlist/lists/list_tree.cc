#include "core/shortlist/lists/list_tree.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "core/base/spare_time.h"
#include "core/kernels/kernels.h"

namespace attendant {
namespace {

// Clusters of lists while they are merged, stored without gaps.
class Clusters {
 public:
  Clusters(MatrixView means, std::span<const std::int64_t> key_counts)
      : dim_(means.dim),
        means_(means.data, means.data + means.row_count * means.dim),
        key_counts_(key_counts.begin(), key_counts.end()),
        nodes_(key_counts.size()),
        products_(key_counts.size()) {
    std::iota(nodes_.begin(), nodes_.end(), 0);
    for (std::size_t c = 0; c < nodes_.size(); ++c) {
      square_norms_.push_back(SquareNorm(c));
    }
  }

  std::size_t size() const { return nodes_.size(); }
  std::int32_t node(std::size_t c) const { return nodes_[c]; }

  struct Neighbour {
    std::size_t cluster = 0;
    double cost = std::numeric_limits<double>::infinity();
  };

  // Returns the cluster that costs least to merge with c; `preferred` if no
  // other costs less.
  Neighbour NearestOf(std::size_t c, std::size_t preferred) {
    ActiveKernels().DotRows(Mean(c), means_.data(),
                            static_cast<std::int64_t>(size()), dim_,
                            products_.data());
    Neighbour nearest;
    if (preferred != c) nearest = {preferred, Cost(c, preferred)};
    for (std::size_t other = 0; other < size(); ++other) {
      const double cost = Cost(c, other);
      if (cost < nearest.cost && other != c) nearest = {other, cost};
    }
    return nearest;
  }

  // Merges clusters a < b into `node` of the tree, which takes the place of a;
  // the last cluster takes the place of b.
  void Merge(std::size_t a, std::size_t b, std::int32_t node) {
    const double count = key_counts_[a] + key_counts_[b];
    const double share = count > 0 ? key_counts_[b] / count : 0.5;
    const auto width = static_cast<std::size_t>(dim_);
    for (std::size_t d = 0; d < width; ++d) {
      means_[a * width + d] = static_cast<float>(
          (1 - share) * means_[a * width + d] + share * means_[b * width + d]);
    }
    key_counts_[a] = count;
    nodes_[a] = node;
    square_norms_[a] = SquareNorm(a);
    const std::size_t last = size() - 1;
    if (b < last) {
      std::copy_n(Mean(last), width, means_.data() + b * width);
      key_counts_[b] = key_counts_[last];
      nodes_[b] = nodes_[last];
      square_norms_[b] = square_norms_[last];
    }
    nodes_.pop_back();
  }

 private:
  const float* Mean(std::size_t c) const {
    return means_.data() + c * static_cast<std::size_t>(dim_);
  }
  double SquareNorm(std::size_t c) const {
    float square = 0;
    ActiveKernels().DotRows(Mean(c), Mean(c), 1, dim_, &square);
    return square;
  }
  // Returns the cost of merging `other` with c, for which products_ were
  // computed last.
  double Cost(std::size_t c, std::size_t other) const {
    const double count = key_counts_[c] + key_counts_[other];
    if (count == 0) return 0;
    const double square_distance =
        std::max(0.0, square_norms_[c] + square_norms_[other] -
                          2 * double{products_[other]});
    const double cost =
        key_counts_[c] * key_counts_[other] / count * square_distance;
    // Means may be so large that their products overflow.
    return std::isfinite(cost) ? cost : std::numeric_limits<double>::max();
  }

  const std::int64_t dim_;
  std::vector<float> means_;  // [size, dim]
  std::vector<double> key_counts_;
  std::vector<std::int32_t> nodes_;
  std::vector<double> square_norms_;
  std::vector<float> products_;
};

// A node of the tree. Lists come first, then the nodes they are merged into.
struct Node {
  std::int32_t first = -1;
  std::int32_t second = -1;
  double cost = 0;
};

// Returns all nodes, each after the nodes it was made of.
std::vector<Node> MakeNodes(MatrixView means,
                            std::span<const std::int64_t> key_counts) {
  std::vector<Node> nodes(key_counts.size());
  Clusters clusters(means, key_counts);
  // Each cluster in the chain is followed by its nearest one, until two are
  // each other's nearest.
  std::vector<std::int32_t> chain;
  std::vector<std::size_t> cluster_of(2 * key_counts.size());
  std::iota(cluster_of.begin(), cluster_of.end(), 0);
  while (clusters.size() > 1) {
    MakeWay();
    if (chain.empty()) chain.push_back(clusters.node(0));
    const std::int32_t top = chain.back();
    const std::size_t c = cluster_of[top];
    const std::size_t before =
        chain.size() > 1 ? cluster_of[chain[chain.size() - 2]] : c;
    const Clusters::Neighbour nearest = clusters.NearestOf(c, before);
    if (chain.size() == 1 || nearest.cluster != before) {
      const std::int32_t next = clusters.node(nearest.cluster);
      // A merged cluster lies no nearer than its parts did, except for
      // rounding, which may lead a chain back to where it was. From there it
      // continues elsewhere, since each step costs less than the one before.
      chain.erase(std::ranges::find(chain, next), chain.end());
      chain.push_back(next);
      continue;
    }
    chain.resize(chain.size() - 2);
    const auto node = static_cast<std::int32_t>(nodes.size());
    const auto cost_of = [&nodes](std::int32_t n) { return nodes[n].cost; };
    // Rounding must not make a node cheaper than its parts.
    nodes.push_back({clusters.node(before), top,
                     std::max({nearest.cost, cost_of(top),
                               cost_of(clusters.node(before))})});
    const std::size_t kept = std::min(c, before);
    const std::size_t other = std::max(c, before);
    clusters.Merge(kept, other, node);
    cluster_of[node] = kept;
    if (other < clusters.size()) {
      cluster_of[clusters.node(other)] = other;
    }
  }
  return nodes;
}

}  // namespace

ListTree::ListTree(MatrixView means, std::span<const std::int64_t> key_counts)
    : places_(key_counts.size()) {
  const std::vector<Node> nodes = MakeNodes(means, key_counts);
  const std::size_t list_count = key_counts.size();
  // Numbers of lists below each node, then the place of its first list.
  std::vector<std::int32_t> sizes(nodes.size(), 1);
  for (std::size_t n = list_count; n < nodes.size(); ++n) {
    sizes[n] = sizes[nodes[n].first] + sizes[nodes[n].second];
  }
  std::vector<std::int32_t> begins(nodes.size(), 0);
  for (std::size_t n = nodes.size(); n-- > list_count;) {
    const auto first = static_cast<std::size_t>(nodes[n].first);
    const auto second = static_cast<std::size_t>(nodes[n].second);
    begins[first] = begins[n];
    begins[second] = begins[n] + sizes[first];
  }
  std::copy_n(begins.begin(), list_count, places_.begin());
  for (std::size_t n = list_count; n < nodes.size(); ++n) {
    merges_.push_back({begins[nodes[n].second], nodes[n].cost});
  }
  // A stable sort keeps a merge after the merges of its parts, since it costs
  // no less.
  std::ranges::stable_sort(
      merges_, [](const Merge& a, const Merge& b) { return a.cost < b.cost; });
}

std::vector<std::int32_t> ListTree::Cut(std::int64_t count) const {
  const auto list_count = static_cast<std::int32_t>(places_.size());
  std::vector<std::int32_t> begins = {0};
  for (std::size_t m = places_.size() - static_cast<std::size_t>(count);
       m < merges_.size(); ++m) {
    begins.push_back(merges_[m].boundary);
  }
  std::ranges::sort(begins);
  begins.push_back(list_count);
  return begins;
}

}  // namespace attendant
