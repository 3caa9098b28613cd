// Where many keys are read, in some order or none. Internal.
#ifndef ATTENDANT_CORE_SHORTLIST_KEYS_HUGE_PAGES_H_
#define ATTENDANT_CORE_SHORTLIST_KEYS_HUGE_PAGES_H_

#include <cstddef>

#include "core/base/aligned_buffer.h"

namespace attendant {

// Asks for pages of 2 MiB: a scan jumps from list to list, or from key to key,
// and would else wait for the address of every eighth key of 128 floats. In
// order, from memory, it gains a fourth: processors fetch ahead within a page.
// Before the first touch; no more than a hint.
void PreferHugePages(const void* data, std::size_t bytes);

template <typename T>
void PreferHugePages(const AlignedBuffer<T>& buffer) {
  PreferHugePages(buffer.data(), buffer.size() * sizeof(T));
}

}  // namespace attendant

#endif  // ATTENDANT_CORE_SHORTLIST_KEYS_HUGE_PAGES_H_
