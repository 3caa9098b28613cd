// Huge pages for buffers from which many keys are read. Internal.
#ifndef ATTENDANT_CORE_SHORTLIST_KEYS_HUGE_PAGES_H_
#define ATTENDANT_CORE_SHORTLIST_KEYS_HUGE_PAGES_H_

#include <cstddef>

#include "core/base/aligned_buffer.h"

namespace attendant {

// Asks the kernel for pages of 2 MiB; only a hint, to be given before the first
// touch. A scan that jumps from list to list, or from key to key, would
// otherwise wait for the address translation of every eighth key of 128 floats.
// A sequential scan from memory is a fourth faster, because processors prefetch
// only within a page.
void PreferHugePages(const void* data, std::size_t bytes);

template <typename T>
void PreferHugePages(const AlignedBuffer<T>& buffer) {
  PreferHugePages(buffer.data(), buffer.size() * sizeof(T));
}

}  // namespace attendant

#endif  // ATTENDANT_CORE_SHORTLIST_KEYS_HUGE_PAGES_H_
