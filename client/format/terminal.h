// The terminal that a stream writes to.
#ifndef ATTENDANT_CLIENT_FORMAT_TERMINAL_H_
#define ATTENDANT_CLIENT_FORMAT_TERMINAL_H_

#include <cstdio>

namespace attendant {

// Returns the columns of a line that is redrawn: one less than the terminal has
// now, since some terminals wrap after the last column. 79 if the width is
// unknown.
int DrawnWidth(std::FILE* stream);

}  // namespace attendant

#endif  // ATTENDANT_CLIENT_FORMAT_TERMINAL_H_
