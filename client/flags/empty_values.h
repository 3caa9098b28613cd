// Values of a command line that are empty by mistake.
#ifndef ATTENDANT_CLIENT_FLAGS_EMPTY_VALUES_H_
#define ATTENDANT_CLIENT_FLAGS_EMPTY_VALUES_H_

#include <CLI/CLI.hpp>
#include <set>
#include <string>

namespace attendant {

// Makes an empty value a usage error for all options of the app and its
// commands but `allowed`. It comes of a shell's variable that is not set, and
// would otherwise be as if the option had not been given: a restriction would
// fall away unseen. An environment variable that is empty stays as if unset.
// After all options were added.
void RefuseEmptyValues(CLI::App& app,
                       const std::set<std::string>& allowed = {});

// Throws the same error for "--flag=" with nothing behind it: CLI11 would take
// the next word for the value. Before the app parses.
void RefuseEmptyAssignments(int argc, const char* const* argv);

}  // namespace attendant

#endif  // ATTENDANT_CLIENT_FLAGS_EMPTY_VALUES_H_
