#include "tests/core/catalog/failing_allocation.h"

#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <new>

#include "absl/base/config.h"

namespace {

thread_local int left = 0;  // allocations until one fails; 0: never
thread_local bool none_is_left = false;
// The same counter for the allocations of all threads but one.
std::atomic<int> left_elsewhere = 0;
thread_local bool is_spared = false;

}  // namespace

// Of OpenMP, where the program has it.
extern "C" int omp_get_level() __attribute__((weak));

// A sanitizer replaces operator new itself.
#if !defined(ABSL_HAVE_ADDRESS_SANITIZER) && \
    !defined(ABSL_HAVE_THREAD_SANITIZER)
namespace {

// FAISS allocates in parallel regions, from which no exception may escape: the
// process ends there, whatever the callers of FAISS do.
bool InParallelRegion() {
  return omp_get_level != nullptr && omp_get_level() > 0;
}

void* Allocate(std::size_t size) {
  if (none_is_left && left == 0) throw std::bad_alloc();
  if (left > 0 && --left == 0) throw std::bad_alloc();
  if (!is_spared && left_elsewhere > 0 && !InParallelRegion() &&
      --left_elsewhere == 0) {
    throw std::bad_alloc();
  }
  void* const memory = std::malloc(size == 0 ? 1 : size);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace

void* operator new(std::size_t size) { return Allocate(size); }
void* operator new[](std::size_t size) { return Allocate(size); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept {
  std::free(memory);
}
#endif

namespace attendant {

FailingAllocation::FailingAllocation(int nth, bool later_too) {
  left = nth;
  none_is_left = later_too;
}
FailingAllocation::~FailingAllocation() {
  none_is_left = false;
  left = 0;
}
bool FailingAllocation::befell() const { return left == 0; }

FailingElsewhere::FailingElsewhere(int nth) {
  is_spared = true;
  left_elsewhere = nth;
}
FailingElsewhere::~FailingElsewhere() {
  left_elsewhere = 0;
  is_spared = false;
}
bool FailingElsewhere::befell() const { return left_elsewhere <= 0; }

}  // namespace attendant
