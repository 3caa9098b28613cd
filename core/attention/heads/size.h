// Converts int64 counts to sizes of the standard library.
#ifndef ATTENDANT_CORE_ATTENTION_HEADS_SIZE_H_
#define ATTENDANT_CORE_ATTENTION_HEADS_SIZE_H_

#include <cstddef>
#include <cstdint>

namespace attendant {

// `i` must be at least 0.
inline std::size_t Size(std::int64_t i) { return static_cast<std::size_t>(i); }

}  // namespace attendant

#endif  // ATTENDANT_CORE_ATTENTION_HEADS_SIZE_H_
