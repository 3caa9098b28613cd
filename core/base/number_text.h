// Numbers in messages, which may lie just beyond a limit.
#ifndef ATTENDANT_CORE_BASE_NUMBER_TEXT_H_
#define ATTENDANT_CORE_BASE_NUMBER_TEXT_H_

#include <charconv>
#include <iterator>
#include <string>

namespace attendant {

// The shortest text that is this number and no other: rounded to six digits
// 1.0000001 would be 1.
inline std::string NumberText(double number) {
  char digits[32];
  return {digits, std::to_chars(digits, std::end(digits), number).ptr};
}

}  // namespace attendant

#endif  // ATTENDANT_CORE_BASE_NUMBER_TEXT_H_
