// The keys that take part in attention. Internal.
#ifndef ATTENDANT_CORE_ATTENTION_HEADS_ATTENDED_KEYS_H_
#define ATTENDANT_CORE_ATTENTION_HEADS_ATTENDED_KEYS_H_

#include <cstdint>
#include <vector>

#include "core/attention/heads/multi_head.h"

namespace attendant {

// Returns the positions of the keys that the mask allows for some query, in the
// mask's order. Does not look at the pairs in `forbidden`.
std::vector<std::int32_t> AttendedKeys(const MultiHeadInput& input);

}  // namespace attendant

#endif  // ATTENDANT_CORE_ATTENTION_HEADS_ATTENDED_KEYS_H_
