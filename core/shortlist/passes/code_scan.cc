#include "core/shortlist/passes/code_scan.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "core/base/aligned_buffer.h"
#include "core/kernels/code_blocks.h"
#include "core/kernels/sort.h"

namespace attendant {
namespace {

// Keys whose logits are held at once for all queries. Chunks are whole blocks;
// a list may begin within a block.
constexpr std::int64_t kChunkKeys = CodePass::kTakeKeys;
// Queries that share a chunk: their logits fill a quarter of a megabyte, which
// stays in the second-level cache.
constexpr std::size_t kMaxQueries = 64;
// Chunks between two checks of the interrupts.
constexpr std::int64_t kPollChunks = 8;

// Reads chunks of codes for several queries at a time. Not thread-safe.
class ChunkReader {
 public:
  explicit ChunkReader(const InvertedLists& lists) : lists_(lists) {}

  // Calls take(visit, logits) with the logits of keys [begin, end), which lie
  // in one chunk, for all visits, at most kMaxQueries. Their passes must read
  // the same bits. `next` is the first key of the next call.
  template <typename Take>
  void Read(std::int64_t begin, std::int64_t end, std::int64_t next,
            std::span<ListVisit* const> visits, Take take) {
    thread_local AlignedBuffer<float> logits(kMaxQueries * kChunkKeys);
    for (std::size_t v = 0; v < visits.size(); ++v) {
      queries_[v] = visits[v]->pass->coded().view();
    }
    const std::int64_t first_block = begin / kCodeRows;
    const std::int64_t block_count =
        (end + kCodeRows - 1) / kCodeRows - first_block;
    lists_.codes.Logits({queries_, visits.size()}, visits[0]->pass->bits(),
                        first_block, block_count, next / kCodeRows, kChunkKeys,
                        logits.data());
    const std::int64_t offset = begin - first_block * kCodeRows;
    for (std::size_t v = 0; v < visits.size(); ++v) {
      take(*visits[v],
           logits.data() + static_cast<std::int64_t>(v) * kChunkKeys + offset);
    }
  }

 private:
  const InvertedLists& lists_;
  CodeQuery queries_[kMaxQueries];
};

// Returns the end of the chunk of key `begin`, if the chunk starts with its
// block.
std::int64_t ChunkEnd(std::int64_t begin, std::int64_t end) {
  return std::min(end, begin / kCodeRows * kCodeRows + kChunkKeys);
}

// Prefetches the part of a list that is read first; the rest is prefetched
// while the list is read.
void PrefetchHead(const InvertedLists& lists, std::int32_t list,
                  CodeBits bits) {
  constexpr std::int64_t kHeadBytes = 8192;  // of a plane
  const auto at = static_cast<std::size_t>(list);
  const std::int64_t plane_bytes = CodePlaneBytes(lists.codes.step_count());
  const std::int64_t begin = lists.offsets[at] / kCodeRows;
  const std::int64_t end =
      std::min((lists.offsets[at + 1] + kCodeRows - 1) / kCodeRows,
               begin + std::max<std::int64_t>(1, kHeadBytes / plane_bytes));
  for (std::int64_t block = begin; block < end; ++block) {
    lists.codes.PrefetchBlock(block, bits);
  }
  lists.codes.PrefetchScales(
      lists.offsets[at],
      std::min(lists.offsets[at + 1],
               lists.offsets[at] + kHeadBytes / std::int64_t{sizeof(float)}));
}

// Makes the pass take keys [begin, end), except those of the visit's lists. The
// first key is in `list`, and `logits` are theirs. Calls for a visit must be in
// the order of keys, starting with next_own == 0.
void TakeOthers(const InvertedLists& lists, std::int64_t list,
                std::int64_t begin, std::int64_t end, float* logits,
                ListVisit& visit) {
  for (std::int64_t at = begin; at < end;) {
    std::int64_t own_begin = end;
    std::int64_t own_end = end;
    if (visit.next_own < visit.lists.size()) {
      const auto own = static_cast<std::size_t>(visit.lists[visit.next_own]);
      own_begin = std::min(end, lists.offsets[own]);
      own_end = std::min(end, lists.offsets[own + 1]);
      if (lists.offsets[own + 1] <= end) ++visit.next_own;
    }
    if (own_begin > at) {
      while (lists.offsets[static_cast<std::size_t>(list) + 1] <= at) ++list;
      visit.pass->Take(list, at, own_begin - at, logits + (at - begin));
    }
    at = std::max(at, own_end);
  }
}

// Keys [begin, end) of one chunk, and the visits that take some of them;
// nobody takes others of the chunk.
struct Stretch {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::int64_t chunk_end = 0;
  std::vector<ListVisit*> visits;
};

// Widens the stretch, which is in a chunk that begins at `begin`, by the keys
// that the visit takes in that chunk. Calls for a visit must be in the order of
// chunks, starting with next_ahead == 0.
void Widen(const InvertedLists& lists, std::int64_t begin, ListVisit& visit,
           Stretch& stretch) {
  const auto begin_of = [&](std::size_t own) {
    return lists.offsets[static_cast<std::size_t>(visit.lists[own])];
  };
  const auto end_of = [&](std::size_t own) {
    return lists.offsets[static_cast<std::size_t>(visit.lists[own]) + 1];
  };
  const std::int64_t end = stretch.chunk_end;
  std::size_t& own = visit.next_ahead;
  std::int64_t first = begin;
  for (; own < visit.lists.size() && begin_of(own) <= first; ++own) {
    first = std::max(first, end_of(own));
    if (first >= end) return;
  }
  // Where the visit's last key in the chunk ends.
  std::int64_t last = end;
  std::int64_t left_out_end = first;
  for (; own < visit.lists.size() && begin_of(own) < end; ++own) {
    if (begin_of(own) > left_out_end) last = begin_of(own);
    left_out_end = end_of(own);
    if (left_out_end >= end) break;
  }
  if (left_out_end < end) last = end;
  stretch.begin = std::min(stretch.begin, first);
  stretch.end = std::max(stretch.end, last);
  stretch.visits.push_back(&visit);
}

// Sets `stretch` to the next from the chunk at `begin` on, or to no visits.
void FindStretch(const InvertedLists& lists, std::int64_t begin,
                 std::span<ListVisit* const> visits, Stretch& stretch) {
  stretch.visits.clear();
  for (; begin < lists.key_count() && stretch.visits.empty();
       begin = stretch.chunk_end) {
    stretch.chunk_end = ChunkEnd(begin, lists.key_count());
    stretch.begin = stretch.chunk_end;
    stretch.end = begin;
    for (ListVisit* visit : visits) Widen(lists, begin, *visit, stretch);
  }
}

void PollAll(std::vector<ListVisit*>& visits) {
  std::erase_if(visits, [](ListVisit* visit) {
    visit->status = visit->pass->Poll();
    return !visit->status.ok();
  });
}

}  // namespace

void TakeLists(const InvertedLists& lists, std::span<ListVisit* const> visits) {
  // Each turn is a list and, in the low half, a visit that takes it; turns are
  // in the order of lists.
  thread_local std::vector<std::uint64_t> turns;
  thread_local std::vector<ListVisit*> together;
  turns.clear();
  for (std::size_t v = 0; v < visits.size(); ++v) {
    for (const std::int32_t list : visits[v]->lists) {
      turns.push_back(static_cast<std::uint64_t>(list) << 32 | v);
    }
  }
  if (visits.size() > 1) SortAscending(std::span(turns));
  const auto list_of = [](std::uint64_t turn) {
    return static_cast<std::int32_t>(turn >> 32);
  };
  ChunkReader reader(lists);
  std::int64_t chunk_count = 0;
  if (!turns.empty()) {
    PrefetchHead(lists, list_of(turns.front()), visits[0]->pass->bits());
  }
  for (std::size_t t = 0; t < turns.size();) {
    const std::int32_t list = list_of(turns[t]);
    together.clear();
    for (; t < turns.size() && list_of(turns[t]) == list &&
           together.size() < kMaxQueries;
         ++t) {
      ListVisit* visit = visits[turns[t] & 0xffffffff];
      if (!visit->status.ok()) continue;
      if (!visit->knows_products) visit->pass->ScoreList(list);
      together.push_back(visit);
    }
    const std::int64_t end = lists.offsets[static_cast<std::size_t>(list) + 1];
    std::int64_t next_list = end;
    if (t < turns.size()) {
      const auto next = static_cast<std::size_t>(list_of(turns[t]));
      next_list = lists.offsets[next];
      lists.codes.PrefetchScales(next_list, lists.offsets[next + 1]);
    }
    for (std::int64_t begin = lists.offsets[list]; begin < end;
         begin = ChunkEnd(begin, end)) {
      if (++chunk_count % kPollChunks == 0) PollAll(together);
      if (together.empty()) break;
      const std::int64_t chunk_end = ChunkEnd(begin, end);
      reader.Read(begin, chunk_end, chunk_end < end ? chunk_end : next_list,
                  together, [&](ListVisit& visit, float* logits) {
                    visit.pass->Take(list, begin, chunk_end - begin, logits);
                  });
    }
  }
}

void TakeOtherLists(const InvertedLists& lists,
                    std::span<ListVisit* const> visits) {
  ChunkReader reader(lists);
  thread_local std::vector<CodePass*> passes;
  for (std::size_t first = 0; first < visits.size(); first += kMaxQueries) {
    const std::size_t count = std::min(kMaxQueries, visits.size() - first);
    std::vector<ListVisit*> together(visits.begin() + first,
                                     visits.begin() + first + count);
    passes.clear();
    for (ListVisit* visit : together) {
      visit->next_own = 0;
      visit->next_ahead = 0;
      if (!visit->knows_products) passes.push_back(visit->pass);
    }
    CodePass::ScoreAllLists(passes);
    std::int64_t list = 0;
    std::int64_t chunk_count = 0;
    thread_local Stretch now;
    thread_local Stretch next;
    FindStretch(lists, 0, together, now);
    while (!now.visits.empty() && !together.empty()) {
      FindStretch(lists, now.chunk_end, together, next);
      while (lists.offsets[static_cast<std::size_t>(list) + 1] <= now.begin) {
        ++list;
      }
      if (++chunk_count % kPollChunks == 0) PollAll(together);
      reader.Read(now.begin, now.end,
                  next.visits.empty() ? now.end : next.begin, now.visits,
                  [&](ListVisit& visit, float* logits) {
                    TakeOthers(lists, list, now.begin, now.end, logits, visit);
                  });
      std::swap(now, next);
    }
  }
}

}  // namespace attendant
