// Signals that would end the process amid a file.
#ifndef ATTENDANT_CLIENT_FILES_SIGNALS_H_
#define ATTENDANT_CLIENT_FILES_SIGNALS_H_

#include <array>
#include <csignal>

namespace attendant {

// Gives SIGINT, SIGTERM, SIGHUP and SIGPIPE another handler while an object
// lives, but for those that are ignored. At most one at a time. A handler
// rather than a mask, since other threads have masks of their own.
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
