#include "core/base/own_core.h"

namespace attendant {

OwnCore::OwnCore(int index, int count) {
  CPU_ZERO(&all_);
  CPU_ZERO(&own_);
  if (sched_getaffinity(0, sizeof(all_), &all_) != 0) return;
  if (CPU_COUNT(&all_) != count) return;
  int core = 0;
  while (!CPU_ISSET(core, &all_) || index-- > 0) ++core;
  CPU_SET(core, &own_);
  has_core_ = true;
}

void OwnCore::Stay() {
  if (!may_stay()) return;
  stays_ = sched_setaffinity(0, sizeof(own_), &own_) == 0;
  has_core_ = stays_;  // else the core was taken away
}

void OwnCore::Leave() {
  if (!stays_) return;
  stays_ = sched_setaffinity(0, sizeof(all_), &all_) != 0;
}

}  // namespace attendant
