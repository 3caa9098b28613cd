#include "core/shortlist/kinds/index_file.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "core/base/aligned_buffer.h"
#include "core/base/status.h"
#include "core/base/views.h"
#include "core/shortlist/ivf/ivf_training.h"
#include "core/shortlist/ivf/list_index.h"
#include "core/shortlist/kinds/flat_index.h"
#include "core/shortlist/kinds/hnsw_index.h"
#include "core/shortlist/kinds/lsh_index.h"
#include "core/shortlist/kinds/pq_index.h"

namespace attendant {
namespace {

void SaveFlat(const FlatIndex& index, std::int64_t row_count, ByteSink& sink) {
  sink.Put(index.dim());
  std::vector<std::uint8_t> keyed(static_cast<std::size_t>(row_count));
  for (std::size_t r = 0; r < keyed.size(); ++r) {
    keyed[r] = index.Key(static_cast<RowIndex>(r)).empty() ? 0 : 1;
  }
  sink.PutArray(std::span<const std::uint8_t>(keyed));
  for (std::size_t r = 0; r < keyed.size(); ++r) {
    sink.PutBytes(std::as_bytes(index.Key(static_cast<RowIndex>(r))));
  }
}

absl::StatusOr<std::shared_ptr<const KeyIndex>> LoadFlat(
    ByteSource& source, std::int64_t row_count) {
  const auto dim = source.Get<std::int64_t>();
  const auto keyed = source.GetArray<std::vector<std::uint8_t>>();
  if (dim < 1 || dim > kMaxDimension ||
      static_cast<std::int64_t>(keyed.size()) != row_count) {
    return absl::DataLossError("keys of no dimension or another number");
  }
  // Checked before room is allocated for keys that are not there.
  const auto key_count = static_cast<std::uint64_t>(
      std::ranges::count_if(keyed, [](std::uint8_t has) { return has != 0; }));
  const std::uint64_t key_bytes =
      static_cast<std::uint64_t>(dim) * sizeof(float);
  if (key_count > source.left() / key_bytes) {
    return absl::DataLossError("it has more keys than are left");
  }
  auto index =
      std::make_shared<FlatIndex>(dim, std::max<std::int64_t>(1, row_count));
  std::vector<float> key(static_cast<std::size_t>(dim));
  for (const std::uint8_t has_key : keyed) {
    if (has_key != 0) {
      source.GetBytes(std::as_writable_bytes(std::span(key)));
    }
    index->Append(has_key != 0 ? std::span<const float>(key)
                               : std::span<const float>());
  }
  ATTENDANT_RETURN_IF_ERROR(source.status());
  return index;
}

void SaveLists(const ListIndex& index, ByteSink& sink) {
  sink.Put(index.training()->id);
  index.lists().Save(sink);
  sink.Put(index.values() != nullptr);
  if (index.values() != nullptr) index.values()->Save(sink);
}

absl::StatusOr<std::shared_ptr<const KeyIndex>> LoadLists(
    ByteSource& source, std::int64_t row_count,
    std::span<const std::shared_ptr<const IvfTraining>> trainings,
    ScratchFiles* key_files) {
  const auto id = source.Get<std::uint64_t>();
  const auto training = std::ranges::find_if(
      trainings, [id](const auto& known) { return known->id == id; });
  if (training == trainings.end()) {
    return absl::DataLossError("it was trained by what is not there");
  }
  ATTENDANT_ASSIGN_OR_RETURN(InvertedLists lists,
                             InvertedLists::Load(source, (*training)->means,
                                                 (*training)->seed, key_files));
  ATTENDANT_RETURN_IF_ERROR(lists.CheckRows(row_count));
  std::optional<ListValues> values;
  if (source.Get<bool>()) {
    ATTENDANT_ASSIGN_OR_RETURN(
        values, ListValues::Load(source, lists, (*training)->seed));
  }
  ATTENDANT_RETURN_IF_ERROR(source.status());
  return std::make_shared<ListIndex>(std::move(lists), row_count, *training,
                                     std::move(values));
}

bool AreNumbers(std::span<const float> numbers) {
  return std::ranges::none_of(numbers,
                              [](float number) { return std::isnan(number); });
}

// True if there is at least one depth and neighbour counts ascend strictly: no
// line can be drawn between equal ones.
bool AreDepths(std::span<const ProbeDepth> depths) {
  std::int64_t last = 0;
  for (const ProbeDepth& depth : depths) {
    if (depth.neighbour_count <= last || depth.probe_count < 1) return false;
    last = depth.neighbour_count;
  }
  return last > 0;
}

}  // namespace

std::shared_ptr<const IvfTraining> SavedTrainingOf(const KeyIndex& index) {
  if (index.kind() != IndexKind::kIvf) return nullptr;
  return index.training();
}

std::uint64_t IdOf(const IvfTraining& training) { return training.id; }

std::int64_t LearnedCountOf(const IvfTraining& training) {
  return training.mass->learned_count();
}

void SaveTraining(const IvfTraining& training, ByteSink& sink) {
  sink.Put(training.id);
  sink.Put(training.score_kind);
  sink.Put(training.seed);
  sink.Put(training.key_count);
  sink.Put(training.square_distance);
  training.means->Save(sink);
  const Calibration& calibration = training.calibration;
  sink.Put(training.target_recall);
  sink.Put(calibration.probe_count);
  sink.Put(calibration.recall);
  sink.PutArray(std::span<const float>(calibration.recalls));
  sink.PutArray(std::span<const ProbeDepth>(calibration.depths));
  sink.PutArray(std::span<const float>(calibration.margins));
  sink.PutArray(std::span<const float>(calibration.blend_margins));
  sink.Put(calibration.far_peak);
  sink.Put(calibration.near_peak);
  training.mass->Load()->Save(sink);
}

absl::StatusOr<std::shared_ptr<const IvfTraining>> LoadTraining(
    ByteSource& source) {
  auto training = std::make_shared<IvfTraining>();
  training->id = source.Get<std::uint64_t>();
  training->score_kind = source.Get<ScoreKind>();
  training->seed = source.Get<std::uint64_t>();
  training->key_count = source.Get<std::int64_t>();
  training->square_distance = source.Get<double>();
  ATTENDANT_ASSIGN_OR_RETURN(training->means,
                             ListMeans::Load(source, training->seed));
  const ListMeans& means = *training->means;
  Calibration& calibration = training->calibration;
  training->target_recall = source.Get<double>();
  calibration.probe_count = source.Get<std::int64_t>();
  calibration.recall = source.Get<double>();
  calibration.recalls = source.GetArray<std::vector<float>>();
  calibration.depths = source.GetArray<std::vector<ProbeDepth>>();
  calibration.margins = source.GetArray<std::vector<float>>();
  calibration.blend_margins = source.GetArray<std::vector<float>>();
  calibration.far_peak = source.Get<float>();
  calibration.near_peak = source.Get<float>();
  ATTENDANT_RETURN_IF_ERROR(source.status());
  const bool fits =
      training->key_count >= 1 && training->target_recall > 0 &&
      training->target_recall <= 1 && AreNumbers(calibration.margins) &&
      AreNumbers(calibration.blend_margins) &&
      calibration.blend_margins.size() == calibration.margins.size() &&
      calibration.far_peak <= calibration.near_peak &&

      (calibration.margins.empty() ||
       calibration.margins.size() == Calibration::kRecallSteps) &&
      calibration.probe_count >= 1 &&
      calibration.probe_count <= means.list_count() &&
      AreDepths(calibration.depths) && !calibration.recalls.empty();
  if (!fits) return absl::DataLossError("it is no training of lists");
  training->mass = std::make_unique<LearnedMass>(
      UnscoredMass::Load(source, means.list_count(), means.dim, training->seed),
      means.dim);
  ATTENDANT_RETURN_IF_ERROR(source.status());
  training->assigner = std::make_unique<const ListAssigner>(
      means, training->score_kind == ScoreKind::kCosine);
  return training;
}

void SaveIndex(const KeyIndex& index, std::int64_t row_count, ByteSink& sink) {
  sink.Put(index.kind());
  switch (index.kind()) {
    case IndexKind::kFlat:
      return SaveFlat(static_cast<const FlatIndex&>(index), row_count, sink);
    case IndexKind::kHnsw:
      return static_cast<const HnswIndex&>(index).Save(sink);
    case IndexKind::kLsh:
      return static_cast<const LshIndex&>(index).Save(sink);
    case IndexKind::kPq:
      return static_cast<const PqIndex&>(index).Save(sink);
    default:
      return SaveLists(static_cast<const ListIndex&>(index), sink);
  }
}

absl::StatusOr<std::shared_ptr<const KeyIndex>> LoadIndex(
    ByteSource& source, std::int64_t row_count,
    std::span<const std::shared_ptr<const IvfTraining>> trainings,
    ScratchFiles* key_files) {
  const auto kind = source.Get<IndexKind>();
  ATTENDANT_RETURN_IF_ERROR(source.status());
  switch (kind) {
    case IndexKind::kFlat:
      return LoadFlat(source, row_count);
    case IndexKind::kIvf:
      return LoadLists(source, row_count, trainings, key_files);
    case IndexKind::kHnsw:
      return HnswIndex::Load(source, row_count);
    case IndexKind::kLsh:
      return LshIndex::Load(source, row_count);
    case IndexKind::kPq:
      return PqIndex::Load(source, row_count, key_files);
    default:
      return absl::DataLossError("it is no index");
  }
}

}  // namespace attendant
