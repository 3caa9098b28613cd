#include "core/base/status.h"

#include "absl/strings/cord.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "core/base/brief.h"

namespace attendant {
namespace {

constexpr absl::string_view kFieldUrl = "attendant/field";
constexpr absl::string_view kReasonUrl = "attendant/reason";
constexpr absl::string_view kGotUrl = "attendant/got";
constexpr absl::string_view kWantUrl = "attendant/want";

absl::Status OfField(absl::StatusCode code, absl::string_view field,
                     absl::string_view got, absl::string_view want) {
  const std::string brief = Brief(got);
  absl::Status status(code,
                      absl::StrCat(field, ": got ", brief, ", want ", want));
  status.SetPayload(kFieldUrl, absl::Cord(field));
  status.SetPayload(kGotUrl, absl::Cord(brief));
  status.SetPayload(kWantUrl, absl::Cord(want));
  return status;
}

// Made when the program starts: later there may be no memory for it.
const absl::Status& kOutOfMemory = *new absl::Status(StatusWithReason(
    absl::StatusCode::kResourceExhausted, "out of memory", "OUT_OF_MEMORY"));

std::optional<std::string> Payload(const absl::Status& status,
                                   absl::string_view url) {
  std::optional<std::string> text;
  if (auto cord = status.GetPayload(url)) text = std::string(*cord);
  return text;
}

}  // namespace

absl::Status InvalidField(absl::string_view field, absl::string_view got,
                          absl::string_view want) {
  return OfField(absl::StatusCode::kInvalidArgument, field, got, want);
}

absl::Status OverLimit(absl::string_view field, absl::string_view got,
                       absl::string_view want) {
  return FieldError(absl::StatusCode::kResourceExhausted, kOverLimit, field,
                    got, want);
}

absl::Status MostThereMayBe(std::int64_t count, absl::string_view what) {
  return StatusWithReason(
      absl::StatusCode::kResourceExhausted,
      count == 1
          ? absl::StrCat("of ", what,
                         " there is 1, the most allowed; delete it first")
          : absl::StrCat("there are ", count, " ", what,
                         ", the most allowed; delete some first"),
      kOverLimit);
}

absl::Status FieldError(absl::StatusCode code, absl::string_view reason,
                        absl::string_view field, absl::string_view got,
                        absl::string_view want) {
  absl::Status status = OfField(code, field, got, want);
  status.SetPayload(kReasonUrl, absl::Cord(reason));
  return status;
}

absl::Status CheckCount(std::int64_t count, std::int64_t least,
                        std::int64_t most, absl::string_view field,
                        absl::string_view unit) {
  if (count >= least && count <= most) return absl::OkStatus();
  const std::string got = absl::StrCat(count, unit);
  const std::string want = absl::StrCat(least, " to ", most, unit);
  return count < least ? InvalidField(field, got, want)
                       : OverLimit(field, got, want);
}

absl::Status StatusWithReason(absl::StatusCode code, absl::string_view message,
                              absl::string_view reason) {
  absl::Status status(code, message);
  status.SetPayload(kReasonUrl, absl::Cord(reason));
  return status;
}

absl::Status OutOfMemory() { return kOutOfMemory; }

std::optional<std::string> FieldOf(const absl::Status& status) {
  return Payload(status, kFieldUrl);
}

std::optional<GotAndWant> GotAndWantOf(const absl::Status& status) {
  std::optional<std::string> got = Payload(status, kGotUrl);
  std::optional<std::string> want = Payload(status, kWantUrl);
  if (!got || !want) return std::nullopt;
  return GotAndWant{*std::move(got), *std::move(want)};
}

std::optional<std::string> ReasonOf(const absl::Status& status) {
  return Payload(status, kReasonUrl);
}

void CopyPayloads(const absl::Status& from, absl::Status& to) {
  from.ForEachPayload([&to](absl::string_view url, const absl::Cord& payload) {
    to.SetPayload(url, payload);
  });
}

absl::Status WithMessage(const absl::Status& status,
                         absl::string_view message) {
  absl::Status changed(status.code(), message);
  CopyPayloads(status, changed);
  return changed;
}

absl::Status PrefixField(const absl::Status& status, absl::string_view prefix) {
  return ReplacePrefix(status, "", prefix);
}

absl::Status ReplacePrefix(const absl::Status& status, absl::string_view from,
                           absl::string_view to) {
  if (status.ok() || !absl::StartsWith(status.message(), from)) return status;
  const auto replace = [&](absl::string_view text) {
    return absl::StrCat(to, absl::StripPrefix(text, from));
  };
  absl::Status replaced = WithMessage(status, replace(status.message()));
  if (auto field = FieldOf(status)) {
    replaced.SetPayload(kFieldUrl, absl::Cord(replace(*field)));
  }
  return replaced;
}

}  // namespace attendant
