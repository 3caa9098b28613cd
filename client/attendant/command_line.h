// The entry point of the program `attendant`.
#ifndef ATTENDANT_CLIENT_ATTENDANT_COMMAND_LINE_H_
#define ATTENDANT_CLIENT_ATTENDANT_COMMAND_LINE_H_

namespace attendant {

// Runs `attendant` with main's arguments and returns its exit status.
int RunCommandLine(int argc, char** argv);

}  // namespace attendant

#endif  // ATTENDANT_CLIENT_ATTENDANT_COMMAND_LINE_H_
