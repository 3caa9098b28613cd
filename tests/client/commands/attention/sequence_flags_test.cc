#include "client/commands/attention/sequence_flags.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "client/commands/attention/approximation_flags.h"
#include "client/commands/shared/flags.h"
#include "client/files/npy.h"
#include "tests/client/temporary_file.h"
#include "tests/support/status_matchers.h"

namespace attendant {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(SequenceFlagsTest, ModelsHaveANameAndPerhapsAVersion) {
  ASSERT_OK_AND_ASSIGN(v1::ModelReference model, ParseModelReference("text"));
  EXPECT_EQ(model.name(), "text");
  EXPECT_FALSE(model.has_version());
  ASSERT_OK_AND_ASSIGN(model, ParseModelReference("text:12"));
  EXPECT_EQ(model.name(), "text");
  EXPECT_EQ(model.version(), 12);
  for (const char* bad : {"", ":1", "text:", "text:0", "text:x"}) {
    EXPECT_THAT(ParseModelReference(bad),
                StatusIs(kInvalid, HasSubstr("want NAME or NAME:VERSION")))
        << bad;
  }
}

TEST(SequenceFlagsTest, EventsHaveAnIdAndATime) {
  for (const char* flag : {"a=b=2011-12-09T00:00:00Z", "a=b=2011-12-09",
                           "a=b=1323388800", "a=b=2011-12-09 00:00:00"}) {
    ASSERT_OK_AND_ASSIGN(const v1::HistoryEvent event, ParseHistoryEvent(flag));
    EXPECT_EQ(event.item_id(), "a=b");
    EXPECT_EQ(event.time().seconds(), 1323388800) << flag;
  }
  // A Timestamp has the years 1 to 9999.
  for (const char* bad :
       {"a", "=2011-12-09", "a=yesterday", "a=", "a=infinite-future", "a=1e300",
        "a=nan", "a=253402300800", "a=10000-01-01", "a=0000-12-31"}) {
    EXPECT_THAT(ParseHistoryEvent(bad), StatusIs(kInvalid, HasSubstr("want ")))
        << bad;
  }
}

TEST(SequenceFlagsTest, HistoryIsThatOfTheCustomer) {
  const TemporaryFile file("events.csv",
                           "customer_id,item_id,time\n"
                           "7,lens,2011-01-02\n"
                           "8,fins,2011-01-03\n"
                           "7,towel,2011-01-01\n");
  v1::RankCandidatesRequest request;
  ASSERT_OK(ReadHistory(file.path(), {}, "7", request));
  ASSERT_EQ(request.history_size(), 2);
  EXPECT_EQ(request.history(0).item_id(), "lens");
  EXPECT_EQ(request.history(1).item_id(), "towel");
  EXPECT_EQ(request.history(1).time().seconds(), 1293840000);
  ASSERT_OK(ReadHistory(file.path(), {}, "", request));
  EXPECT_EQ(request.history_size(), 5);
  EXPECT_THAT(ReadHistory(file.path(), {}, "9", request),
              StatusIs(kInvalid, HasSubstr("no event of customer '9'")));
  const TemporaryFile late("late.csv", "item_id,time\nlens,late\n");
  EXPECT_THAT(
      ReadHistory(late.path(), {}, "", request),
      StatusIs(kInvalid, AllOf(HasSubstr("row 1"), HasSubstr("'late'"))));
}

TEST(SequenceFlagsTest, HistoryHasColumnsByName) {
  const TemporaryFile file("events.csv",
                           "who,what,when\n7,lens,2011-01-02\n8,fins,noon\n");
  EventColumns columns = {
      .customer = "who", .item = "what", .time = "when", .needs_time = true};
  v1::RankCandidatesRequest request;
  ASSERT_OK(ReadHistory(file.path(), columns, "7", request));
  ASSERT_EQ(request.history_size(), 1);
  EXPECT_EQ(request.history(0).item_id(), "lens");
  EXPECT_THAT(ReadHistory(file.path(), columns, "8", request),
              StatusIs(kInvalid, HasSubstr("when: got 'noon', want a time")));
  columns.time = "time";
  EXPECT_THAT(ReadHistory(file.path(), columns, "7", request),
              StatusIs(kInvalid, HasSubstr("(--time-column names another)")));
  columns.customer = "customer_id";
  columns.time = "when";
  // A file of one customer's events needs no customer column.
  EXPECT_THAT(
      ReadHistory(file.path(), columns, "7", request),
      StatusIs(kInvalid, HasSubstr("(--customer-column names another)")));
  EXPECT_THAT(
      ReadHistory(file.path(), columns, "", request),
      StatusIs(kInvalid, HasSubstr("row 2 (line 3): when: got 'noon'")));
}

TEST(SequenceFlagsTest, TokensAreTheRowsOfAFile) {
  const TemporaryFile file("tokens.npy",
                           NpyBytes(std::vector<float>{1, 2, 3, 4}, 2));
  v1::TokenSequence sequence;
  ASSERT_OK(ReadTokens(file.path(), sequence));
  EXPECT_EQ(sequence.vectors().vectors_size(), 2);
}

class ApproximationFlagsTest : public ::testing::Test {
 protected:
  void Parse(const std::string& line) { app_.parse(line); }

  CLI::App app_;
  ApproximationFlags flags_;

  ApproximationFlagsTest() { AddApproximationFlags(app_, flags_); }
};

TEST_F(ApproximationFlagsTest, NoneIsExact) {
  Parse("");
  EXPECT_FALSE(flags_.any());
}

TEST_F(ApproximationFlagsTest, RoundsAndBucketsOfAHash) {
  Parse("--lsh 3 --lsh-buckets 8");
  EXPECT_TRUE(flags_.any());
  ASSERT_OK_AND_ASSIGN(const v1::Approximation approximation,
                       ToApproximation(flags_));
  EXPECT_EQ(approximation.lsh().round_count(), 3);
  EXPECT_EQ(approximation.lsh().bucket_count(), 8);
  EXPECT_EQ(approximation.lsh().seed(), 1);
  Parse("--lsh 3 --lsh-seed 7");
  EXPECT_EQ(ToApproximation(flags_)->lsh().seed(), 7);
  EXPECT_THROW(Parse("--lsh 3 --lsh-seed 9223372036854775808"),
               CLI::ValidationError);
}

TEST_F(ApproximationFlagsTest, RowsThatALongSequenceBecomes) {
  Parse("--linformer 100 --linformer-random");
  ASSERT_OK_AND_ASSIGN(const v1::Approximation approximation,
                       ToApproximation(flags_));
  EXPECT_EQ(approximation.linformer().row_count(), 100);
  EXPECT_EQ(approximation.linformer().reduction_kind(),
            v1::REDUCTION_KIND_RANDOM);
  Parse("--linformer 100 --linformer-random --linformer-seed -3");
  EXPECT_EQ(ToApproximation(flags_)->linformer().seed(), -3);
  EXPECT_THROW(Parse("--linformer 100 --linformer-random --linformer-seed 1.5"),
               CLI::ValidationError);
}

TEST_F(ApproximationFlagsTest, OneKindOnly) {
  EXPECT_THROW(Parse("--lsh 3 --linformer 100"), CLI::ExcludesError);
  EXPECT_THROW(Parse("--lsh-buckets 8"), CLI::RequiresError);
  EXPECT_THROW(Parse("--lsh-seed 8"), CLI::RequiresError);
  EXPECT_THROW(Parse("--linformer 3 --linformer-seed 8"), CLI::RequiresError);
  EXPECT_THROW(Parse("--lsh 0"), CLI::ValidationError);
}

}  // namespace
}  // namespace attendant
