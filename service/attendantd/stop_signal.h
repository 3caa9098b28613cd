// Lets main wait for SIGTERM, SIGINT and SIGHUP.
#ifndef ATTENDANT_SERVICE_ATTENDANTD_STOP_SIGNAL_H_
#define ATTENDANT_SERVICE_ATTENDANTD_STOP_SIGNAL_H_

#include "absl/functional/function_ref.h"

namespace attendant {

// Installs handlers: from now on SIGTERM and SIGINT end the process at once
// with status 0, which is safe since no request is in progress and stored data
// is on disk. SIGHUP does not end the process; SIGPIPE is ignored.
//
// Uses minimal signal handlers rather than sigwait, which requires the signals
// to be blocked in all threads; libraries (OpenBLAS) start threads before main.
void CatchStopSignals();

// From now on the first SIGTERM or SIGINT is returned by AwaitStopSignal, and
// the second ends the process at once with status 128 + its number.
void StopInOrderFromNowOn();

// Waits for the first SIGTERM or SIGINT, unless it has already come, and
// returns its number. Calls `on_hangup` for each SIGHUP that arrives before it;
// SIGHUPs that arrive together may be merged. For one thread.
int AwaitStopSignal(absl::FunctionRef<void()> on_hangup);

}  // namespace attendant

#endif  // ATTENDANT_SERVICE_ATTENDANTD_STOP_SIGNAL_H_
