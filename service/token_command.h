// `attendantd token`: makes bearer tokens.
#ifndef ATTENDANT_SERVICE_TOKEN_COMMAND_H_
#define ATTENDANT_SERVICE_TOKEN_COMMAND_H_

namespace attendant {

// Runs the command with main's arguments, of which argv[1] is "token": adds a
// line to a file of hashes and prints the token. The exit status: 0, 1 if the
// file can't be read or written, 2 on bad usage.
int RunTokenCommand(int argc, const char* const* argv);

}  // namespace attendant

#endif  // ATTENDANT_SERVICE_TOKEN_COMMAND_H_
