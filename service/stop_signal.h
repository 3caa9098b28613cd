// SIGTERM and SIGINT as something that main can wait for.
#ifndef ATTENDANT_SERVICE_STOP_SIGNAL_H_
#define ATTENDANT_SERVICE_STOP_SIGNAL_H_

namespace attendant {

// From now on the first SIGTERM or SIGINT is what AwaitStopSignal returns, and
// the second ends the process at once, with 128 + its number. SIGPIPE is
// ignored.
//
// By handlers that do next to nothing, not by sigwait: that needs the signals
// blocked in all threads, and libraries (OpenBLAS) start threads before main.
void CatchStopSignals();

// Waits for the first signal, if it has not come yet, and returns which. For
// one thread.
int AwaitStopSignal();

}  // namespace attendant

#endif  // ATTENDANT_SERVICE_STOP_SIGNAL_H_
