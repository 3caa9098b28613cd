#include <cblas.h>
#include <lapacke.h>

#include <algorithm>
#include <cstddef>
#include <string>

#include "absl/strings/str_cat.h"
#include "bench/data/gzip.h"
#include "bench/data/source.h"
#include "core/base/status.h"

namespace attendant {
namespace {

constexpr std::int64_t kPixels = 784;  // 28 x 28
constexpr std::int64_t kDim = 128;
// IDX header: a magic number and three dimensions.
constexpr std::size_t kHeaderBytes = 16;

// Returns [count, kPixels], each in 0 to 255.
absl::StatusOr<std::vector<double>> ReadImages(const std::string& name,
                                               std::size_t count) {
  const std::string path =
      absl::StrCat("/usr/share/datasets/fashion-mnist/", name, ".gz");
  ATTENDANT_ASSIGN_OR_RETURN(const std::string bytes, ReadGzip(path));
  if (bytes.size() < kHeaderBytes + count * kPixels) {
    return absl::DataLossError(
        absl::StrCat(path, ": fewer than ", count, " images"));
  }
  std::vector<double> pixels(count * kPixels);
  for (std::size_t i = 0; i < pixels.size(); ++i) {
    pixels[i] = static_cast<unsigned char>(bytes[kHeaderBytes + i]);
  }
  return pixels;
}

std::vector<double> Mean(const std::vector<double>& images) {
  std::vector<double> mean(kPixels);
  for (std::size_t i = 0; i < images.size(); ++i) {
    mean[i % kPixels] += images[i];
  }
  const double count = static_cast<double>(images.size()) / kPixels;
  for (double& pixel : mean) pixel /= count;
  return mean;
}

// Returns the eigenvectors of the kDim greatest eigenvalues, [kDim, kPixels].
absl::StatusOr<std::vector<double>> Components(
    const std::vector<double>& centred) {
  std::vector<double> covariance(kPixels * kPixels);
  const auto count = static_cast<blasint>(centred.size() / kPixels);
  cblas_dsyrk(CblasRowMajor, CblasLower, CblasTrans, kPixels, count, 1,
              centred.data(), kPixels, 0, covariance.data(), kPixels);
  std::vector<double> eigenvalues(kPixels);
  // Rows of the column-major result are columns of the row-major one.
  if (LAPACKE_dsyev(LAPACK_COL_MAJOR, 'V', 'U', kPixels, covariance.data(),
                    kPixels, eigenvalues.data()) != 0) {
    return absl::InternalError("no principal components of Fashion-MNIST");
  }
  return std::vector<double>(covariance.end() - kDim * kPixels,
                             covariance.end());
}

std::vector<float> Project(const std::vector<double>& images,
                           const std::vector<double>& components) {
  const auto count = static_cast<blasint>(images.size() / kPixels);
  std::vector<double> rows(static_cast<std::size_t>(count) * kDim);
  cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasTrans, count, kDim, kPixels, 1,
              images.data(), kPixels, components.data(), kPixels, 0,
              rows.data(), kDim);
  std::vector<float> floats(rows.begin(), rows.end());
  NormaliseRows(kDim, floats);
  return floats;
}

void Centre(const std::vector<double>& mean, std::vector<double>& images) {
  for (std::size_t i = 0; i < images.size(); ++i) {
    images[i] -= mean[i % kPixels];
  }
}

}  // namespace

absl::StatusOr<Vectors> ReadFashionMnist() {
  ATTENDANT_ASSIGN_OR_RETURN(std::vector<double> keys,
                             ReadImages("train-images-idx3-ubyte", 60000));
  ATTENDANT_ASSIGN_OR_RETURN(
      std::vector<double> queries,
      ReadImages("t10k-images-idx3-ubyte", kDataQueryCount));
  const std::vector<double> mean = Mean(keys);
  Centre(mean, keys);
  Centre(mean, queries);
  ATTENDANT_ASSIGN_OR_RETURN(const std::vector<double> components,
                             Components(keys));
  Vectors vectors;
  vectors.dim = kDim;
  vectors.keys = Project(keys, components);
  vectors.queries = Project(queries, components);
  return vectors;
}

}  // namespace attendant
