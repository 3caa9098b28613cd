#include "core/shortlist/lists/inverted_lists.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "core/attention/softmax/score.h"
#include "core/base/bitmap.h"
#include "core/base/spare_time.h"
#include "core/base/status.h"
#include "core/kernels/kernels.h"
#include "core/shortlist/builds/for_each_part.h"

namespace attendant {

ListSums ListSums::Merged(std::span<const std::int32_t> begins) const {
  const std::size_t dim = sums.size() / squares.size();
  const std::size_t list_count = begins.size() - 1;
  ListSums merged = {.sums = std::vector<double>(list_count * dim),
                     .squares = std::vector<double>(list_count)};
  for (std::size_t m = 0; m < list_count; ++m) {
    const auto end = static_cast<std::size_t>(begins[m + 1]);
    for (auto l = static_cast<std::size_t>(begins[m]); l < end; ++l) {
      for (std::size_t d = 0; d < dim; ++d) {
        merged.sums[m * dim + d] += sums[l * dim + d];
      }
      merged.squares[m] += squares[l];
    }
  }
  return merged;
}

ListSums InvertedLists::SumKeys(bool normalise, int thread_count) const {
  const auto width = static_cast<std::size_t>(dim);
  const auto lists = static_cast<std::size_t>(list_count());
  ListSums sums = {.sums = std::vector<double>(lists * width),
                   .squares = std::vector<double>(lists)};
  const auto sum_list = [&](std::size_t l) {
    double* sum = sums.sums.data() + l * width;
    double square_sum = 0;
    for (std::int64_t p = offsets[l]; p < offsets[l + 1]; ++p) {
      const float* key = keys.runs() + p * dim;
      const double factor = normalise ? inverse_norms[p] : 1;
      for (std::size_t d = 0; d < width; ++d) {
        const double component = factor * key[d];
        sum[d] += component;
        square_sum += component * component;
      }
    }
    sums.squares[l] = square_sum;
  };
  // The parts have equal numbers of keys.
  ForEachPart(key_count(), thread_count,
              [&](std::int64_t begin, std::int64_t end) {
                for (std::int64_t l = ListFrom(begin); l < ListFrom(end); ++l) {
                  MakeWay();
                  sum_list(static_cast<std::size_t>(l));
                }
              });
  return sums;
}

void InvertedLists::Summarise(const ListSums& sums, std::uint64_t seed) {
  auto made = std::make_shared<ListMeans>();
  made->dim = dim;
  const auto width = static_cast<std::size_t>(dim);
  const auto lists = static_cast<std::size_t>(list_count());
  made->means = AlignedBuffer<float>(lists * width);
  // A list without keys promises nothing.
  made->reaches.assign(lists, std::numeric_limits<float>::lowest());
  made->counts.assign(lists, 0);
  for (std::size_t l = 0; l < lists; ++l) {
    const std::int64_t key_count = offsets[l + 1] - offsets[l];
    const auto count =
        static_cast<double>(std::max<std::int64_t>(1, key_count));
    double mean_square = 0;
    for (std::size_t d = 0; d < width; ++d) {
      const double mean = sums.sums[l * width + d] / count;
      made->means[l * width + d] = static_cast<float>(mean);
      mean_square += mean * mean;
    }
    if (key_count == 0) continue;
    made->counts[l] = static_cast<float>(key_count);
    const double variance =
        std::max(0.0, sums.squares[l] / count - mean_square) /
        static_cast<double>(dim);
    made->reaches[l] =
        static_cast<float>(std::sqrt(2 * variance * std::log(count)));
  }
  made->codes = KeyCodes(made->view(), {}, seed);
  means = std::move(made);
}

void InvertedLists::Encode(bool normalise, std::uint64_t seed,
                           int thread_count) {
  codes = KeyCodes(key_runs(),
                   normalise ? std::span<const float>(inverse_norms)
                             : std::span<const float>(),
                   means->view(), offsets, seed, thread_count);
  CountKeys();
  log_counts.clear();
  for (const float count : counts) {
    log_counts.push_back(count == 0 ? -1 : std::log(count));
  }
}

double InvertedLists::max_norm() const {
  if (!codes.usable() || !means->codes.usable()) {
    return std::sqrt(static_cast<double>(dim)) *
           std::numeric_limits<float>::max();
  }
  // Codes are of the differences between keys and their means.
  return KeyCodes::kSlack * (means->codes.max_norm() + codes.max_norm());
}

void InvertedLists::CountKeys() {
  counts.clear();
  for (std::size_t l = 0; l + 1 < offsets.size(); ++l) {
    counts.push_back(static_cast<float>(offsets[l + 1] - offsets[l]));
  }
}

void InvertedLists::Save(ByteSink& sink) const {
  sink.PutArray(std::span<const RowIndex>(rows));
  sink.PutArray(std::span<const std::int64_t>(offsets));
  sink.PutArray(std::span<const float>(inverse_norms));
  sink.PutArray(std::span<const float>(log_counts));
  codes.Save(sink);
  keys.Save(sink, key_count(), dim);
}

absl::StatusOr<InvertedLists> InvertedLists::Load(
    ByteSource& source, std::shared_ptr<const ListMeans> means,
    std::uint64_t seed, ScratchFiles* files) {
  InvertedLists lists;
  lists.dim = means->dim;
  lists.rows = source.GetArray<std::vector<RowIndex>>();
  lists.offsets = source.GetArray<std::vector<std::int64_t>>();
  lists.inverse_norms = source.GetArray<std::vector<float>>();
  lists.log_counts = source.GetArray<std::vector<float>>();
  lists.codes = KeyCodes::Load(source, seed);
  ATTENDANT_RETURN_IF_ERROR(source.status());
  const auto list_count = static_cast<std::size_t>(means->list_count());
  const bool fits =
      lists.offsets.size() == list_count + 1 &&
      lists.log_counts.size() == list_count && lists.offsets.front() == 0 &&
      lists.offsets.back() == lists.key_count() &&
      std::ranges::is_sorted(lists.offsets) &&
      lists.inverse_norms.size() == lists.rows.size() &&
      lists.codes.key_count() == lists.key_count() &&
      lists.codes.dim() == lists.dim && lists.codes.has_low_plane() &&
      lists.codes.TellsRepeatsOf(list_count) &&
      (!lists.codes.usable() || lists.codes.KnowsLists(list_count));
  if (!fits) return absl::DataLossError("its lists are not those of its keys");
  lists.CountKeys();
  lists.means = std::move(means);
  ATTENDANT_ASSIGN_OR_RETURN(
      lists.keys, KeyFloats::Load(source, lists.key_count(), lists.dim, files));
  ATTENDANT_RETURN_IF_ERROR(source.status());
  return lists;
}

absl::Status InvertedLists::CheckRows(std::int64_t row_count) const {
  Bitmap seen(row_count);
  for (const RowIndex row : rows) {
    if (row < 0 || row >= row_count) {
      return absl::DataLossError("it has keys of rows that there are not");
    }
    if (seen.Test(row)) {
      return absl::DataLossError("it has several keys of one row");
    }
    seen.Set(row);
  }
  return absl::OkStatus();
}

// |k - m|^2 = |k|^2 - 2 k . m + |m|^2: in floats accurate to 10^-6 of the
// norms.
double InvertedLists::MeanSquareDistance(bool normalise) const {
  constexpr std::int64_t kBlockKeys = 256;
  float products[kBlockKeys];
  double sum = 0;
  for (std::int64_t l = 0; l < list_count(); ++l) {
    const std::span<const float> mean = means->Mean(l);
    const double mean_norm = Norm(mean);
    const std::int64_t end = offsets[static_cast<std::size_t>(l) + 1];
    std::int64_t count = 0;
    for (std::int64_t begin = offsets[l]; begin < end; begin += count) {
      count = std::min(kBlockKeys, end - begin);
      ActiveKernels().DotRows(mean.data(), keys.runs() + begin * dim, count,
                              dim, products);
      for (std::int64_t i = 0; i < count; ++i) {
        const double inverse = inverse_norms[begin + i];
        const double norm = inverse > 0 ? 1 / inverse : 0;
        const double factor = normalise ? inverse : 1;
        sum += factor * factor * norm * norm - 2 * factor * products[i] +
               mean_norm * mean_norm;
      }
    }
  }
  return key_count() == 0
             ? 0
             : std::max(0.0, sum / static_cast<double>(key_count()));
}

}  // namespace attendant
