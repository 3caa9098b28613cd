// What a look at one thing came to.
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
  std::string subject = {};  // as "memory"
  Verdict verdict = Verdict::kOk;
  std::string text = {};    // what there is
  std::string advice = {};  // what to do; empty if nothing is
};

}  // namespace attendant

#endif  // ATTENDANT_CLIENT_DOCTOR_FINDING_H_
