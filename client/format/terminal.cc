#include "client/format/terminal.h"

#include <sys/ioctl.h>

namespace attendant {
namespace {

constexpr int kUsualColumns = 80;

}  // namespace

int DrawnWidth(std::FILE* stream) {
  winsize size = {};
  const bool is_known =
      ioctl(fileno(stream), TIOCGWINSZ, &size) == 0 && size.ws_col > 1;
  return (is_known ? size.ws_col : kUsualColumns) - 1;
}

}  // namespace attendant
