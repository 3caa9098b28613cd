// SIGTERM, SIGINT and SIGHUP as something that main can wait for.
#ifndef ATTENDANT_SERVICE_ATTENDANTD_STOP_SIGNAL_H_
#define ATTENDANT_SERVICE_ATTENDANTD_STOP_SIGNAL_H_

#include "absl/functional/function_ref.h"

namespace attendant {

// From now on SIGTERM and SIGINT end the process at once, with 0: nothing is
// under way, and what was stored is on disk. SIGHUP ends nothing; SIGPIPE is
// ignored.
//
// By handlers that do next to nothing, not by sigwait: that needs the signals
// blocked in all threads, and libraries (OpenBLAS) start threads before main.
void CatchStopSignals();

// From now on the first SIGTERM or SIGINT is what AwaitStopSignal returns, and
// only the second ends the process at once, with 128 + its number.
void StopInOrderFromNowOn();

// Waits for the first signal, if it has not come yet, and returns which. For
// one thread. Calls `on_hangup` for a SIGHUP that came before it; several that
// came at once may be one.
int AwaitStopSignal(absl::FunctionRef<void()> on_hangup);

}  // namespace attendant

#endif  // ATTENDANT_SERVICE_ATTENDANTD_STOP_SIGNAL_H_
