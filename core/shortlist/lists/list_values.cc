#include "core/shortlist/lists/list_values.h"

#include <algorithm>
#include <cstddef>

#include "core/base/spare_time.h"
#include "core/base/status.h"

namespace attendant {

ListValues ListValues::OfKeys(const InvertedLists& lists, bool normalised) {
  ListValues values;
  values.are_keys_ = true;
  values.normalised_ = normalised;
  values.dim_ = lists.dim;
  values.list_means_.resize(static_cast<std::size_t>(lists.list_count()));
  for (std::size_t l = 0; l < values.list_means_.size(); ++l) {
    double sum = 0;
    for (std::int64_t p = lists.offsets[l]; p < lists.offsets[l + 1]; ++p) {
      const double inverse = lists.inverse_norms[p];
      if (inverse > 0) sum += 1 / (inverse * inverse);
    }
    const auto count =
        static_cast<double>(lists.offsets[l + 1] - lists.offsets[l]);
    values.list_means_[l].square = sum / std::max(1.0, count);
  }
  values.LearnScales(lists);
  return values;
}

ListValues ListValues::Of(const InvertedLists& lists, const ValueSource& source,
                          std::int64_t value_dim, std::uint64_t seed,
                          int thread_count) {
  ListValues values;
  values.dim_ = value_dim;
  const auto dim = static_cast<std::size_t>(value_dim);
  const auto list_count = static_cast<std::size_t>(lists.list_count());
  AlignedBuffer<float> floats(lists.rows.size() * dim);
  values.means_ = AlignedBuffer<float>(list_count * dim);
  std::vector<double> sum(dim);
  for (std::size_t l = 0; l < list_count; ++l) {
    MakeWay();
    std::ranges::fill(sum, 0);
    double square_sum = 0;
    for (std::int64_t p = lists.offsets[l]; p < lists.offsets[l + 1]; ++p) {
      const auto position = static_cast<std::size_t>(p);
      const float* value = source.ValueOf(lists.rows[position]);
      if (value == nullptr) value = lists.key_runs().Row(p).data();
      std::copy_n(value, dim, floats.data() + position * dim);
      for (std::size_t d = 0; d < dim; ++d) {
        sum[d] += value[d];
        square_sum += double{value[d]} * value[d];
      }
    }
    const double count = std::max(
        1.0, static_cast<double>(lists.offsets[l + 1] - lists.offsets[l]));
    for (std::size_t d = 0; d < dim; ++d) {
      values.means_[l * dim + d] = static_cast<float>(sum[d] / count);
    }
    values.list_means_.push_back({.square = square_sum / count});
  }
  values.codes_ =
      KeyCodes({floats.data(), lists.key_count(), value_dim}, {},
               {values.means_.data(), lists.list_count(), value_dim},
               lists.offsets, seed, thread_count);
  values.codes_.DropLowPlane();
  values.LearnScales(lists);
  return values;
}

void ListValues::LearnScales(const InvertedLists& lists) {
  const std::span<const float> scales = codes(lists).scales();
  for (std::size_t l = 0; l < list_means_.size(); ++l) {
    Means& means = list_means_[l];
    for (std::int64_t p = lists.offsets[l]; p < lists.offsets[l + 1]; ++p) {
      const double scale = scales[p];
      const double norm = NormOf(lists, p);
      means.scale_square_norm += scale * scale * norm;
      means.scale_square_norm_square += scale * scale * norm * norm;
    }
    const double count = std::max(
        1.0, static_cast<double>(lists.offsets[l + 1] - lists.offsets[l]));
    means.scale_square_norm /= count;
    means.scale_square_norm_square /= count;
  }
}

void ListValues::Save(ByteSink& sink) const {
  sink.Put(dim_);
  codes_.Save(sink);
  sink.PutArray(means_.span());
  sink.PutArray(std::span<const Means>(list_means_));
}

absl::StatusOr<ListValues> ListValues::Load(ByteSource& source,
                                            const InvertedLists& lists,
                                            std::uint64_t seed) {
  ListValues values;
  values.dim_ = source.Get<std::int64_t>();
  values.codes_ = KeyCodes::Load(source, seed);
  values.means_ = source.GetArray<AlignedBuffer<float>>();
  values.list_means_ = source.GetArray<std::vector<Means>>();
  ATTENDANT_RETURN_IF_ERROR(source.status());
  const auto list_count = static_cast<std::size_t>(lists.list_count());
  const bool fits = values.codes_.key_count() == lists.key_count() &&
                    values.codes_.dim() == values.dim_ &&
                    values.means_.size() ==
                        list_count * static_cast<std::size_t>(values.dim_) &&
                    values.list_means_.size() == list_count;
  if (!fits) return absl::DataLossError("its values are not those of its keys");
  return values;
}

std::int64_t ListValues::memory_bytes() const {
  return codes_.memory_bytes() +
         static_cast<std::int64_t>(means_.size() * sizeof(float) +
                                   list_means_.size() * sizeof(Means));
}

}  // namespace attendant
