// hnswlib with M 16 and efConstruction 200, and a softmax over its results.
#include <hnswlib/hnswlib.h>

#include <atomic>
#include <chrono>
#include <exception>
#include <filesystem>
#include <fstream>
#include <memory>
#include <thread>

#include "absl/status/status.h"
#include "bench/rivals/engine.h"

namespace attendant {
namespace {

class HnswlibEngine : public Engine {
 public:
  // The headers do not state their version.
  std::string version() const override {
    return "hnswlib, compiled for this processor";
  }

  absl::StatusOr<BuildReport> Build(const std::string&, const DataSet& data,
                                    const std::string& cache) override {
    if (graph_ != nullptr) return BuildReport{.seconds = seconds_};
    dim_ = static_cast<std::size_t>(data.dim);
    try {
      space_ = std::make_unique<hnswlib::InnerProductSpace>(dim_);
      if (std::filesystem::exists(cache)) {
        graph_ = std::make_unique<hnswlib::HierarchicalNSW<float>>(space_.get(),
                                                                   cache);
        std::ifstream(cache + ".seconds") >> seconds_;
        return BuildReport{.seconds = seconds_};
      }
      const auto start = std::chrono::steady_clock::now();
      AddAll(data);
      seconds_ = std::chrono::duration<double>(
                     std::chrono::steady_clock::now() - start)
                     .count();
      graph_->saveIndex(cache + ".part");
      std::ofstream(cache + ".seconds") << seconds_;
      std::filesystem::rename(cache + ".part", cache);
    } catch (const std::exception& e) {
      return absl::InternalError(e.what());
    }
    return BuildReport{.seconds = seconds_};
  }

  EffortRange efforts() const override { return {kTruthCount, 6400}; }

  std::vector<BatchMode> batch_modes() const override {
    return {{"singles", 2, 1, 1}};
  }

  void Prepare(std::int64_t effort, int) override {
    graph_->setEf(static_cast<std::size_t>(effort));
  }

  void Search(const float* queries, std::int64_t count,
              Answer* answers) override {
    for (std::int64_t q = 0; q < count; ++q) {
      auto found = graph_->searchKnn(
          queries + static_cast<std::size_t>(q) * dim_, kTruthCount);
      Answer& answer = answers[q];
      answer.rows.fill(-1);
      float logits[kTruthCount];
      const auto size = static_cast<std::int64_t>(found.size());
      for (std::int64_t i = size - 1; i >= 0; --i) {  // the farthest first
        logits[i] = static_cast<float>((1 - found.top().first) / Temperature());
        answer.rows[i] = static_cast<std::int32_t>(found.top().second);
        found.pop();
      }
      if (size > 0) WeighRows(logits, size, answer);
    }
  }

 private:
  void AddAll(const DataSet& data) {
    const std::int64_t count = data.keys.row_count();
    graph_ = std::make_unique<hnswlib::HierarchicalNSW<float>>(
        space_.get(), static_cast<std::size_t>(count), 16, 200);
    graph_->addPoint(data.keys.Row(0).data(), 0);
    std::atomic<std::int64_t> next = 1;
    const auto work = [&] {
      for (std::int64_t row = next++; row < count; row = next++) {
        graph_->addPoint(data.keys.Row(row).data(),
                         static_cast<hnswlib::labeltype>(row));
      }
    };
    std::thread second(work);
    work();
    second.join();
  }

  std::size_t dim_ = 0;
  double seconds_ = 0;
  std::unique_ptr<hnswlib::InnerProductSpace> space_;
  std::unique_ptr<hnswlib::HierarchicalNSW<float>> graph_;
};

}  // namespace
}  // namespace attendant

int main(int argc, char** argv) {
  attendant::HnswlibEngine engine;
  return attendant::RunEngine(argc, argv, "hnswlib", engine);
}
