// Paths of the binaries that the tests run.
#ifndef ATTENDANT_TESTS_INTEGRATION_BINARIES_H_
#define ATTENDANT_TESTS_INTEGRATION_BINARIES_H_

namespace attendant {

inline constexpr char kAttendantd[] = ATTENDANT_ATTENDANTD;
inline constexpr char kAttendant[] = ATTENDANT_ATTENDANT;
inline constexpr char kAttendantLoad[] = ATTENDANT_ATTENDANT_LOAD;
inline constexpr char kSourceDir[] = ATTENDANT_SOURCE_DIR;

}  // namespace attendant

#endif  // ATTENDANT_TESTS_INTEGRATION_BINARIES_H_
