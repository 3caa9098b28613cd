// Serialised indexes, so that they need not be built again. Internal.
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

// The bytes are specific to this processor and to this version of the program:
// they are a cache, whose checksum is up to the caller. Loading checks only for
// wrong sizes that could lead out of bounds.

// The training that is saved along with an index: that of IVF; null for other
// kinds.
std::shared_ptr<const IvfTraining> SavedTrainingOf(const KeyIndex& index);
std::uint64_t IdOf(const IvfTraining& training);
// Increases whenever queries have taught the training something that
// SaveTraining has not written yet.
std::int64_t LearnedCountOf(const IvfTraining& training);

void SaveTraining(const IvfTraining& training, ByteSink& sink);
// DataLoss if the bytes are no training.
absl::StatusOr<std::shared_ptr<const IvfTraining>> LoadTraining(
    ByteSource& source);

// Saves an index of row_count rows. Stores the id of its training, not the
// training itself.
void SaveIndex(const KeyIndex& index, std::int64_t row_count, ByteSink& sink);
// DataLoss if the bytes are no index, or its training is not in `trainings`.
// key_files: where the floats of an IVF or PQ index go; null: into memory.
// Errors as ScratchFiles; throws std::bad_alloc.
absl::StatusOr<std::shared_ptr<const KeyIndex>> LoadIndex(
    ByteSource& source, std::int64_t row_count,
    std::span<const std::shared_ptr<const IvfTraining>> trainings,
    ScratchFiles* key_files);

}  // namespace attendant

#endif  // ATTENDANT_CORE_SHORTLIST_KINDS_INDEX_FILE_H_
