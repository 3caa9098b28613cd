#include "core/base/status_details.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "core/base/status.h"

namespace attendant {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

TEST(StatusDetailsTest, AreWhatTheMessageNames) {
  const absl::Status status =
      WithDetails(StatusWithReason(absl::StatusCode::kNotFound,
                                   "no catalog 'shop'", "CATALOG_NOT_FOUND"),
                  {{"catalog", "shop"}, {"alias", std::string(1000, 'x')}});
  EXPECT_EQ(status.message(), "no catalog 'shop'");
  EXPECT_EQ(ReasonOf(status), "CATALOG_NOT_FOUND");
  const auto details = DetailsOf(PrefixField(status, "requests[2]: "));
  EXPECT_EQ(details.at("catalog"), "shop");
  EXPECT_LT(details.at("alias").size(), 300u);
  EXPECT_EQ(details.size(), 2u);
}

TEST(StatusDetailsTest, OthersHaveNone) {
  EXPECT_THAT(DetailsOf(InvalidField("a", "1", "2")), IsEmpty());
  EXPECT_THAT(DetailsOf(absl::OkStatus()), IsEmpty());
  EXPECT_THAT(DetailsOf(WithDetails(absl::NotFoundError(""), {{"item", "a"}})),
              ElementsAre(Pair("item", "a")));
}

}  // namespace
}  // namespace attendant
