// Matchers for absl::Status and absl::StatusOr. There is deliberately no "not
// OK" matcher: name the error you expect.
#ifndef ATTENDANT_TESTS_SUPPORT_STATUS_MATCHERS_H_
#define ATTENDANT_TESTS_SUPPORT_STATUS_MATCHERS_H_

#include <gmock/gmock.h>

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace attendant {

inline constexpr absl::StatusCode kInvalid = absl::StatusCode::kInvalidArgument;

inline const absl::Status& StatusOf(const absl::Status& status) {
  return status;
}
template <typename T>
const absl::Status& StatusOf(const absl::StatusOr<T>& status_or) {
  return status_or.status();
}

MATCHER(IsOk, "is OK") {
  *result_listener << StatusOf(arg).ToString();
  return StatusOf(arg).ok();
}

// StatusIs(code, message matcher)
MATCHER_P2(StatusIs, code, message, "") {
  const absl::Status& status = StatusOf(arg);
  *result_listener << status.ToString();
  return status.code() == code &&
         ::testing::ExplainMatchResult(message, std::string(status.message()),
                                       result_listener);
}

}  // namespace attendant

#define ATTENDANT_TEST_CONCAT_INNER_(a, b) a##b
#define ATTENDANT_TEST_CONCAT_(a, b) ATTENDANT_TEST_CONCAT_INNER_(a, b)

#define EXPECT_OK(expression) EXPECT_THAT(expression, ::attendant::IsOk())
#define ASSERT_OK(expression) ASSERT_THAT(expression, ::attendant::IsOk())
#define ASSERT_OK_AND_ASSIGN(declaration, expression)               \
  ASSERT_OK_AND_ASSIGN_IMPL_(ATTENDANT_TEST_CONCAT_(or_, __LINE__), \
                             declaration, expression)
#define ASSERT_OK_AND_ASSIGN_IMPL_(result, declaration, expression) \
  auto result = (expression);                                       \
  ASSERT_THAT(result, ::attendant::IsOk());                         \
  declaration = *std::move(result)

#endif  // ATTENDANT_TESTS_SUPPORT_STATUS_MATCHERS_H_
