// Indexes as bytes, so that they need not be built again. Internal.
#ifndef ATTENDANT_CORE_SHORTLIST_KINDS_INDEX_FILE_H_
#define ATTENDANT_CORE_SHORTLIST_KINDS_INDEX_FILE_H_

#include <cstdint>
#include <memory>
#include <span>

#include "absl/status/statusor.h"
#include "core/base/byte_stream.h"
#include "core/base/scratch_files.h"
#include "core/shortlist/scan/key_index.h"

namespace attendant {

struct IvfTraining;

// The bytes are those of this processor and this version of the program: a
// cache, whose checksum is the caller's. What is read is checked as far as a
// wrong size could lead astray.

// The training that goes along with an index: that of IVF; null for others.
std::shared_ptr<const IvfTraining> SavedTrainingOf(const KeyIndex& index);
std::uint64_t IdOf(const IvfTraining& training);
// Raised whenever SaveTraining would write what queries have taught it since.
std::int64_t LearnedCountOf(const IvfTraining& training);

void SaveTraining(const IvfTraining& training, ByteSink& sink);
// DataLoss if it is none.
absl::StatusOr<std::shared_ptr<const IvfTraining>> LoadTraining(
    ByteSource& source);

// An index of row_count rows. Its training is named, and not saved.
void SaveIndex(const KeyIndex& index, std::int64_t row_count, ByteSink& sink);
// DataLoss if it is none, or none of these trainings is its. key_files: where
// the floats of an IVF or PQ index go; null: into memory. Errors of
// ScratchFiles; throws std::bad_alloc.
absl::StatusOr<std::shared_ptr<const KeyIndex>> LoadIndex(
    ByteSource& source, std::int64_t row_count,
    std::span<const std::shared_ptr<const IvfTraining>> trainings,
    ScratchFiles* key_files);

}  // namespace attendant

#endif  // ATTENDANT_CORE_SHORTLIST_KINDS_INDEX_FILE_H_
