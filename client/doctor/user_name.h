// Names users for commands that advice contains.
#ifndef ATTENDANT_CLIENT_DOCTOR_USER_NAME_H_
#define ATTENDANT_CLIENT_DOCTOR_USER_NAME_H_

#include <pwd.h>
#include <sys/types.h>

#include <string>

#include "absl/strings/str_cat.h"

namespace attendant {

// Returns the name of a user, or its number in the form of sudo, "#1000".
inline std::string UserName(uid_t uid) {
  const passwd* user = getpwuid(uid);
  return user == nullptr ? absl::StrCat("#", uid) : user->pw_name;
}

}  // namespace attendant

#endif  // ATTENDANT_CLIENT_DOCTOR_USER_NAME_H_
