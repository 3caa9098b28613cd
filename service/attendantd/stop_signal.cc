#include "service/attendantd/stop_signal.h"

#include <semaphore.h>
#include <unistd.h>

#include <atomic>
#include <csignal>

namespace attendant {
namespace {

std::atomic<bool> serving = false;
std::atomic<int> first_signal = 0;  // 0: none yet
std::atomic<bool> hangup = false;   // received, not yet reported
sem_t came;

static_assert(std::atomic<int>::is_always_lock_free);
static_assert(std::atomic<bool>::is_always_lock_free);

// Calls only async-signal-safe functions.
void Catch(int signal) {
  int none = 0;
  if (signal == SIGHUP) {
    hangup.store(true);
  } else if (!serving.load()) {
    _exit(0);
  } else if (!first_signal.compare_exchange_strong(none, signal)) {
    _exit(128 + signal);
  }
  sem_post(&came);
}

}  // namespace

void CatchStopSignals() {
  sem_init(&came, /*pshared=*/0, 0);
  struct sigaction action = {};
  action.sa_handler = &Catch;
  action.sa_flags = SA_RESTART;
  sigaction(SIGTERM, &action, nullptr);
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGHUP, &action, nullptr);
  // The conditions these report also fail the write with an error.
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
}

void StopInOrderFromNowOn() { serving.store(true); }

int AwaitStopSignal(absl::FunctionRef<void()> on_hangup) {
  while (true) {
    if (sem_wait(&came) != 0) continue;
    if (hangup.exchange(false)) on_hangup();
    const int signal = first_signal.load();
    if (signal != 0) return signal;
  }
}

}  // namespace attendant
