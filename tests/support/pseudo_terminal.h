// A terminal of a given size, and what a program draws on it.
#ifndef ATTENDANT_TESTS_SUPPORT_PSEUDO_TERMINAL_H_
#define ATTENDANT_TESTS_SUPPORT_PSEUDO_TERMINAL_H_

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <string>

namespace attendant {

class PseudoTerminal {
 public:
  explicit PseudoTerminal(int columns)
      : screen_(posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC)) {
    if (screen_ < 0 || grantpt(screen_) != 0 || unlockpt(screen_) != 0) return;
    const int fd = open(ptsname(screen_), O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (fd >= 0) stream_ = fdopen(fd, "w");
    Resize(columns);
  }
  ~PseudoTerminal() {
    if (stream_ != nullptr) fclose(stream_);
    if (screen_ >= 0) close(screen_);
  }
  PseudoTerminal(const PseudoTerminal&) = delete;
  PseudoTerminal& operator=(const PseudoTerminal&) = delete;

  // The stream that a program writes to; null if the machine has no
  // pseudo-terminals.
  FILE* stream() { return stream_; }

  void Resize(int columns) {
    winsize size = {};
    size.ws_row = 24;
    size.ws_col = static_cast<unsigned short>(columns);
    ioctl(screen_, TIOCSWINSZ, &size);
  }

  // Returns what was drawn since the last call, with line ends "\r\n".
  std::string Drawn() {
    std::string drawn;
    char bytes[4096];
    pollfd readable = {.fd = screen_, .events = POLLIN, .revents = 0};
    while (poll(&readable, 1, 0) == 1) {
      const ssize_t count = read(screen_, bytes, sizeof(bytes));
      if (count <= 0) break;
      drawn.append(bytes, static_cast<std::size_t>(count));
    }
    return drawn;
  }

 private:
  const int screen_;
  FILE* stream_ = nullptr;
};

}  // namespace attendant

#endif  // ATTENDANT_TESTS_SUPPORT_PSEUDO_TERMINAL_H_
