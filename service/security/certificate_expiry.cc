#include "service/security/certificate_expiry.h"

#include "absl/strings/str_cat.h"

namespace attendant {
namespace {

constexpr absl::Duration kDay = absl::Hours(24);

}  // namespace

std::optional<std::string> ExpiryWarning(absl::Time expiry, absl::Time now) {
  if (expiry - now >= kExpiryNotice) return std::nullopt;
  const std::string when =
      absl::FormatTime(absl::RFC3339_sec, expiry, absl::UTCTimeZone());
  if (expiry <= now) {
    return absl::StrCat("the TLS certificate expired at ", when,
                        ": clients refuse it; put a new one into its files");
  }
  const std::int64_t days = (expiry - now) / kDay;
  return absl::StrCat("the TLS certificate expires at ", when, ", in ",
                      days == 0 ? "less than a day" : absl::StrCat(days),
                      days == 0   ? ""
                      : days == 1 ? " day"
                                  : " days",
                      ": put a new one into its files");
}

std::optional<std::string> ExpiryReminder::Due(absl::Time expiry,
                                               absl::Time now) const {
  std::optional<std::string> warning = ExpiryWarning(expiry, now);
  if (!warning.has_value()) return std::nullopt;
  const bool told =
      expiry == told_expiry_ && absl::AbsDuration(now - told_) < kDay;
  if (told) return std::nullopt;
  return warning;
}

void ExpiryReminder::Told(absl::Time expiry, absl::Time now) {
  told_expiry_ = expiry;
  told_ = now;
}

}  // namespace attendant
