// Any build of FAISS, and a softmax over its results. A configuration is a
// string for FAISS's index factory, optionally followed by a blank and the k
// factor of a refining index: "IVF1024,PQ64x4fs,RFlat 2".
#include <dlfcn.h>
#include <faiss/IndexHNSW.h>
#include <faiss/IndexIVF.h>
#include <faiss/IndexPreTransform.h>
#include <faiss/IndexRefine.h>
#include <faiss/index_factory.h>
#include <faiss/index_io.h>
#include <faiss/utils/utils.h>
#include <omp.h>

#include <chrono>
#include <exception>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "bench/rivals/engine.h"

extern "C" void openblas_set_num_threads(int count);

namespace attendant {
namespace {

// The parts of an index that have search settings; null if absent.
struct Parts {
  faiss::IndexIVF* ivf = nullptr;
  faiss::IndexHNSW* hnsw = nullptr;
  faiss::IndexRefine* refine = nullptr;
};

Parts PartsOf(faiss::Index* index) {
  Parts parts;
  while (index != nullptr) {
    if (auto* transform = dynamic_cast<faiss::IndexPreTransform*>(index)) {
      index = transform->index;
    } else if (auto* refine = dynamic_cast<faiss::IndexRefine*>(index)) {
      parts.refine = refine;
      index = refine->base_index;
    } else {
      parts.ivf = dynamic_cast<faiss::IndexIVF*>(index);
      parts.hnsw = dynamic_cast<faiss::IndexHNSW*>(index);
      break;
    }
  }
  return parts;
}

struct BuiltIndex {
  std::unique_ptr<faiss::Index> index;
  double seconds = 0;
};

class FaissEngine : public Engine {
 public:
  // Returns the headers' version, the file that contains the code (the program,
  // if linked statically), and how that file says it was compiled.
  std::string version() const override {
    Dl_info library = {};
    dladdr(reinterpret_cast<const void*>(&faiss::get_compile_options),
           &library);
    return absl::StrCat(
        "FAISS ", FAISS_VERSION_MAJOR, ".", FAISS_VERSION_MINOR, ".",
        FAISS_VERSION_PATCH, " (",
        std::filesystem::path(library.dli_fname).filename().string(), ", ",
        std::string(absl::StripAsciiWhitespace(faiss::get_compile_options())),
        ")");
  }

  absl::StatusOr<BuildReport> Build(const std::string& configuration,
                                    const DataSet& data,
                                    const std::string& cache) override {
    const std::vector<std::string> words = absl::StrSplit(configuration, ' ');
    float k_factor = 1;
    if (words.size() > 1 && !absl::SimpleAtof(words[1], &k_factor)) {
      return absl::InvalidArgumentError(
          absl::StrCat("no k factor: ", configuration));
    }
    try {
      BuiltIndex& built = built_[words[0]];
      if (built.index == nullptr) built = ReadOrBuild(words[0], data, cache);
      index_ = built.index.get();
      parts_ = PartsOf(index_);
      if (parts_.refine != nullptr) parts_.refine->k_factor = k_factor;
      return BuildReport{.seconds = built.seconds};
    } catch (const std::exception& e) {
      return absl::InternalError(e.what());
    }
  }

  EffortRange efforts() const override {
    if (parts_.hnsw != nullptr) return {kTruthCount, 6400};
    if (parts_.ivf == nullptr) return {1, 1};
    return {1, static_cast<std::int64_t>(parts_.ivf->nlist)};
  }

  std::vector<BatchMode> batch_modes() const override {
    std::vector<BatchMode> modes = {
        {"openmp", 1, 2, 64}, {"threads", 2, 1, 64}, {"singles", 2, 1, 1}};
    // A matrix product, which is faster per query with more queries.
    if (parts_.hnsw == nullptr && parts_.ivf == nullptr) {
      modes.push_back({"openmp-960", 1, 2, 960});
    }
    return modes;
  }

  void Prepare(std::int64_t effort, int engine_threads) override {
    engine_threads_ = engine_threads;
    openblas_set_num_threads(engine_threads);
    if (parts_.ivf != nullptr) {
      parts_.ivf->nprobe = static_cast<std::size_t>(effort);
    }
    if (parts_.hnsw != nullptr) {
      parts_.hnsw->hnsw.efSearch = static_cast<int>(effort);
    }
  }

  void Search(const float* queries, std::int64_t count,
              Answer* answers) override {
    omp_set_num_threads(engine_threads_);  // of the calling thread
    thread_local std::vector<float> similarities;
    thread_local std::vector<std::int64_t> rows;
    const auto size = static_cast<std::size_t>(count * kTruthCount);
    similarities.resize(size);
    rows.resize(size);
    index_->search(count, queries, kTruthCount, similarities.data(),
                   rows.data());
    const auto factor = static_cast<float>(1 / Temperature());
    for (std::int64_t q = 0; q < count; ++q) {
      const std::int64_t* row = rows.data() + q * kTruthCount;
      const float* similarity = similarities.data() + q * kTruthCount;
      Answer& answer = answers[q];
      answer.rows.fill(-1);
      float logits[kTruthCount];
      std::int64_t found = 0;
      while (found < kTruthCount && row[found] >= 0) {
        answer.rows[found] = static_cast<std::int32_t>(row[found]);
        logits[found] = similarity[found] * factor;
        ++found;
      }
      if (found > 0) WeighRows(logits, found, answer);
    }
  }

 private:
  // Reads the index from a file if it was built before, with the build's
  // seconds, which are stored next to it.
  static BuiltIndex ReadOrBuild(const std::string& factory, const DataSet& data,
                                const std::string& cache_prefix) {
    const std::string cache =
        absl::StrCat(cache_prefix, FAISS_VERSION_MAJOR, ".",
                     FAISS_VERSION_MINOR, ".", factory);
    BuiltIndex built;
    if (std::filesystem::exists(cache)) {
      built.index.reset(faiss::read_index(cache.c_str()));
      std::ifstream(cache + ".seconds") >> built.seconds;
      return built;
    }
    omp_set_num_threads(2);
    openblas_set_num_threads(2);
    const auto start = std::chrono::steady_clock::now();
    built.index.reset(faiss::index_factory(static_cast<int>(data.dim),
                                           factory.c_str(),
                                           faiss::METRIC_INNER_PRODUCT));
    const Parts parts = PartsOf(built.index.get());
    if (parts.hnsw != nullptr) parts.hnsw->hnsw.efConstruction = 200;
    built.index->train(data.keys.row_count(), data.keys.data());
    built.index->add(data.keys.row_count(), data.keys.data());
    built.seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start)
            .count();
    // Renames the complete file, so that others never read half of it.
    const std::string temporary = cache + ".part";
    faiss::write_index(built.index.get(), temporary.c_str());
    std::ofstream(cache + ".seconds") << built.seconds;
    std::filesystem::rename(temporary, cache);
    return built;
  }

  std::map<std::string, BuiltIndex> built_;
  faiss::Index* index_ = nullptr;
  Parts parts_;
  int engine_threads_ = 1;
};

}  // namespace
}  // namespace attendant

int main(int argc, char** argv) {
  attendant::FaissEngine engine;
  return attendant::RunEngine(argc, argv, "faiss", engine);
}
