// Threads that have a core each.
#ifndef ATTENDANT_CORE_BASE_OWN_CORE_H_
#define ATTENDANT_CORE_BASE_OWN_CORE_H_

namespace attendant {

// Keeps the calling thread, the index-th of `count` that share their work, to a
// core, if there are as many as the process may use: else, or where the system
// refuses, it goes wherever the system puts it. 0 <= index < count.
//
// The system wakes a thread beside the one that woke it and, while every core
// has something to do, looks for a better place only every few milliseconds:
// two of these threads may so wait for each other on one core while the other
// has nothing but work of a low share to do.
void TakeOwnCore(int index, int count);

}  // namespace attendant

#endif  // ATTENDANT_CORE_BASE_OWN_CORE_H_
