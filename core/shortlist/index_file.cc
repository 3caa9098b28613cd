#include "core/shortlist/index_file.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "core/base/aligned_buffer.h"
#include "core/base/status.h"
#include "core/shortlist/flat_index.h"
#include "core/shortlist/ivf_training.h"
#include "core/shortlist/list_index.h"

namespace attendant {
namespace {

// Of a dimension of keys (see Rotation, KeyCodes).
constexpr std::int64_t kMaxDimension = 8192;

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

absl::StatusOr<std::shared_ptr<const KeyIndex>> LoadLists(
    ByteSource& source, std::int64_t row_count,
    std::span<const std::shared_ptr<const IvfTraining>> trainings,
    ScratchFiles* key_files) {
  const auto id = source.Get<std::uint64_t>();
  const auto training =
      std::find_if(trainings.begin(), trainings.end(),
                   [id](const auto& known) { return known->id == id; });
  if (training == trainings.end()) {
    return absl::DataLossError("it was trained by what is not there");
  }
  ATTENDANT_ASSIGN_OR_RETURN(InvertedLists lists,
                             InvertedLists::Load(source, (*training)->means,
                                                 (*training)->seed, key_files));
  for (const RowIndex row : lists.rows) {
    if (row < 0 || row >= row_count) {
      return absl::DataLossError("it has keys of rows that there are not");
    }
  }
  std::optional<ListValues> values;
  if (source.Get<bool>()) {
    ATTENDANT_ASSIGN_OR_RETURN(
        values, ListValues::Load(source, lists, (*training)->seed));
  }
  ATTENDANT_RETURN_IF_ERROR(source.status());
  return std::make_shared<ListIndex>(std::move(lists), row_count, *training,
                                     std::move(values));
}

}  // namespace

bool CanSave(const KeyIndex& index) {
  return index.kind() == IndexKind::kFlat || index.kind() == IndexKind::kIvf;
}

std::shared_ptr<const IvfTraining> SavedTrainingOf(const KeyIndex& index) {
  if (index.kind() != IndexKind::kIvf) return nullptr;
  return index.training();
}

std::uint64_t IdOf(const IvfTraining& training) { return training.id; }

void SaveTraining(const IvfTraining& training, ByteSink& sink) {
  sink.Put(training.id);
  sink.Put(training.score_kind);
  sink.Put(training.seed);
  sink.Put(training.key_count);
  sink.Put(training.square_distance);
  sink.Put(training.means->dim);
  sink.PutArray(training.means->means.span());
  sink.PutArray(std::span<const float>(training.means->reaches));
  sink.PutArray(std::span<const float>(training.means->counts));
  const Calibration& calibration = training.calibration;
  sink.Put(training.target_recall);
  sink.Put(calibration.probe_count);
  sink.Put(calibration.recall);
  sink.PutArray(std::span<const float>(calibration.recalls));
  sink.PutArray(std::span<const ProbeDepth>(calibration.depths));
  sink.PutArray(std::span<const float>(calibration.margins));
  training.unscored_mass.Save(sink);
}

absl::StatusOr<std::shared_ptr<const IvfTraining>> LoadTraining(
    ByteSource& source) {
  auto training = std::make_shared<IvfTraining>();
  training->id = source.Get<std::uint64_t>();
  training->score_kind = source.Get<ScoreKind>();
  training->seed = source.Get<std::uint64_t>();
  training->key_count = source.Get<std::int64_t>();
  training->square_distance = source.Get<double>();
  auto means = std::make_shared<ListMeans>();
  means->dim = source.Get<std::int64_t>();
  means->means = source.GetArray<AlignedBuffer<float>>();
  means->reaches = source.GetArray<std::vector<float>>();
  means->counts = source.GetArray<std::vector<float>>();
  Calibration& calibration = training->calibration;
  training->target_recall = source.Get<double>();
  calibration.probe_count = source.Get<std::int64_t>();
  calibration.recall = source.Get<double>();
  calibration.recalls = source.GetArray<std::vector<float>>();
  calibration.depths = source.GetArray<std::vector<ProbeDepth>>();
  calibration.margins = source.GetArray<std::vector<float>>();
  ATTENDANT_RETURN_IF_ERROR(source.status());
  const bool fits =
      means->dim >= 1 && means->dim <= kMaxDimension &&
      means->list_count() >= 1 && training->key_count >= 1 &&
      means->means.size() ==
          means->reaches.size() * static_cast<std::size_t>(means->dim) &&
      means->counts.size() == means->reaches.size() &&
      training->target_recall > 0 && training->target_recall <= 1 &&
      std::none_of(calibration.margins.begin(), calibration.margins.end(),
                   [](float margin) { return std::isnan(margin); }) &&
      (calibration.margins.empty() ||
       calibration.margins.size() == Calibration::kRecallSteps) &&
      calibration.probe_count >= 1 &&
      calibration.probe_count <= means->list_count() &&
      !calibration.depths.empty() && !calibration.recalls.empty() &&
      std::any_of(means->reaches.begin(), means->reaches.end(),
                  ListMeans::IsPromise);
  if (!fits) return absl::DataLossError("it is no training of lists");
  training->unscored_mass =
      UnscoredMass::Load(source, means->list_count(), means->dim);
  ATTENDANT_RETURN_IF_ERROR(source.status());
  means->codes = KeyCodes(means->view(), {}, training->seed);
  training->assigner = std::make_unique<const ListAssigner>(
      *means, training->score_kind == ScoreKind::kCosine);
  training->means = std::move(means);
  return training;
}

void SaveIndex(const KeyIndex& index, std::int64_t row_count, ByteSink& sink) {
  sink.Put(index.kind());
  if (index.kind() == IndexKind::kFlat) {
    SaveFlat(static_cast<const FlatIndex&>(index), row_count, sink);
    return;
  }
  const auto& lists = static_cast<const ListIndex&>(index);
  sink.Put(lists.training()->id);
  lists.lists().Save(sink);
  sink.Put(lists.values() != nullptr);
  if (lists.values() != nullptr) lists.values()->Save(sink);
}

absl::StatusOr<std::shared_ptr<const KeyIndex>> LoadIndex(
    ByteSource& source, std::int64_t row_count,
    std::span<const std::shared_ptr<const IvfTraining>> trainings,
    ScratchFiles* key_files) {
  const auto kind = source.Get<IndexKind>();
  ATTENDANT_RETURN_IF_ERROR(source.status());
  if (kind == IndexKind::kFlat) return LoadFlat(source, row_count);
  if (kind == IndexKind::kIvf) {
    return LoadLists(source, row_count, trainings, key_files);
  }
  return absl::DataLossError("it is no index that is kept in a file");
}

}  // namespace attendant
