// What to do next about an error, in the words of a command line.
#ifndef ATTENDANT_CLIENT_API_ADVICE_H_
#define ATTENDANT_CLIENT_API_ADVICE_H_

#include <string>

#include "absl/status/status.h"

namespace attendant {

// Of errors that those who begin meet first: no server, one that wants TLS or a
// token, no such catalog. Empty for another.
std::string AdviceOn(const absl::Status& status);

// Whether no server was reached, or none that takes calls: one without rights
// to its own files answers, too.
bool IsUnreachable(const absl::Status& status);

// The message, and the advice if there is one.
std::string MessageWithAdvice(const absl::Status& status);

}  // namespace attendant

#endif  // ATTENDANT_CLIENT_API_ADVICE_H_
