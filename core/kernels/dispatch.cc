#include <cstdlib>

#include "core/kernels/levels.h"

namespace attendant {
namespace {

constexpr KernelLevel kLevels[] = {KernelLevel::kAvx512, KernelLevel::kAvx2,
                                   KernelLevel::kScalar};

KernelLevel ChooseLevel() {
  KernelLevel highest = KernelLevel::kAvx512;
  if (const char* asked = std::getenv("ATTENDANT_KERNELS")) {
    for (const KernelLevel level : kLevels) {
      if (KernelLevelName(level) == asked) highest = level;
    }
  }
  for (const KernelLevel level : kLevels) {
    if (level <= highest && IsSupported(level)) return level;
  }
  return KernelLevel::kScalar;
}

}  // namespace

KernelLevel ActiveKernelLevel() {
  static const KernelLevel level = ChooseLevel();
  return level;
}

bool IsSupported(KernelLevel level) {
  switch (level) {
    case KernelLevel::kAvx512:
      return __builtin_cpu_supports("avx512f") &&
             __builtin_cpu_supports("avx512dq") &&
             __builtin_cpu_supports("avx512vl");
    case KernelLevel::kAvx2:
      return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    case KernelLevel::kScalar:
      return true;
  }
  return false;
}

const Kernels& KernelsFor(KernelLevel level) {
  switch (level) {
    case KernelLevel::kAvx512:
      return kAvx512Kernels;
    case KernelLevel::kAvx2:
      return kAvx2Kernels;
    case KernelLevel::kScalar:
      break;
  }
  return kScalarKernels;
}

const Kernels& ActiveKernels() {
  static const Kernels& kernels = KernelsFor(ActiveKernelLevel());
  return kernels;
}

absl::string_view KernelLevelName(KernelLevel level) {
  switch (level) {
    case KernelLevel::kAvx512:
      return "avx512";
    case KernelLevel::kAvx2:
      return "avx2";
    case KernelLevel::kScalar:
      break;
  }
  return "scalar";
}

}  // namespace attendant
