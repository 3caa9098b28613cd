// Whether a server should receive requests.
#ifndef ATTENDANT_SERVICE_READINESS_H_
#define ATTENDANT_SERVICE_READINESS_H_

#include <string>
#include <vector>

namespace attendant {

struct Readiness {
  // Why it should not; empty: it is ready.
  std::vector<std::string> reasons;
  // What an operator should look at although requests are served.
  std::vector<std::string> warnings;

  bool ready() const { return reasons.empty(); }
};

// Returns {"status": "ready" or "not ready", "reasons": [...], "warnings":
// [...]} on one line.
std::string ToJson(const Readiness& readiness);

}  // namespace attendant

#endif  // ATTENDANT_SERVICE_READINESS_H_
