// Formats numbers in messages, where a value may lie just beyond a limit.
#ifndef ATTENDANT_CORE_BASE_NUMBER_TEXT_H_
#define ATTENDANT_CORE_BASE_NUMBER_TEXT_H_

#include <charconv>
#include <iterator>
#include <string>

namespace attendant {

// Returns the shortest text that reads back as `number`. Six digits would print
// 1.0000001 as 1.
inline std::string NumberText(double number) {
  char digits[32];
  return {digits, std::to_chars(digits, std::end(digits), number).ptr};
}

}  // namespace attendant

#endif  // ATTENDANT_CORE_BASE_NUMBER_TEXT_H_
