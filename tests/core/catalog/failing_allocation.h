// Makes memory run out when a test asks for it.
#ifndef ATTENDANT_TESTS_CORE_CATALOG_FAILING_ALLOCATION_H_
#define ATTENDANT_TESTS_CORE_CATALOG_FAILING_ALLOCATION_H_

#include <new>

namespace attendant {

// While it lives, the nth allocation of this thread (counted from 1) throws
// std::bad_alloc; with `later_too` each later one throws as well. Under a
// sanitizer no allocation fails. Only one may live at a time. For tests that
// are linked with failing_allocation.cc, which replaces operator new.
class FailingAllocation {
 public:
  explicit FailingAllocation(int nth, bool later_too = false);
  ~FailingAllocation();
  FailingAllocation(const FailingAllocation&) = delete;
  FailingAllocation& operator=(const FailingAllocation&) = delete;

  // True if the nth allocation was reached.
  bool befell() const;
};

// Like FailingAllocation, for the allocations of all threads but this one,
// except in parallel regions of OpenMP.
class FailingElsewhere {
 public:
  explicit FailingElsewhere(int nth);
  ~FailingElsewhere();
  FailingElsewhere(const FailingElsewhere&) = delete;
  FailingElsewhere& operator=(const FailingElsewhere&) = delete;

  // True if the nth allocation was reached.
  bool befell() const;
};

// Calls `work` with its nth allocation failing. Returns false if `work` makes
// fewer than n allocations.
template <typename Work>
bool WithoutMemoryAt(int nth, const Work& work, bool later_too = false) {
  const FailingAllocation failing(nth, later_too);
  try {
    work();
  } catch (const std::bad_alloc&) {
    // Tests inspect the state that the failed allocation left.
  }
  return failing.befell();
}

}  // namespace attendant

#endif  // ATTENDANT_TESTS_CORE_CATALOG_FAILING_ALLOCATION_H_
