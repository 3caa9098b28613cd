// Handles signals that would end the process while it writes a file.
#ifndef ATTENDANT_CLIENT_FILES_SIGNALS_H_
#define ATTENDANT_CLIENT_FILES_SIGNALS_H_

#include <array>
#include <csignal>

namespace attendant {

// Installs a handler for SIGINT, SIGTERM, SIGHUP and SIGPIPE, except for
// ignored ones, and restores the previous handlers on destruction. At most one
// object exists at a time. Uses handlers rather than a signal mask because
// other threads have their own masks.
class SignalsCaught {
 public:
  explicit SignalsCaught(void (*handler)(int number));
  ~SignalsCaught();
  SignalsCaught(const SignalsCaught&) = delete;
  SignalsCaught& operator=(const SignalsCaught&) = delete;

 private:
  std::array<struct sigaction, 4> before_ = {};
};

}  // namespace attendant

#endif  // ATTENDANT_CLIENT_FILES_SIGNALS_H_
