// `attendantd token`: makes bearer tokens.
#ifndef ATTENDANT_SERVICE_ATTENDANTD_TOKEN_COMMAND_H_
#define ATTENDANT_SERVICE_ATTENDANTD_TOKEN_COMMAND_H_

namespace attendant {

// Runs the command with main's arguments; argv[1] is "token". Prints the token
// and appends its hash to a file. Returns the exit status: 0; 1 if the file
// can't be read or written or the token can't be printed; 2 on a usage error.
int RunTokenCommand(int argc, const char* const* argv);

}  // namespace attendant

#endif  // ATTENDANT_SERVICE_ATTENDANTD_TOKEN_COMMAND_H_
