// What the message of a status names, for machines.
#ifndef ATTENDANT_CORE_BASE_STATUS_DETAILS_H_
#define ATTENDANT_CORE_BASE_STATUS_DETAILS_H_

#include <initializer_list>
#include <map>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace attendant {

// The same status with names and values attached, as {"catalog", "shop"}: of
// what isn't there, or is in the way. Names are as ErrorInfo wants them: a
// letter, then letters, digits, '-' and '_', at most 64. Empty values say
// nothing and are left out.
absl::Status WithDetails(
    absl::Status status,
    std::initializer_list<std::pair<absl::string_view, absl::string_view>>
        details);

// What WithDetails attached; empty if nothing. Values are shortened as the
// message would be.
std::map<std::string, std::string> DetailsOf(const absl::Status& status);

}  // namespace attendant

#endif  // ATTENDANT_CORE_BASE_STATUS_DETAILS_H_
