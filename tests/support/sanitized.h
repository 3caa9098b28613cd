// Everything takes several times as long under a sanitizer, so tests do less.
#ifndef ATTENDANT_TESTS_SUPPORT_SANITIZED_H_
#define ATTENDANT_TESTS_SUPPORT_SANITIZED_H_

#include "absl/base/config.h"

namespace attendant {

#if defined(ABSL_HAVE_ADDRESS_SANITIZER) || defined(ABSL_HAVE_THREAD_SANITIZER)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

}  // namespace attendant

#endif  // ATTENDANT_TESTS_SUPPORT_SANITIZED_H_
