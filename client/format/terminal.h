// The terminal that a stream goes to.
#ifndef ATTENDANT_CLIENT_FORMAT_TERMINAL_H_
#define ATTENDANT_CLIENT_FORMAT_TERMINAL_H_

#include <cstdio>

namespace attendant {

// Columns of a line that is drawn anew: one less than the terminal has now, as
// some go to the next line with the last column. 79 if it can't be told.
int DrawnWidth(std::FILE* stream);

}  // namespace attendant

#endif  // ATTENDANT_CLIENT_FORMAT_TERMINAL_H_
