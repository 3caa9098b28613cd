#include "service/security/certificate_expiry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/time/time.h"

namespace attendant {
namespace {

using ::testing::HasSubstr;
using ::testing::Optional;

constexpr absl::Duration kDay = absl::Hours(24);

// 2026-01-01T00:00:00Z.
absl::Time Now() { return absl::FromUnixSeconds(1767225600); }

TEST(CertificateExpiryTest, IsWarnedOfFromTwoWeeksBeforeOn) {
  EXPECT_EQ(ExpiryWarning(absl::InfiniteFuture(), Now()), std::nullopt);
  EXPECT_EQ(ExpiryWarning(Now() + 14 * kDay, Now()), std::nullopt);
  EXPECT_THAT(
      ExpiryWarning(Now() + 14 * kDay - absl::Seconds(1), Now()),
      Optional(HasSubstr("expires at 2026-01-14T23:59:59+00:00, in 13 days")));
  EXPECT_THAT(ExpiryWarning(Now() + kDay, Now()),
              Optional(HasSubstr(", in 1 day:")));
  EXPECT_THAT(ExpiryWarning(Now() + absl::Seconds(1), Now()),
              Optional(HasSubstr(", in less than a day:")));
  EXPECT_THAT(ExpiryWarning(Now(), Now()),
              Optional(HasSubstr("expired at 2026-01-01T00:00:00+00:00")));
}

TEST(CertificateExpiryTest, IsSaidOnceADayAndAnewOfAnother) {
  ExpiryReminder reminder;
  const absl::Time end = Now() + 10 * kDay;
  EXPECT_EQ(reminder.Due(Now() + 20 * kDay, Now()), std::nullopt);
  EXPECT_NE(reminder.Due(end, Now()), std::nullopt);
  // It could not be given.
  EXPECT_NE(reminder.Due(end, Now()), std::nullopt);
  reminder.Told(end, Now());
  EXPECT_EQ(reminder.Due(end, Now() + kDay - absl::Seconds(1)), std::nullopt);
  EXPECT_NE(reminder.Due(end, Now() + kDay), std::nullopt);
  reminder.Told(end, Now() + kDay);
  const absl::Time other_end = end + absl::Seconds(1);
  EXPECT_NE(reminder.Due(other_end, Now() + kDay), std::nullopt);
  reminder.Told(other_end, Now() + kDay);
  // Setting the clock back does not silence the reminder for longer.
  EXPECT_NE(reminder.Due(other_end, Now() - 2 * kDay), std::nullopt);
}

}  // namespace
}  // namespace attendant
