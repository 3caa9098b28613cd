#include "client/doctor/machine.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <random>
#include <set>
#include <span>
#include <sstream>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "client/format/text.h"
#include "core/attention/softmax/state.h"
#include "core/base/process_memory.h"
#include "core/kernels/kernels.h"
#include "core/shortlist/builds/faiss_build.h"
#include "core/shortlist/ivf/ivf_index.h"

namespace attendant {
namespace {

constexpr std::int64_t kLittleMemory = std::int64_t{1} << 30;

struct Processor {
  std::string name = "unknown";
  std::set<std::string> features;
};

// Returns a field of the first core.
Processor ReadProcessor(const std::string& root) {
  Processor processor;
  std::ifstream file(root + "/proc/cpuinfo");
  for (std::string line; std::getline(file, line) && !line.empty();) {
    const std::size_t colon = line.find(':');
    if (colon == std::string::npos) continue;
    const std::string value = line.substr(std::min(line.size(), colon + 2));
    if (absl::StartsWith(line, "model name")) processor.name = value;
    if (!absl::StartsWith(line, "flags")) continue;
    std::istringstream words(value);
    for (std::string word; words >> word;) processor.features.insert(word);
  }
  return processor;
}

// Returns the cores that a control group allows, or infinity.
double CoreQuota(const std::string& root) {
  std::ifstream file(root + "/sys/fs/cgroup/cpu.max");
  double quota = 0;
  double period = 0;
  std::string word;
  if (file >> word >> period && absl::SimpleAtod(word, &quota) && period > 0) {
    return quota / period;
  }
  return std::numeric_limits<double>::infinity();
}

Finding ExamineProcessor(const std::string& root) {
  const Processor processor = ReadProcessor(root);
  std::string features;
  for (const char* feature :
       {"avx2", "fma", "avx512f", "avx512_vnni", "avx512_bf16"}) {
    if (processor.features.count(feature) == 0) continue;
    absl::StrAppend(&features, features.empty() ? "" : " ", feature);
  }
  const double cores = std::max(1u, std::thread::hardware_concurrency());
  const double quota = CoreQuota(root);
  Finding finding = {
      .subject = "processor",
      .text = absl::StrCat(processor.name, "; ", FormatNumber(cores),
                           cores == 1 ? " core" : " cores", "; ",
                           features.empty()
                               ? "none of the instructions that speed up scans"
                               : features)};
  if (quota < cores) {
    finding.verdict = Verdict::kWarning;
    absl::StrAppend(&finding.text, "; the control group allows ",
                    FormatNumber(quota));
    finding.advice = absl::StrCat(
        "start attendantd with --workers ",
        static_cast<int>(std::max(1.0, std::ceil(quota))),
        ", or queries will be stopped in the middle of their work");
  }
  return finding;
}

// Returns the greatest difference between a dot product by the kernels in use
// and by the scalar twin, relative to the sum of the products' magnitudes.
double KernelDeviation() {
  constexpr std::int64_t kRows = 64;
  constexpr std::int64_t kDim = 131;
  std::mt19937_64 random(1);
  std::normal_distribution<float> normal;
  std::vector<float> rows(kRows * kDim);
  std::vector<float> query(kDim);
  for (float& component : rows) component = normal(random);
  for (float& component : query) component = normal(random);
  std::vector<float> dots(kRows);
  std::vector<float> twin(kRows);
  ActiveKernels().DotRows(query.data(), rows.data(), kRows, kDim, dots.data());
  KernelsFor(KernelLevel::kScalar)
      .DotRows(query.data(), rows.data(), kRows, kDim, twin.data());
  double deviation = 0;
  for (std::int64_t r = 0; r < kRows; ++r) {
    double size = 0;
    for (std::int64_t d = 0; d < kDim; ++d) {
      size += std::abs(double{rows[r * kDim + d]} * query[d]);
    }
    deviation = std::max(deviation, std::abs(double{dots[r]} - twin[r]) / size);
  }
  return deviation;
}

Finding ExamineKernels() {
  const std::string level(KernelLevelName(ActiveKernelLevel()));
  const char* asked = std::getenv("ATTENDANT_KERNELS");
  if (asked != nullptr && level != asked) {
    return {"kernels", Verdict::kFailure,
            absl::StrCat("ATTENDANT_KERNELS is \"", asked,
                         "\", which this processor does not have"),
            "unset ATTENDANT_KERNELS: the best there are is chosen"};
  }
  // kernels.h says how many roundings there are.
  constexpr double kTolerance = 32 * std::numeric_limits<float>::epsilon();
  if (!(KernelDeviation() <= kTolerance)) {
    return {"kernels", Verdict::kFailure,
            absl::StrCat(level, " give other sums than their scalar twin"),
            "don't trust this processor; ATTENDANT_KERNELS=scalar may serve "
            "meanwhile"};
  }
  Finding finding = {.subject = "kernels",
                     .text = absl::StrCat(level,
                                          ", which agree with their "
                                          "scalar twin")};
  if (ActiveKernelLevel() == KernelLevel::kScalar) {
    finding.verdict = Verdict::kWarning;
    finding.advice = asked != nullptr
                         ? "unset ATTENDANT_KERNELS: scans take many times "
                           "longer than necessary"
                         : "use a processor with AVX2 or AVX-512: scans take "
                           "many times longer on this one";
  }
  return finding;
}

// Trains an IVF index on keys around a few centres and searches for a key,
// which tests FAISS and its BLAS library.
absl::Status TryIndex() {
  constexpr std::int64_t kKeys = 2000;
  constexpr std::int64_t kDim = 16;
  std::mt19937_64 random(1);
  std::normal_distribution<float> normal;
  std::vector<float> floats(kKeys * kDim);
  for (float& component : floats) component = normal(random);
  std::vector<std::span<const float>> keys;
  for (std::int64_t r = 0; r < kKeys; ++r) {
    keys.emplace_back(&floats[r * kDim], kDim);
  }
  const auto index = IvfIndex::Build(keys, kDim, ScoreKind::kCosine, {});
  if (!index.ok()) return index.status();
  constexpr RowIndex kSought = 7;
  double norm = 0;
  for (const float component : keys[kSought]) norm += component * component;
  std::vector<float> query(keys[kSought].begin(), keys[kSought].end());
  for (float& component : query) {
    component /= static_cast<float>(std::sqrt(norm));
  }
  ScanQuery scan;
  scan.query = query;
  scan.score_kind = ScoreKind::kCosine;
  scan.row_end = kKeys;
  const Interrupt interrupt;
  scan.interrupt = &interrupt;
  AttentionState state(1, nullptr, 0);
  const auto stats = (*index)->Scan(scan, state);
  if (!stats.ok()) return stats.status();
  const auto found = state.top().Sorted();
  if (found.empty() || found[0].row != kSought) {
    return absl::InternalError(
        "a test index does not find a key that it holds");
  }
  return absl::OkStatus();
}

Finding ExamineFaiss() {
  const absl::Status status = TryIndex();
  if (status.ok()) {
    return {.subject = "FAISS",
            .text = absl::StrCat(FaissVersion(),
                                 "; a test index finds what it holds")};
  }
  return {"FAISS", Verdict::kFailure,
          absl::StrCat(FaissVersion(), ": ", status.message()),
          "reinstall FAISS and its BLAS library, as "
          "scripts/install-packages does"};
}

Finding ExamineMemory(const std::string& root) {
  const std::int64_t bytes = MachineMemoryBytes(root);
  if (bytes == 0) {
    return {"memory", Verdict::kWarning, "the system does not tell how much",
            "start attendantd with --memory-limit"};
  }
  Finding finding = {
      .subject = "memory",
      .text = absl::StrCat(FormatBytes(bytes), "; attendantd takes up to ",
                           FormatBytes(bytes / 5 * 4), " by default")};
  if (bytes < kLittleMemory) {
    finding.verdict = Verdict::kWarning;
    finding.advice =
        "1,000,000 items of 128 components take 0.7 GB: see Sizing in "
        "docs/operations.md, or keys_on_disk";
  }
  return finding;
}

Finding ExamineHugePages(const std::string& root) {
  std::ifstream file(root + "/sys/kernel/mm/transparent_hugepage/enabled");
  std::string text;
  std::getline(file, text);
  const bool never = absl::StrContains(text, "[never]");
  const std::size_t begin = text.find('[');
  const std::size_t end = text.find(']');
  if (begin == std::string::npos || end == std::string::npos || never) {
    return {"huge pages", Verdict::kWarning, never ? "never used" : "not known",
            "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled: "
            "scans of large catalogs wait less for memory"};
  }
  return {.subject = "huge pages",
          .text = text.substr(begin + 1, end - begin - 1)};
}

}  // namespace

std::vector<Finding> ExamineMachine(const std::string& root) {
  return {ExamineProcessor(root), ExamineKernels(), ExamineFaiss(),
          ExamineMemory(root), ExamineHugePages(root)};
}

}  // namespace attendant
