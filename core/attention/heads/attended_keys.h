// Which keys take part at all. Internal.
#ifndef ATTENDANT_CORE_ATTENTION_HEADS_ATTENDED_KEYS_H_
#define ATTENDANT_CORE_ATTENTION_HEADS_ATTENDED_KEYS_H_

#include <cstdint>
#include <vector>

#include "core/attention/heads/multi_head.h"

namespace attendant {

// Positions of the keys that the mask does not keep from all queries, in its
// order; pairs that `forbidden` names are not looked at.
std::vector<std::int32_t> AttendedKeys(const MultiHeadInput& input);

}  // namespace attendant

#endif  // ATTENDANT_CORE_ATTENTION_HEADS_ATTENDED_KEYS_H_
