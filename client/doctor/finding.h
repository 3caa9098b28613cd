// The result of examining one thing.
#ifndef ATTENDANT_CLIENT_DOCTOR_FINDING_H_
#define ATTENDANT_CLIENT_DOCTOR_FINDING_H_

#include <string>

namespace attendant {

enum class Verdict {
  kOk,
  kSkipped,  // not examined
  kWarning,  // works, but slower, for less, or not for long
  kFailure,  // does not work
};

struct Finding {
  std::string subject = {};  // such as "memory"
  Verdict verdict = Verdict::kOk;
  std::string text = {};    // what was found
  std::string advice = {};  // what to do; empty if nothing needs to be done
};

}  // namespace attendant

#endif  // ATTENDANT_CLIENT_DOCTOR_FINDING_H_
