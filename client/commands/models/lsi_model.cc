#include "client/commands/models/lsi_model.h"

#include <cmath>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/api/client.h"
#include "client/commands/fits/model_directory.h"
#include "client/files/input.h"
#include "client/files/json.h"
#include "client/files/npy.h"
#include "core/attention/models/model.h"
#include "core/base/status.h"

namespace attendant {
namespace {

// Returns e where the keys of the fit are V diag(s^e).
absl::StatusOr<int> ScaleExponent(const std::string& directory,
                                  const nlohmann::json& fit) {
  const std::string path = PathIn(directory, kModelFile);
  if (TextOf(fit, "kind") != "lsi") {
    return FileError(path, "want the model of `attendant fit lsi`");
  }
  const std::string scale = TextOf(fit, "scale");
  if (scale == "none") return 0;
  if (scale == "singular") return 1;
  if (scale == "inverse") return -1;
  return FileError(path, absl::StrCat("fit.scale: got '", scale,
                                      "', want none, singular or inverse"));
}

// Returns the factor of each column of the keys.
absl::StatusOr<std::vector<double>> ColumnFactors(const std::string& directory,
                                                  std::int64_t dim,
                                                  int exponent) {
  if (exponent == 0) {
    return std::vector<double>(static_cast<std::size_t>(dim), 1.0);
  }
  const std::string path = PathIn(directory, kSingularValuesFile);
  ATTENDANT_ASSIGN_OR_RETURN(const std::unique_ptr<VectorFile> file,
                             OpenNpy(path));
  if (file->dim() != dim || file->row_count() != 1) {
    return FileError(
        path, absl::StrCat("want ", dim, " singular values, one a column of ",
                           kKeysFile));
  }
  std::vector<float> values(static_cast<std::size_t>(dim));
  ATTENDANT_RETURN_IF_ERROR(file->ReadRow(0, values));
  std::vector<double> factors;
  for (const float value : values) {
    if (!(value > 0)) {
      return FileError(path, absl::StrCat("got a singular value of ", value,
                                          ", want > 0: fit with a --dim of at "
                                          "most the rank of the events"));
    }
    factors.push_back(std::pow(static_cast<double>(value), exponent));
  }
  return factors;
}

}  // namespace

absl::StatusOr<v1::AttentionModel> LsiAttentionModel(
    const std::string& directory, bool scaled) {
  ATTENDANT_ASSIGN_OR_RETURN(const Model fitted, ReadModel(directory));
  ATTENDANT_ASSIGN_OR_RETURN(const int exponent,
                             ScaleExponent(directory, fitted.fit));
  const std::string path = PathIn(directory, kKeysFile);
  ATTENDANT_ASSIGN_OR_RETURN(const std::unique_ptr<VectorFile> keys,
                             OpenNpy(path));
  const std::int64_t dim = keys->dim();
  const std::int64_t item_count = keys->row_count();
  if (dim != fitted.key_field.dimension()) {
    return FileError(path, absl::StrCat("got rows of ", dim, ", want ",
                                        fitted.key_field.dimension(), ", as ",
                                        kModelFile, " says"));
  }
  // A request holds two matrices, their sizes and a name.
  constexpr std::int64_t kMaxWeights =
      (Client::kLargestMessageBytes - (64 << 10)) /
      (2 * static_cast<std::int64_t>(sizeof(float)));
  if (item_count > kMaxModelDimension || item_count * dim > kMaxWeights) {
    return FileError(
        path, absl::StrCat("got ", item_count, " items of ", dim,
                           " components, want at most ", kMaxModelDimension,
                           " items and ", kMaxWeights, " components in all"));
  }
  ATTENDANT_ASSIGN_OR_RETURN(
      const std::vector<double> factors,
      ColumnFactors(directory, dim, (scaled ? -1 : 0) - exponent));
  std::vector<float> weights(static_cast<std::size_t>(dim * item_count));
  std::vector<float> row(static_cast<std::size_t>(dim));
  for (std::int64_t item = 0; item < item_count; ++item) {
    ATTENDANT_RETURN_IF_ERROR(keys->ReadRow(item, row));
    for (std::int64_t d = 0; d < dim; ++d) {
      const auto column = static_cast<std::size_t>(d);
      weights[d * item_count + item] =
          static_cast<float>(row[column] * factors[column]);
    }
  }
  v1::AttentionModel model;
  v1::MultiHeadProjections* heads = model.mutable_multi_head();
  heads->set_head_count(1);
  v1::Matrix* query = heads->mutable_query()->mutable_weight();
  query->set_row_count(static_cast<std::int32_t>(dim));
  query->set_column_count(static_cast<std::int32_t>(item_count));
  query->set_float32_le(weights.data(), weights.size() * sizeof(float));
  *heads->mutable_key() = heads->query();
  return model;
}

}  // namespace attendant
