// Refuses values of a command line that are empty by mistake.
#ifndef ATTENDANT_CLIENT_FLAGS_EMPTY_VALUES_H_
#define ATTENDANT_CLIENT_FLAGS_EMPTY_VALUES_H_

#include <CLI/CLI.hpp>
#include <set>
#include <string>

namespace attendant {

// Makes an empty value a usage error for all options of the app and its
// subcommands, except those named in `allowed`. An empty value usually comes
// from an unset shell variable; treated as if the option were missing, it would
// silently drop a restriction. An empty environment variable still counts as
// unset. Call it after all options were added.
void RefuseEmptyValues(CLI::App& app,
                       const std::set<std::string>& allowed = {});

// Throws that error for "--flag=" with nothing after it, for which CLI11 would
// take the next word as the value. Call it before the app parses.
void RefuseEmptyAssignments(int argc, const char* const* argv);

}  // namespace attendant

#endif  // ATTENDANT_CLIENT_FLAGS_EMPTY_VALUES_H_
