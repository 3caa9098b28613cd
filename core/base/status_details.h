// Attaches names from a status message to the status, for machines.
#ifndef ATTENDANT_CORE_BASE_STATUS_DETAILS_H_
#define ATTENDANT_CORE_BASE_STATUS_DETAILS_H_

#include <initializer_list>
#include <map>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace attendant {

// Returns `status` with names and values attached, as {"catalog", "shop"}, that
// identify what is missing or in the way. Names follow ErrorInfo: a letter,
// then letters, digits, '-' and '_', at most 64 characters. Empty values are
// left out.
absl::Status WithDetails(
    absl::Status status,
    std::initializer_list<std::pair<absl::string_view, absl::string_view>>
        details);

// Returns the names and values that WithDetails attached; empty if none. Values
// are shortened as in messages.
std::map<std::string, std::string> DetailsOf(const absl::Status& status);

}  // namespace attendant

#endif  // ATTENDANT_CORE_BASE_STATUS_DETAILS_H_
