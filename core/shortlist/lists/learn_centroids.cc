#include "core/shortlist/lists/learn_centroids.h"

#include <faiss/Clustering.h>
#include <faiss/Index.h>
#include <omp.h>

#include <algorithm>
#include <exception>
#include <memory>
#include <new>
#include <stdexcept>

#include "absl/strings/str_cat.h"
#include "core/shortlist/builds/for_each_part.h"
#include "core/shortlist/builds/guard_build.h"
#include "core/shortlist/lists/nearest_centroid.h"

namespace attendant {
namespace {

constexpr int kIterations = 10;

// While this lives, FAISS's parallel regions run in the calling thread alone.
// The setting belongs to the calling thread; other threads are not affected.
class SingleThreadedOpenMp {
 public:
  SingleThreadedOpenMp() : thread_count_(omp_get_max_threads()) {
    omp_set_num_threads(1);
  }
  ~SingleThreadedOpenMp() { omp_set_num_threads(thread_count_); }
  SingleThreadedOpenMp(const SingleThreadedOpenMp&) = delete;
  SingleThreadedOpenMp& operator=(const SingleThreadedOpenMp&) = delete;

 private:
  const int thread_count_;
};

struct CancelledBuild : std::exception {};

// Finds nearest centroids for FAISS's k-means by our kernels, which are several
// times faster than Debian's SSE2 build and do not call BLAS, whose threads
// would be beyond our control.
class CentroidTable : public faiss::Index {
 public:
  CentroidTable(MatrixView rows, const LearnOptions& options)
      : faiss::Index(rows.dim, faiss::METRIC_L2),
        options_(options),
        rows_(rows),
        coded_rows_(rows, options.thread_count) {}

  void add(idx_t n, const float* x) override {
    centroids_.insert(centroids_.end(), x, x + n * d);
    ntotal += n;
    nearest_ = std::make_unique<NearestCentroid>(
        MatrixView{centroids_.data(), ntotal, d});
  }

  void reset() override {
    nearest_.reset();
    centroids_.clear();
    ntotal = 0;
  }

  // In k-means k is 1, and x holds all rows. FAISS adds up the distances for
  // callers who want to see how they decrease; nothing here uses them.
  void search(idx_t n, const float* x, idx_t, float* distances, idx_t* labels,
              const faiss::SearchParameters*) const override {
    if (x != rows_.data || n != rows_.row_count) {
      throw std::logic_error("k-means took other rows");
    }
    std::fill_n(distances, n, 0.0f);
    ForEachPart(n, options_.thread_count, [&](idx_t begin, idx_t end) {
      SearchPart(begin, end, labels);
    });
  }

 private:
  void SearchPart(idx_t begin, idx_t end, idx_t* labels) const {
    NearestCentroid::Scratch scratch;
    std::int32_t nearest[NearestCentroid::kBlockRows];
    for (; begin < end; begin += NearestCentroid::kBlockRows) {
      if (IsCancelled(options_.cancelled)) throw CancelledBuild();
      const idx_t count =
          std::min<idx_t>(NearestCentroid::kBlockRows, end - begin);
      nearest_->Find({rows_.data + begin * d, count, d}, coded_rows_, begin,
                     nearest, scratch);
      std::copy_n(nearest, count, labels + begin);
    }
  }

  const LearnOptions& options_;
  const MatrixView rows_;
  const CodedRows coded_rows_;
  std::vector<float> centroids_;
  std::unique_ptr<NearestCentroid> nearest_;
};

}  // namespace

absl::StatusOr<std::vector<float>> LearnCentroids(MatrixView rows,
                                                  const LearnOptions& options) {
  try {
    const SingleThreadedOpenMp single_threaded;
    faiss::ClusteringParameters parameters;
    parameters.niter = kIterations;
    parameters.spherical = options.spherical;
    parameters.seed = static_cast<int>(options.seed & 0x7fffffff);
    // The caller chose the sample: FAISS must not warn of a small one (it would
    // print the warning), nor cut a large one.
    parameters.min_points_per_centroid = 1;
    parameters.max_points_per_centroid =
        static_cast<int>(rows.row_count / options.centroid_count + 1);
    faiss::Clustering clustering(static_cast<int>(rows.dim),
                                 static_cast<int>(options.centroid_count),
                                 parameters);
    CentroidTable table(rows, options);
    clustering.train(rows.row_count, rows.data, table);
    return std::move(clustering.centroids);
  } catch (const CancelledBuild&) {
    return BuildCancelled();
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError("out of memory while clustering keys");
  } catch (const std::exception& e) {
    return absl::InternalError(absl::StrCat("clustering failed: ", e.what()));
  }
}

}  // namespace attendant
