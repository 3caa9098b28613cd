#include "core/shortlist/kinds/graph_walk.h"

#include <algorithm>
#include <functional>

#include "core/base/status.h"
#include "core/kernels/prefetch.h"

namespace attendant {
namespace {

// Number of keys that are prefetched ahead.
constexpr std::size_t kAhead = 16;
constexpr std::size_t kInterruptKeys = 1024;

std::span<const std::int32_t> LinksOf(const faiss::HNSW& graph,
                                      std::int32_t position, int level) {
  std::size_t begin = 0, end = 0;
  graph.neighbor_range(position, level, &begin, &end);
  std::size_t count = 0;
  const std::int32_t* links = &graph.neighbors[begin];
  while (count < end - begin && links[count] >= 0) ++count;
  return {links, count};
}

void Prefetch(const KeyRows& keys, std::int32_t position) {
  const std::span<const float> key = keys.keys().Row(position);
  PrefetchRow(key.data(), static_cast<std::int64_t>(key.size()));
}

float SimilarityOf(const KeyRows& keys, std::int32_t position,
                   KeyScorer& scorer) {
  float similarity = 0;
  const auto at = static_cast<std::size_t>(position);
  scorer.Similarities(keys.keys().Row(position).data(),
                      keys.inverse_norms().data() + at, 1, &similarity);
  return similarity;
}

}  // namespace

absl::Status GraphWalk::Run(const KeyGraph& graph, const KeyRows& keys,
                            const ScanQuery& query, std::int64_t width) {
  visited_.Reset(keys.key_count());
  similarities_.clear();
  waiting_.clear();
  best_.clear();
  exhausted_ = false;
  KeyScorer scorer(query);
  return WalkLowest(graph, keys, query, scorer, Descend(graph, keys, scorer),
                    width);
}

std::int32_t GraphWalk::Descend(const KeyGraph& graph, const KeyRows& keys,
                                KeyScorer& scorer) const {
  const faiss::HNSW& entrance = graph.entrance();
  std::int32_t at = entrance.entry_point;
  float similarity = SimilarityOf(keys, at, scorer);
  for (int level = entrance.max_level; level > 0; --level) {
    for (bool moved = true; moved;) {
      moved = false;
      const std::span<const std::int32_t> links = LinksOf(entrance, at, level);
      for (const std::int32_t link : links) Prefetch(keys, link);
      for (const std::int32_t link : links) {
        const float other = SimilarityOf(keys, link, scorer);
        if (other > similarity) {
          similarity = other;
          at = link;
          moved = true;
        }
      }
    }
  }
  return at;
}

absl::Status GraphWalk::WalkLowest(const KeyGraph& graph, const KeyRows& keys,
                                   const ScanQuery& query, KeyScorer& scorer,
                                   std::int32_t entry, std::int64_t width) {
  const auto most = static_cast<std::size_t>(width);
  const auto score = [&](std::int32_t position) {
    const Candidate candidate = {SimilarityOf(keys, position, scorer),
                                 position};
    similarities_.push_back(candidate.first);
    if (best_.size() == most) {
      if (!(candidate > best_.front())) return;
      std::ranges::pop_heap(best_, std::greater<>());
      best_.back() = candidate;
    } else {
      best_.push_back(candidate);
    }
    std::ranges::push_heap(best_, std::greater<>());
    waiting_.push_back(candidate);
    std::ranges::push_heap(waiting_);
  };
  visited_.Add(entry);
  score(entry);
  std::size_t next_check = 0;
  while (!waiting_.empty()) {
    if (similarities_.size() >= next_check && query.interrupt != nullptr) {
      ATTENDANT_RETURN_IF_ERROR(query.interrupt->Check());
      next_check = similarities_.size() + kInterruptKeys;
    }
    const Candidate nearest = waiting_.front();
    if (best_.size() == most && nearest < best_.front()) {
      return absl::OkStatus();
    }
    std::ranges::pop_heap(waiting_);
    waiting_.pop_back();
    next_.clear();
    const auto meet = [&](const faiss::HNSW& links) {
      for (const std::int32_t link : LinksOf(links, nearest.second, 0)) {
        if (visited_.Add(link)) next_.push_back(link);
      }
    };
    meet(graph.by_angle);
    if (graph.by_product) meet(*graph.by_product);
    for (std::size_t i = 0; i < std::min(next_.size(), kAhead); ++i) {
      Prefetch(keys, next_[i]);
    }
    for (std::size_t i = 0; i < next_.size(); ++i) {
      if (i + kAhead < next_.size()) Prefetch(keys, next_[i + kAhead]);
      score(next_[i]);
    }
  }
  // Dropped candidates may lead to more keys; if none were dropped, the walk
  // has reached everything.
  exhausted_ = best_.size() < most;
  return absl::OkStatus();
}

}  // namespace attendant
