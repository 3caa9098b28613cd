// Advice on errors, in the words of a command line.
#ifndef ATTENDANT_CLIENT_API_ADVICE_H_
#define ATTENDANT_CLIENT_API_ADVICE_H_

#include <string>

#include "absl/status/status.h"

namespace attendant {

// Returns what to do about an error that beginners meet: no server, a server
// that requires TLS or a token, no such catalog. Empty for other errors.
std::string AdviceOn(const absl::Status& status);

// True if no server was reached, or none that accepts calls. False for the
// Unavailable of a server that answers but can't use its own files.
bool IsUnreachable(const absl::Status& status);

// Returns the message, followed by the advice if there is any.
std::string MessageWithAdvice(const absl::Status& status);

}  // namespace attendant

#endif  // ATTENDANT_CLIENT_API_ADVICE_H_
