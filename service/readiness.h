// Whether a server should be sent requests.
#ifndef ATTENDANT_SERVICE_READINESS_H_
#define ATTENDANT_SERVICE_READINESS_H_

#include <string>
#include <vector>

namespace attendant {

struct Readiness {
  // Why it should not; empty: it should.
  std::vector<std::string> reasons;
  // What an operator should look at, though requests are answered.
  std::vector<std::string> warnings;

  bool ready() const { return reasons.empty(); }
};

// {"status": "ready" or "not ready", "reasons": [...], "warnings": [...]}, on
// one line.
std::string ToJson(const Readiness& readiness);

}  // namespace attendant

#endif  // ATTENDANT_SERVICE_READINESS_H_
