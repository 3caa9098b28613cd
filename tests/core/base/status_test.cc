#include "core/base/status.h"

#include <cstddef>
#include <string>

#include "absl/strings/cord.h"
#include "core/base/brief.h"
#include "tests/support/status_matchers.h"

namespace attendant {
namespace {

using ::testing::Optional;

TEST(StatusTest, InvalidFieldSaysWhatWasWrongAndWhatIsAllowed) {
  const absl::Status status = InvalidField("keys[text]", "3 components", "4");
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kInvalidArgument,
                               "keys[text]: got 3 components, want 4"));
  EXPECT_THAT(FieldOf(status), Optional(std::string("keys[text]")));
  EXPECT_EQ(ReasonOf(status), std::nullopt);
}

TEST(StatusTest, LongInputsAreNotRepeated) {
  EXPECT_EQ(Brief(std::string(kBriefBytes, 'x')),
            std::string(kBriefBytes, 'x'));
  EXPECT_EQ(Brief(std::string(3'000'000, 'x')),
            std::string(kBriefBytes / 2, 'x') + "… (3000000 bytes)");
  // Two-byte characters that start at odd bytes.
  std::string accents = "x";
  for (std::size_t i = 0; i < kBriefBytes; ++i) accents += "é";
  EXPECT_EQ(Brief(accents),
            accents.substr(0, kBriefBytes / 2 - 1) + "… (481 bytes)");
  EXPECT_LT(InvalidField("item_id", accents, "less").message().size(), 300u);
}

TEST(StatusTest, ReasonIsAttached) {
  const absl::Status status = StatusWithReason(
      absl::StatusCode::kResourceExhausted, "no space", "DISK_FULL");
  EXPECT_THAT(status,
              StatusIs(absl::StatusCode::kResourceExhausted, "no space"));
  EXPECT_THAT(ReasonOf(status), Optional(std::string("DISK_FULL")));
  EXPECT_EQ(FieldOf(status), std::nullopt);
}

TEST(StatusTest, OkCarriesNothing) {
  EXPECT_EQ(FieldOf(absl::OkStatus()), std::nullopt);
  EXPECT_EQ(ReasonOf(absl::OkStatus()), std::nullopt);
  EXPECT_OK(PrefixField(absl::OkStatus(), "items[3]."));
}

TEST(StatusTest, PrefixGoesBeforeFieldAndMessage) {
  const absl::Status status =
      PrefixField(InvalidField("value", "1", "2"), "items[3].");
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kInvalidArgument,
                               "items[3].value: got 1, want 2"));
  EXPECT_THAT(FieldOf(status), Optional(std::string("items[3].value")));
}

TEST(StatusTest, PrefixKeepsCodeAndOtherPayloads) {
  absl::Status status =
      StatusWithReason(absl::StatusCode::kAborted, "sequence is 4", "SEQUENCE");
  status.SetPayload("other", absl::Cord("payload"));
  const absl::Status prefixed = PrefixField(status, "items[3]: ");
  EXPECT_THAT(prefixed,
              StatusIs(absl::StatusCode::kAborted, "items[3]: sequence is 4"));
  EXPECT_THAT(ReasonOf(prefixed), Optional(std::string("SEQUENCE")));
  EXPECT_EQ(prefixed.GetPayload("other"), absl::Cord("payload"));
  EXPECT_EQ(FieldOf(prefixed), std::nullopt);
}

absl::StatusOr<int> Half(int number) {
  if (number % 2 != 0) return absl::InvalidArgumentError("odd");
  return number / 2;
}

absl::StatusOr<int> Quarter(int number) {
  ATTENDANT_ASSIGN_OR_RETURN(const int half, Half(number));
  ATTENDANT_ASSIGN_OR_RETURN(const int quarter, Half(half));
  return quarter;
}

absl::Status CheckHalf(int number, bool& reached) {
  ATTENDANT_RETURN_IF_ERROR(Half(number).status());
  reached = true;
  return absl::OkStatus();
}

TEST(StatusTest, AnotherMessageKeepsTheRest) {
  const absl::Status status = WithMessage(
      FieldError(absl::StatusCode::kNotFound, "NO_ITEM", "ids[2]", "a", "b"),
      "no item 'a'");
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kNotFound, "no item 'a'"));
  EXPECT_THAT(FieldOf(status), Optional(std::string("ids[2]")));
  EXPECT_THAT(ReasonOf(status), Optional(std::string("NO_ITEM")));
  ASSERT_TRUE(GotAndWantOf(status).has_value());
  EXPECT_EQ(GotAndWantOf(status)->want, "b");
  EXPECT_OK(WithMessage(absl::OkStatus(), "none"));
}

TEST(StatusTest, MacrosPassOnTheFirstError) {
  ASSERT_OK_AND_ASSIGN(const int quarter, Quarter(12));
  EXPECT_EQ(quarter, 3);
  EXPECT_THAT(Quarter(6), StatusIs(absl::StatusCode::kInvalidArgument, "odd"));
  bool reached = false;
  EXPECT_THAT(CheckHalf(3, reached),
              StatusIs(absl::StatusCode::kInvalidArgument, "odd"));
  EXPECT_FALSE(reached);
  EXPECT_OK(CheckHalf(4, reached));
  EXPECT_TRUE(reached);
}

TEST(StatusTest, FieldErrorNamesFieldAndReason) {
  const absl::Status status =
      FieldError(absl::StatusCode::kAborted, "MOVED", "items[2]", "7", "8");
  EXPECT_EQ(status.code(), absl::StatusCode::kAborted);
  EXPECT_EQ(status.message(), "items[2]: got 7, want 8");
  EXPECT_EQ(FieldOf(status), "items[2]");
  EXPECT_EQ(ReasonOf(status), "MOVED");
}

TEST(StatusTest, MostThereMayBeCounts) {
  EXPECT_EQ(MostThereMayBe(2, "catalogs").message(),
            "there are 2 catalogs, the most allowed; delete some first");
  EXPECT_EQ(MostThereMayBe(1, "catalogs").message(),
            "of catalogs there is 1, the most allowed; delete it first");
}

}  // namespace
}  // namespace attendant
