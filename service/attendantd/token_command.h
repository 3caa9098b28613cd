// `attendantd token`: makes bearer tokens.
#ifndef ATTENDANT_SERVICE_ATTENDANTD_TOKEN_COMMAND_H_
#define ATTENDANT_SERVICE_ATTENDANTD_TOKEN_COMMAND_H_

namespace attendant {

// Runs the command with main's arguments, of which argv[1] is "token": prints
// the token and adds a line to a file of hashes. The exit status: 0, 1 if the
// file can't be read or written, or the token not printed, 2 on bad usage.
int RunTokenCommand(int argc, const char* const* argv);

}  // namespace attendant

#endif  // ATTENDANT_SERVICE_ATTENDANTD_TOKEN_COMMAND_H_
