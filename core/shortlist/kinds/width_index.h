// Base of the indexes that find more keys the wider they look. Internal.
#ifndef ATTENDANT_CORE_SHORTLIST_KINDS_WIDTH_INDEX_H_
#define ATTENDANT_CORE_SHORTLIST_KINDS_WIDTH_INDEX_H_

#include <cstdint>
#include <span>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/shortlist/kinds/width_search.h"
#include "core/shortlist/scan/key_index.h"

namespace attendant {

// Implements Public, the interface of one kind of index, around a WidthSearch.
// Derived classes define what a width finds, and the memory that takes.
template <typename Public, IndexKind Kind>
class WidthIndex : public Public {
 public:
  explicit WidthIndex(WidthSearch search) : search_(std::move(search)) {}

  IndexKind kind() const override { return Kind; }
  std::int64_t dim() const override { return keys().dim(); }
  std::span<const float> Key(RowIndex row) const override {
    return keys().KeyOf(row);
  }
  std::uint64_t Keyed(std::int64_t w, std::uint64_t rows) const override {
    return keys().Keyed(w, rows);
  }
  float inverse_norm(RowIndex row) const override {
    return keys().inverse_norm(row);
  }
  double max_norm() const override { return keys().max_norm(); }
  IndexTuning tuning() const override { return search_.tuning(); }
  absl::StatusOr<ScanStats> Scan(const ScanQuery& query,
                                 AttentionState& state) const override {
    return search_.Scan(
        query, state,
        [this](const ScanQuery& asked, const KeyRows::Eligible& eligible,
               std::int64_t width, FoundKeys& found) {
          return Find(asked, eligible, width, found);
        });
  }
  void Save(ByteSink& sink) const override {
    search_.Save(sink);
    SaveFinder(sink);
  }
  MemoryParts memory() const override {
    MemoryParts parts = keys().memory();
    parts += finder_memory();
    return parts;
  }

 protected:
  const KeyRows& keys() const { return search_.keys(); }
  bool finds() const { return search_.finds(); }

 private:
  // As WidthSearch::Find.
  virtual absl::Status Find(const ScanQuery& query,
                            const KeyRows::Eligible& eligible,
                            std::int64_t width, FoundKeys& found) const = 0;
  // Saves the structure by which keys are found; and the memory it takes.
  virtual void SaveFinder(ByteSink& sink) const = 0;
  virtual MemoryParts finder_memory() const = 0;

  const WidthSearch search_;
};

}  // namespace attendant

#endif  // ATTENDANT_CORE_SHORTLIST_KINDS_WIDTH_INDEX_H_
